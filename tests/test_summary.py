"""What a run ends with: who reviewed how many sessions, and which to look at, with the event."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from debrief.cli.summary import print_summary
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Evidence, Session
from debrief.signals.extract import session_signals
from debrief.signals.schema import TABLE, Event, EventKind, SessionSignals
from debrief.summary import Content, content_of, counted_verdicts, sessions_to_look_at
from tests.view.shown import MONDAY, session_of

WEEK = f"{MONDAY:%Y-%m-%d}"


def test_sessions_are_counted_by_who_gave_which_verdict_and_the_rest_is_not_reviewed() -> None:
    counted = counted_verdicts(
        231,
        [
            ("complete_verified", "review", "claude-code", 12),
            ("partial", "review", "claude-code", 3),
            ("complete_unverified", "review", "claude-code", 5),
            ("failed", "person", "sam", 2),
            ("failed", "outcome", "revert", 1),
            ("undetermined", "review", "openai/tiny", 1),
        ],
    )
    assert (counted.known, counted.not_reviewed) == (24, 207)
    assert counted.sentences() == (
        "20 reviewed by claude-code: 12 complete, verified; 5 complete, not verified; 3 partial. "
        "1 reviewed by openai/tiny: 1 undetermined. 2 labelled by sam: 2 failed. "
        "1 told by revert: 1 failed. 207 not reviewed."
    )
    assert counted_verdicts(1, []).sentences() == "1 not reviewed."
    assert counted_verdicts(1, [("failed", "person", "sam", 1)]).sentences() == (
        "1 labelled by sam: 1 failed."
    )


def event(kind: EventKind, *quotes: str) -> Event:
    return Event(kind=kind, evidence=tuple(Evidence(n, "", q) for n, q in enumerate(quotes, 1)))


def lake_with(tmp_path: Path, events: dict[str, tuple[Event, ...]]) -> Lake:
    """A lake of sessions, each an hour after the one before, with these events."""
    lake, sessions = Lake(str(tmp_path / "lake")), []
    for hour, session_id in enumerate(events):
        started = MONDAY + timedelta(hours=hour)
        sessions.append(session_of(session_id, f"Job of {session_id}.", started=started))
    lake.write("raw_sessions", WEEK, sessions, Session)
    signals = [replace(session_signals(one), events=events[one.id]) for one in sessions]
    lake.write(TABLE, WEEK, signals, SessionSignals)
    return lake


def reviewed(lake: Lake, session_id: str, model: str = "claude-code", failure: str = "") -> None:
    """Add a review of a session to a lake, or one that failed."""
    (session,) = lake.read("raw_sessions", WEEK, Session, ("id", {session_id}))
    row = SessionScores(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        model=model,
        scoring_fingerprint=f"by {model}",
        status="failed" if failure else "ok",
        failure=failure,
        verdict=None
        if failure
        else SessionVerdict(verdict="partial", basis="review", source=model),
    )
    stored = list(lake.read("session_scores", WEEK, SessionScores))
    lake.write("session_scores", WEEK, [row, *stored], SessionScores)


def summary(lake: Lake, content: Content | None = None) -> str:
    out = Console(file=io.StringIO(), width=160)
    print_summary(lake, content or content_of(lake, [WEEK]), out)
    return str(out.file.getvalue())  # type: ignore[attr-defined]


def test_the_most_urgent_event_comes_first_then_the_count_then_the_newest(tmp_path: Path) -> None:
    lake = lake_with(
        tmp_path,
        {
            "stopped": (event("stopped", "limit"),),
            "calm": (),
            "corrected-once": (event("correction", "no"),),
            "corrected-twice": (event("correction", "no", "still no"), event("stopped", "limit")),
            "newer-once": (event("correction", "no"),),
            "destroyed": (event("destructive", "git reset --hard"),),
        },
    )
    found = sessions_to_look_at(lake, [WEEK])
    assert [one.session_id for one in found] == [
        *("destroyed", "corrected-twice", "newer-once", "corrected-once", "stopped")
    ]
    assert found[1].reason == "corrected twice (turns 1, 2: “no”); 1 more kind of event"
    assert {one.verdict for one in found} == {None}


def test_a_run_ends_with_events_in_words_and_without_a_judgement(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, {"one": (event("correction", "no \x1b[2J"),), "two": ()})
    printed = summary(lake)
    assert "2 sessions in 1 week" in printed
    assert "\n2 not reviewed.\n1 session to look at:\n" in printed
    assert "one  Job of one.  (not reviewed)\n    corrected once (turn 1: “no " in printed
    assert "\x1b" not in printed
    assert not [word for word in ("best", "%", "look first", "quality") if word in printed]


def test_a_review_is_named_by_its_model_and_its_session_by_its_verdict(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, {"one": (event("correction", "no"),), "two": ()})
    reviewed(lake, "one")
    printed = summary(lake)
    assert "1 reviewed by claude-code: 1 partial. 1 not reviewed." in printed
    assert "Job of one.  (partial)" in printed


def test_a_review_that_failed_is_no_verdict_and_an_older_one_is_named(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, dict.fromkeys(("one", "two", "three", "four"), ()))
    reviewed(lake, "four", "openai/tiny")
    for session_id in ("one", "two", "four"):
        reviewed(lake, session_id, failure="timed out.")
    reviewed(lake, "three", failure="it was refused")
    printed = summary(lake)
    assert "3 not reviewed: timed out (and 1 more)." in printed
    assert "1 could not be reviewed again; what openai/tiny said before stands." in printed
    assert "1 reviewed by openai/tiny: 1 partial. 3 not reviewed." in printed


@pytest.mark.parametrize(("failed", "rest"), [(1, ""), (3, ", and 2 more")])
def test_the_first_failure_is_shown_and_how_many_more_there_are(
    tmp_path: Path, failed: int, rest: str
) -> None:
    lake = lake_with(tmp_path, {f"s{number}": () for number in range(failed)})
    for number in reversed(range(failed)):
        reviewed(lake, f"s{number}", failure="timed out")
    assert f"s0: timed out{rest}\n" in summary(lake)
