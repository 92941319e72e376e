"""A run that is killed three times while its server fails in every way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.benchmarks.judging_faults import FAULTS, judge_under_faults
from tests.models.openai_server import Faults


def test_nothing_is_lost_nothing_is_there_twice_and_little_is_asked_again(tmp_path: Path) -> None:
    measures = {"sessions": 24, "concurrency": 8, "latency": 0.02, "timeout": 0.5}
    outcome = judge_under_faults(tmp_path / "faults", kills=3, faults=FAULTS, **measures)  # type: ignore[arg-type]
    plain = judge_under_faults(tmp_path / "plain", kills=0, faults=Faults(), **measures)  # type: ignore[arg-type]
    named = Counter((row.session_id, row.judge) for row in outcome.rows)
    assert len(named) == 48
    assert set(named.values()) == {1}
    assert {row.status for row in outcome.rows} == {"ok"}
    assert outcome.rows == plain.rows
    assert outcome.received > plain.received == 48
    assert outcome.repeated <= 3 * outcome.kills
