"""A lake of few sessions, and its pages on loopback."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import httpx
from fastapi import FastAPI
from msgspec.structs import replace

from debrief.door.app import Door
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.recorder.service.running import ServiceLimits, listen, make_server, url_of
from debrief.scoring.model import DimensionName, DimensionScore, SessionScores
from debrief.scoring.verdict import SessionVerdict, VerdictName
from debrief.sessions.actions import described
from debrief.sessions.model import Evidence, Message, Session, ToolCall, Turn, Usage
from debrief.settings import Settings, load_settings
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


def verdict_of(quality: float) -> SessionVerdict:
    """The verdict on a session: the better it is, the more of it is done."""
    place = Evidence(1, "c1", "1 failed")
    if 0.5 <= quality < 0.7:
        return SessionVerdict(verdict="complete_unverified", basis="no_check")
    name: VerdictName = "complete_verified" if quality >= 0.7 else "failed"
    return SessionVerdict(verdict=name, basis="check", check="pytest -q", evidence=(place,))


def scores_of(session: Session, quality: float, reason: str = "The last check failed") -> Any:
    """Scores of a session that all dimensions agree on."""
    place = Evidence(1, "c1", "1 failed")
    return SessionScores(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        model="offline",
        scoring_fingerprint="scorer",
        status="ok",
        verdicts=tuple(
            DimensionScore(dimension=name, value=quality, rationale=reason, evidence=(place,))
            for name in get_args(DimensionName)
        ),
        overall_quality=quality,
        verdict=verdict_of(quality),
    )


def fill(lake: Lake, sessions: Sequence[tuple[Session, float | None]]) -> None:
    """Write sessions with their quality, each on prompts named after its task."""
    weeks: dict[str, list[tuple[Session, float | None]]] = {}
    for session, quality in sessions:
        weeks.setdefault(week_of(session.started), []).append((session, quality))
    for week, pairs in weeks.items():
        lake.write("raw_sessions", week, [session for session, _ in pairs], Session)
        scored = [scores_of(session, quality) for session, quality in pairs if quality is not None]
        lake.write("session_scores", week, scored, SessionScores)
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


def placed_lake(settings: Settings) -> list[str]:
    """A lake of 20 sessions of one tool and kind, the first ones with more corrections, and one
    that cannot be compared; the ids of the 20."""
    lake = Lake(settings.lake)
    made = [session_of(f"s{n:02}", f"Job {n}.") for n in range(20)]
    alone = session_of("alone", "Alone.", tool="codex")
    fill(lake, [(session, 0.9) for session in (*made, alone)])
    rows = [
        replace(
            scores_of(session, 0.9), kind="coding", facts={"corrections": 1 - n / 20, "streak": 1.0}
        )
        for n, session in enumerate(made)
    ]
    untold = SessionVerdict(verdict="undetermined", basis="no_change")
    row = replace(scores_of(alone, 0.1), verdict=untold, kind="coding", facts={"corrections": 1.0})
    lake.write("session_scores", f"{MONDAY:%Y-%m-%d}", [*rows, row], SessionScores)
    return [session.id for session in made]


def settings_of(folder: Path, **variables: str) -> Settings:
    """Settings whose home and lake are below a folder."""
    return load_settings(
        {
            "HOME": str(folder),
            "DEBRIEF_HOME": str(folder / "home"),
            "DEBRIEF_RATER": "ada",
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
