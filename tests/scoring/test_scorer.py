"""The scorer: one row a session whatever happens, and nothing scored twice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from debrief.scoring.dimensions import problem_of
from debrief.scoring.llm_review import SessionReview
from debrief.scoring.model import Chunk
from debrief.scoring.scorer import ChunkParameters, score_session, score_week
from debrief.scoring.shown import parts_shown
from debrief.sessions.model import Message, Session, Turn, Usage
from debrief.sessions.readers.patches import created, replaced
from debrief.signals.lines import lasting_lines, token_efficiency, user_turn_efficiency
from tests.scoring.scenario import ScriptedScorer, call, refusing, review, session

SMALL = ChunkParameters(target=60)


def test_a_short_session_is_scored_in_one_call() -> None:
    scorer = ScriptedScorer()
    row = score_session(session(), scorer)
    assert row.status == "ok"
    assert row.review == review()
    assert row.verdict is not None
    assert row.verdict.objection == "no_proof"  # so completion is not known either
    assert [score.value for score in row.dimension_scores] == [None, 0.8, 0.7, 0.6, 0.67, None]
    assert row.overall_quality == pytest.approx(0.7131, abs=1e-4)
    assert (len(row.chunks), row.chunk_agreement) == (1, None)
    assert row.tokens == row.chunks[0].own_tokens > 0
    assert row.cost_usd is None
    assert scorer.seen == [("s1", 0)]


def test_a_long_session_is_scored_part_by_part() -> None:
    scorer = ScriptedScorer()
    row = score_session(session(turns=12), scorer, SMALL)
    assert len(row.chunks) == len(scorer.seen) > 3
    assert row.chunk_agreement == pytest.approx(1)
    assert all(chunk.tokens <= 60 for chunk in row.chunks)
    assert row.tokens == sum(chunk.own_tokens for chunk in row.chunks)
    assert row.input_tokens == sum(chunk.tokens for chunk in row.chunks)


def test_a_row_says_how_many_traces_each_part_repeats_and_why_it_is_fewer() -> None:
    assert parts_shown(score_session(session(), ScriptedScorer())) == ""
    whole = score_session(session(turns=12), ScriptedScorer(), ChunkParameters(target=300))
    assert [chunk.overlap for chunk in whole.chunks] == [0] + [4] * (len(whole.chunks) - 1)
    said = "each of 70,000 tokens at most and with the last 4 traces of the one before"
    assert parts_shown(whole) == f"{len(whole.chunks)}, {said}"
    why = "or fewer where 4 and the trace after them do not fit:"
    for target, number, shown in ((60, 0, "none"), (120, 1, "1")):
        row = score_session(session(turns=6), ScriptedScorer(), ChunkParameters(target=target))
        assert {chunk.overlap for chunk in row.chunks[1:]} == {number}
        later = ", ".join(str(chunk.index + 1) for chunk in row.chunks[1:])
        assert parts_shown(row) == f"{len(row.chunks)}, {said}, {why} {shown} in part {later}"


def breaking(_session: Session, _chunk: Chunk) -> SessionReview:
    raise KeyError("inside")


@pytest.mark.parametrize(
    ("given", "reviewed", "reason"),
    [
        pytest.param(session(), refusing, "refuses s1", id="the model refuses"),
        pytest.param(session(), breaking, "KeyError: 'inside'", id="the scorer breaks"),
        pytest.param(session(turns=()), None, "the session has no turns", id="no turns"),
    ],
)
def test_whatever_fails_is_a_row_with_its_reason(
    given: Session, reviewed: Any, reason: str
) -> None:
    row = score_session(given, ScriptedScorer(reviewed) if reviewed else ScriptedScorer())
    assert (row.status, row.overall_quality, row.dimension_scores) == ("failed", None, ())
    assert (row.uncertain, row.injection_suspected) == (False, False)
    assert reason in row.failure
    assert row.token_efficiency is not None


def test_a_row_that_was_tampered_with_has_problems() -> None:
    row = score_session(session(), ScriptedScorer())
    assert not problem_of(row)
    assert not problem_of(score_session(session(), ScriptedScorer(refusing)))
    better = problem_of(msgspec.structs.replace(row, overall_quality=0.9))
    assert "overall_quality is 0.9" in better
    short = problem_of(msgspec.structs.replace(row, dimension_scores=row.dimension_scores[1:]))
    assert "task_completion" in short


def test_efficiencies_are_lines_by_tokens_and_by_turns_where_there_are_any() -> None:
    worked = session(turns=4, added=30)
    assert token_efficiency(worked) == pytest.approx(40 / 2)
    assert user_turn_efficiency(worked) == pytest.approx(40 / 4)
    idle = session(turns=(Turn(number=0, prompt=""),), usage=Usage(cache_read=10))
    assert token_efficiency(idle) is None
    assert user_turn_efficiency(idle) is None


def test_efficiencies_count_no_line_that_was_undone_and_no_lock_or_generated_file() -> None:
    edits = [
        replaced("app.py", "a\nb\n", "a\nfirst try\nb\n"),
        replaced("app.py", "first try\n", "second\ntry\n"),
        replaced("app.py", "b\n", ""),
        replaced("app.py", "a\n", "a\nb\n"),
        created("poetry.lock", "x\n" * 900),
        created("dist/app.min.js", "y\n" * 900),
    ]
    calls = tuple(
        replace(call("c", "edit"), path=e.path, added=e.added, removed=e.removed, patch=e.patch)
        for e in edits
    )
    worked = session(
        turns=(Turn(number=1, prompt="go", messages=(Message(id="m", model="m", calls=calls),)),)
    )
    assert lasting_lines(worked) == 2
    assert user_turn_efficiency(worked) == 2


class Versioned(ScriptedScorer):
    version = "2"


@pytest.mark.parametrize(
    ("digest", "scorer", "parameters"),
    [
        ("another", ScriptedScorer(), ChunkParameters()),
        ("d1", ScriptedScorer(model="another"), ChunkParameters()),
        ("d1", Versioned(), ChunkParameters()),
        ("d1", ScriptedScorer(), ChunkParameters(target=5_000)),
        ("d1", ScriptedScorer(), ChunkParameters(overlap=2)),
    ],
    ids=["session", "model", "version", "target", "overlap"],
)
def test_what_decides_a_score_makes_it_due_again(
    digest: str, scorer: ScriptedScorer, parameters: ChunkParameters
) -> None:
    first = list(score_week([session()], ScriptedScorer()))
    list(score_week([session(digest=digest)], scorer, first, parameters=parameters))
    assert scorer.seen


def test_a_failure_costs_one_session_and_it_alone_is_scored_again() -> None:
    def picky(given: Session, chunk: Chunk) -> SessionReview:
        return refusing(given, chunk) if given.id == "s1" else review()

    week = [session(f"s{n}", digest=f"d{n}") for n in range(3)]
    first = list(score_week(week, ScriptedScorer(picky)))
    assert [row.status for row in first] == ["ok", "failed", "ok"]
    scorer = ScriptedScorer()
    second = list(score_week(week, scorer, first))
    assert list(score_week(week, scorer, second)) == second
    assert scorer.seen == [("s1", 0)]


def test_a_stored_row_is_gated_again_and_not_asked_about_again() -> None:
    scorer = ScriptedScorer()
    first, *_ = score_week([session("s1")], scorer)
    assert first.verdict is not None
    older = replace(first, verdict=replace(first.verdict, verdict="failed"), dimension_scores=())
    assert list(score_week([session("s1")], scorer, [older])) == [first]
    assert scorer.seen == [("s1", 0)]


def test_the_last_part_decides_and_numbers_are_weighed_by_tokens() -> None:
    def by_part(_: Session, part: Chunk) -> SessionReview:
        is_last = part.index == part.count - 1
        return review(verdict="failed" if is_last else "partial", quality=0.0 if is_last else 1.0)

    row = score_session(session(turns=12), ScriptedScorer(by_part), SMALL)
    assert row.review is not None
    assert row.review.verdict == "failed"
    own = [part.own_tokens for part in row.chunks]
    assert row.review.quality == pytest.approx(1 - own[-1] / sum(own))
