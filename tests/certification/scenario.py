"""Lakes with reviewed sessions, and people who label them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from debrief.keys import week_of
from debrief.lake import Lake
from debrief.outcomes.giving import give_label, label_of
from debrief.scoring.llm_review import RequestReview, SessionReview
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict, VerdictName
from debrief.sessions.actions import described
from debrief.sessions.model import Evidence, Message, Session, ToolCall, Turn
from debrief.signals.schema import TABLE, Change, CheckSignal, SessionSignals

MONDAY = datetime(2026, 11, 2, 9, tzinfo=UTC)
REVIEWER = "acme/reader-7"
FINDING = "The rounding stays wrong for refunds"
"""What the review says of every session, in words that the session does not have."""
TEST = described(
    ToolCall(id="c1", name="Bash", input='{"command": "pytest -q"}', result="3 passed", status="ok")
)


def session(name: str, number: int = 0) -> Session:
    """A session of one turn, in which a test passed."""
    answer = Message(id="m", model="opus", text="The cart adds up now.", calls=(TEST,))
    started = MONDAY + timedelta(minutes=number)
    return Session(
        id=name,
        source="claude-code",
        tool="claude-code",
        models=("opus",),
        task="shop",
        repository="shop",
        started=started,
        ended=started + timedelta(minutes=12),
        turns=(Turn(number=1, prompt=f"Fix the cart of {name}.", messages=(answer,)),),
        digest=f"digest of {name}",
    )


def review_row(of: Session, verdict: VerdictName, model: str = REVIEWER) -> SessionScores:
    """A row of an LLM review that says a verdict."""
    asked = RequestReview(
        turn=1, asked=FINDING, state="partial", proof=Evidence(1, "c1", "3 passed")
    )
    return SessionScores(
        session_id=of.id,
        session_digest=of.digest,
        started=of.started,
        ended=of.ended,
        task=of.task,
        tool=of.tool,
        model=model,
        scoring_fingerprint="scorer",
        status="ok",
        overall_quality=0.4321,
        verdict=SessionVerdict(verdict=verdict, basis="review", source=model),
        review=SessionReview(requests=(asked,), verdict=verdict, quality=0.4321),
    )


def signals_row(of: Session) -> SessionSignals:
    """A row of signals: one file changed, and a test that passed after it."""
    check = CheckSignal(
        kind="test",
        tool="pytest",
        worth="tests",
        passed=True,
        ran=3,
        covers_change=True,
        evidence=Evidence(1, "c1", "3 passed"),
    )
    return SessionSignals(
        session_id=of.id,
        session_digest=of.digest,
        started=of.started,
        ended=of.ended,
        task=of.task,
        tool=of.tool,
        work="code",
        change=Change(files=("cart.py",)),
        checks=(check,),
        ending="answered",
    )


def reviewed_lake(url: str, verdicts: Mapping[str, VerdictName], model: str = REVIEWER) -> Lake:
    """A lake with these sessions, each with signals and a review."""
    lake, week = Lake(url), week_of(MONDAY)
    sessions = [session(name, number) for number, name in enumerate(verdicts)]
    lake.write("raw_sessions", week, sessions, Session)
    lake.write(TABLE, week, map(signals_row, sessions), SessionSignals)
    rows = [review_row(each, verdicts[each.id], model) for each in sessions]
    lake.write("session_scores", week, rows, SessionScores)
    return lake


def say(lake: Lake, session_id: str, value: str, by: str = "ada", *, blind: bool = True) -> None:
    """Have a person label a session."""
    home = Path(lake.url).parent
    give_label(lake, home, label_of(session_id, "success", value, "", by, blind=blind))
