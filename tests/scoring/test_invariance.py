"""Chunk invariance: what moves when a session is cut elsewhere."""

from __future__ import annotations

from debrief.scoring.model import Chunk, Verdict
from debrief.scoring.scorer import ChunkParameters, chunk_invariance, movements_table
from debrief.sessions.model import Session
from tests.scoring.scenario import ScriptedScorer, refusing, session, verdicts

SMALL = ChunkParameters(target=100)


def by_position(_session: Session, chunk: Chunk) -> tuple[Verdict, ...]:
    return verdicts(tool_mastery=1.0 if chunk.index == 0 else 0.0)


def test_a_scorer_that_sees_no_parts_moves_nothing() -> None:
    moved = list(chunk_invariance([session(turns=20)], ScriptedScorer(), SMALL))
    assert len(moved) == 7
    assert all(movement.spread < 1e-9 for movement in moved)
    assert len(set(moved[0].chunks)) > 1


def test_a_scorer_that_judges_by_position_moves_its_dimension_and_the_whole() -> None:
    moved = list(chunk_invariance([session(turns=20)], ScriptedScorer(by_position), SMALL))
    far = {movement.name for movement in moved if movement.spread > 0.005}
    assert far == {"tool_mastery", "overall_quality"}
    assert "| tool_mastery | 1 |" in movements_table(moved)


def test_short_and_failed_sessions_are_left_out() -> None:
    assert list(chunk_invariance([session(turns=2)], ScriptedScorer())) == []
    assert list(chunk_invariance([session(turns=20)], ScriptedScorer(refusing), SMALL)) == []
