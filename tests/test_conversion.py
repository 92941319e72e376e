"""A lake of an earlier version is converted once: reviews are kept, rows by rules are not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from debrief.conversion import convert_lake
from debrief.lake import Lake
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.dimensions import problem_of
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Evidence, Session
from debrief.sessions.store import SESSIONS_TABLE
from tests.signals.scenario import Story
from tests.training.scenario import scores, session

WEEK = "2026-01-05"
AT = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


class Former(Struct, kw_only=True):
    """A row of scores in the words of before."""

    session_id: str
    model: str
    session_digest: str = "d"
    started: datetime = AT
    ended: datetime = AT
    task: str = "checkout"
    tool: str = "claude-code"
    scoring_fingerprint: str = "f" * 8
    status: str = "ok"
    overall_quality: float = 0.6
    facts: dict[str, float] = {}
    verdict: dict[str, Any]
    verdicts: list[dict[str, Any]] = []
    reading: dict[str, Any] | None = None
    chunks: list[dict[str, Any]] = []


PROOF = {"turn": 2, "call": "c1", "quote": "3 passed"}
READING: dict[str, Any] = {
    "verdict": "partly",
    "quality": 0.5,
    "requests": [
        {"turn": 1, "asked": "fix it", "state": "done_seen", "proof": PROOF},
        {"turn": 1, "asked": "test it", "state": "partly", "proof": None},
    ],
    "troubles": [{"turn": 1, "quote": "", "kind": "slow", "what": "two tries", "rule": ""}],
}
DIMENSION = {"dimension": "execution_quality", "value": 0.5, "rationale": "turn 2", "spread": None}
ROWS = [
    Former(
        session_id="read",
        model="opus",
        verdict={"verdict": "partly", "ground": "model", "source": "opus"},
        verdicts=[DIMENSION],
        reading=READING,
        chunks=[
            {
                **{"index": 0, "tokens": 9, "own_tokens": 9, "bounds": [0.6]},
                "verdicts": [DIMENSION],
            }
        ],
    ),
    Former(
        session_id="read",
        model="offline",
        verdict={"verdict": "done_verified", "ground": "check", "check": "pytest"},
    ),
    Former(
        session_id="ruled",
        model="offline",
        verdict={"verdict": "not_done", "ground": "outcome", "source": "revert"},
    ),
]


def former_lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "lake"))
    lake.write(SESSIONS_TABLE, WEEK, [session("read"), session("ruled")], Session)
    lake.write("session_scores", WEEK, ROWS, Former)
    lake.write("weekly_moves", "all", ROWS[:1], Former)
    return lake


def test_reviews_are_kept_in_todays_words_and_what_rules_said_goes(tmp_path: Path) -> None:
    lake = former_lake(tmp_path)
    convert_lake(lake)
    (row,) = lake.read("session_scores", WEEK, SessionScores)
    assert (row.session_id, row.model, problem_of(row)) == ("read", "opus", "")
    assert row.review is not None
    assert [request.state for request in row.review.requests] == ["done_seen", "partial"]
    assert [friction.what for friction in row.review.frictions] == ["two tries"]
    assert row.dimension_scores[0].category == "partial"
    assert [score.value for score in row.chunks[0].dimension_scores] == [0.5]
    (verdict,) = verdicts_in(lake).values()
    assert (verdict.verdict, verdict.basis, verdict.source) == ("partial", "review", "opus")
    assert verdict.evidence == (Evidence(2, "c1", "3 passed"),)
    assert lake.partitions("weekly_moves") == []


def test_what_this_version_wrote_is_left_alone(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    one = session("read")
    lake.write(SESSIONS_TABLE, WEEK, [one], Session)
    lake.write("session_scores", WEEK, [scores(one)], SessionScores)
    before = lake.stamp("session_scores", WEEK)
    convert_lake(lake)
    assert lake.stamp("session_scores", WEEK) == before


def test_a_lake_is_converted_once_and_a_new_one_never(tmp_path: Path) -> None:
    lake = former_lake(tmp_path)
    convert_lake(lake)
    lake.write("weekly_moves", "all", ROWS[:1], Former)
    convert_lake(lake)
    assert lake.partitions("weekly_moves") == ["all"]
    new = Lake(str(tmp_path / "new"))
    convert_lake(new)
    assert not (tmp_path / "new").exists()


def test_a_former_review_is_stopped_by_the_check_that_failed(tmp_path: Path) -> None:
    work = Story().turn("Fix it").edit("cart.py", "x = 1", "x = 2")
    work.run("pytest -q", "1 failed, 2 passed in 0.1s", "failed")
    lake = Lake(str(tmp_path / "lake"))
    lake.write(SESSIONS_TABLE, WEEK, [work.session()], Session)
    reading = {**READING, "verdict": "done_verified", "requests": READING["requests"][:1]}
    former = replace(ROWS[0], session_id=work.session().id, reading=reading)
    lake.write("session_scores", WEEK, [former], Former)
    convert_lake(lake)
    (row,) = lake.read("session_scores", WEEK, SessionScores)
    assert row.verdict is not None
    assert (row.verdict.verdict, row.overall_quality) == ("partial", None)
    assert row.review is not None
    assert row.review.verdict == "complete_verified"
