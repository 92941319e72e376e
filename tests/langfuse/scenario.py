"""Scored sessions, and a client that does not wait."""

from __future__ import annotations

from msgspec.structs import replace

from debrief.langfuse.client import RETRIES, LangfuseClient
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import score_session
from tests.langfuse.server import LangfuseServer
from tests.scoring.scenario import ScriptedScorer, session
from tests.waiting import LONG


class Clock:
    """Waits in no time, and remembers how long it should have taken."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def client_of(
    server: LangfuseServer, clock: Clock | None = None, attempts: int = 4, secret: str = "sk-test"
) -> LangfuseClient:
    retries = replace(RETRIES, attempts=attempts, sleep=(clock or Clock()).sleep)
    return LangfuseClient(server.host, server.public_key, secret, retries=retries, timeout=LONG)


def scored(identity: str = "s1", model: str = "some-model") -> SessionScores:
    return score_session(session(identity), ScriptedScorer(model=model))


def failed(identity: str = "s9") -> SessionScores:
    row = scored(identity)
    return replace(row, status="failed", failure="no answer", verdicts=(), overall_quality=None)
