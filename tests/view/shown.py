"""A lake of few sessions, and its pages on loopback."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import httpx
from fastapi import FastAPI

from debrief.door.app import Door
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.recorder.service.running import ServiceLimits, listen, make_server, url_of
from debrief.scoring.gate import gate_review
from debrief.scoring.llm_review import RequestReview, RequestState, SessionReview
from debrief.scoring.model import DimensionName, DimensionScore, SessionScores
from debrief.scoring.verdict import COMPLETE, VerdictName
from debrief.sessions.actions import described
from debrief.sessions.model import Evidence, Message, Session, ToolCall, Turn, Usage
from debrief.settings import Settings, load_settings
from debrief.signals.schema import CheckSignal, Event, EventKind, SessionSignals
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.view.app import make_app

MONDAY = datetime(2026, 11, 2, 9, tzinfo=UTC)
TOOL_CALL = described(
    ToolCall(
        id="c1",
        name="Bash",
        input='{"command": "pytest -q shop/cart.py"}',
        result="1 failed",
        status="failed",
        exit_code=1,
    )
)


FAILED = Evidence(1, "c1", "1 failed")
OWN = {"Sec-Fetch-Site": "same-origin"}
"""What a browser sends with a form of the pages themselves."""


def words(page: str) -> str:
    """What is read of a page."""
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def session_of(session_id: str, prompt: str = "Fix the cart.", **changes: Any) -> Session:
    """A session of one turn with one failed call."""
    answer = Message(id="m", model="opus", text="The cart adds up now.", calls=(TOOL_CALL,))
    started = changes.pop("started", MONDAY)
    fields = {
        "source": "claude-code",
        "tool": "claude-code",
        "models": ("opus",),
        "task": "shop",
        "repository": "shop",
        "started": started,
        "ended": started + timedelta(minutes=12),
        "turns": (Turn(number=1, prompt=prompt, messages=(answer,)),),
        "usage": Usage(1_000, 500, 200, 90_000),
        "digest": f"digest of {session_id}",
    }
    return Session(id=session_id, **{**fields, **changes})


REVIEWER = "claude-code"


def review_of(verdict: VerdictName, **more: Any) -> SessionReview:
    """A review with one request."""
    state: RequestState = "done_seen" if verdict in COMPLETE else "not"
    asked = RequestReview(turn=1, asked="fix the cart", state=state, proof=FAILED)
    return SessionReview(**{"verdict": verdict, "requests": (asked,), **more})


def scores_of(
    session: Session, quality: float, reviewer: str = REVIEWER, **changes: Any
) -> SessionScores:
    """The scores of a review: the better a session is, the more of it is complete."""
    name: VerdictName = "failed"
    if quality >= 0.5:
        name = "complete_verified" if quality >= 0.7 else "complete_unverified"
    review = changes.pop("review", review_of(name))
    fields: dict[str, Any] = {
        "verdict": gate_review(review, signals_of(session), reviewer),
        "review": review,
        "dimension_scores": tuple(
            DimensionScore(dimension=dimension, value=quality, rationale="Because.")
            for dimension in get_args(DimensionName)
        ),
        "overall_quality": quality,
    }
    return SessionScores(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        model=reviewer,
        scoring_fingerprint="scorer",
        status="ok",
        **{**fields, **changes},
    )


def signals_of(session: Session, *events: Event, **changes: Any) -> SessionSignals:
    """The signals of a session on code, in which a test passed and these events happened."""
    passed = CheckSignal(
        kind="test",
        tool="pytest",
        worth="tests",
        passed=True,
        ran=3,
        covers_change=True,
        evidence=Evidence(1, "c1", "3 passed"),
    )
    fields: dict[str, Any] = {
        "work": "code",
        "ending": "answered",
        "calls": 1,
        "checks": (passed,),
        **changes,
    }
    return SessionSignals(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        events=events,
        **fields,
    )


def event_of(kind: EventKind, count: int = 1, quote: str = "no, the tax") -> Event:
    """An event that happened so often, in the turns from the first on."""
    return Event(
        kind=kind, evidence=tuple(Evidence(turn, "", quote) for turn in range(1, count + 1))
    )


def fill(
    lake: Lake,
    sessions: Sequence[tuple[Session, float | None]],
    signals: Mapping[str, SessionSignals] | None = None,
) -> None:
    """Write sessions, with the quality that a review gives them where there is one.

    Args:
        lake: to write into.
        sessions: with the quality of their review; None: nobody reviewed it.
        signals: of sessions in which something happened, by id.
    """
    weeks: dict[str, list[tuple[Session, float | None]]] = {}
    for session, quality in sessions:
        weeks.setdefault(week_of(session.started), []).append((session, quality))
    for week, pairs in weeks.items():
        lake.write("raw_sessions", week, [session for session, _ in pairs], Session)
        scored = [scores_of(session, quality) for session, quality in pairs if quality is not None]
        if scored:
            lake.write("session_scores", week, scored, SessionScores)
        seen = [(signals or {}).get(session.id) or signals_of(session) for session, _ in pairs]
        lake.write("session_signals", week, seen, SessionSignals)
        known = [
            SessionMetadataRow(
                session_id=session.id,
                tool=session.tool,
                model="opus",
                recorded_at=session.started,
                task=session.task,
                repository=session.repository,
                prompt_fingerprint="0aaad855",
            )
            for session, _ in pairs
        ]
        lake.write("session_metadata", week, known, SessionMetadataRow)
        prompts = [
            PromptSnapshotRow(
                session_id=session.id,
                origin="recorded",
                main="# How we work\n\nRun the tests.",
                prompt_fingerprint="0aaad855",
            )
            for session, _ in pairs
        ]
        lake.write("prompt_snapshots", week, prompts, PromptSnapshotRow)


def settings_of(folder: Path, **variables: str) -> Settings:
    """Settings whose home and lake are below a folder."""
    return load_settings(
        {
            "HOME": str(folder),
            "DEBRIEF_HOME": str(folder / "home"),
            "DEBRIEF_RATER": "ada",
            "DEBRIEF_NO_MODEL": "1",
            **variables,
        }
    )


def app_of(settings: Settings) -> FastAPI:
    """The pages of the settings' lake, with an index that is up to date."""
    app = make_app(Lake(settings.lake), settings)
    app.state.index.refresh()
    return app


@contextmanager
def served(settings: Settings) -> Iterator[httpx.Client]:
    """The pages of the settings' lake on loopback, and a client of them."""
    with serving(app_of(settings)) as client:
        yield client


@contextmanager
def serving(app: FastAPI) -> Iterator[httpx.Client]:
    """The pages on loopback, behind their door, and a client of them."""
    with listen("127.0.0.1", 0) as listener:
        server = make_server(Door(app, app.state.settings), ServiceLimits())
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            with httpx.Client(base_url=url_of(listener), timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()
