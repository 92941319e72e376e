"""A run that is killed three times while its server fails in every way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.benchmarks.judging_faults import all_rows, judge_under_faults, run_once, score_of
from tests.models.openai_server import OpenAIServer
from tests.waiting import LONG

CONCURRENCY = 4
"""So many answers are on their way when a run is killed."""


def test_nothing_is_lost_nothing_is_there_twice_and_little_is_asked_again(tmp_path: Path) -> None:
    outcome = judge_under_faults(
        tmp_path / "faults",
        sessions=24,
        concurrency=CONCURRENCY,
        latency=0.02,
        timeout=3.0,
        pause=0.02,
        kills=3,
    )
    with OpenAIServer(score_of) as server:
        run_once(tmp_path / "plain", server.url, 24, CONCURRENCY, LONG, 0.02)
    plain = all_rows(tmp_path / "plain")
    named = Counter((row.session_id, row.judge) for row in outcome.rows)
    assert len(named) == 48
    assert set(named.values()) == {1}
    assert {row.status for row in outcome.rows} == {"ok"}
    assert outcome.rows == plain
    assert outcome.received > server.received == 48
    assert outcome.repeated <= CONCURRENCY * outcome.kills
