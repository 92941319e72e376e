"""Servers that hold a session: the stand-in, and a real one where ``DEBRIEF_TEST_LANGFUSE`` is its
address and the keys of a project, as ``http://pk-lf-…:sk-lf-…@127.0.0.1:3000``.

A real server keeps what the tests write: sessions of ids that are never used again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from debrief.langfuse.client import LangfuseClient, Row
from debrief.langfuse.listing import list_session
from tests.langfuse.scenario import Recorder, client_of
from tests.langfuse.server import Json, LangfuseServer

ADDRESS = os.environ.get("DEBRIEF_TEST_LANGFUSE", "")
SITES = ["stand-in", *(["real"] if ADDRESS else [])]
ENVIRONMENT = "staging"
_PATIENCE = 60


class Site:
    """A server with one session of an environment of its own."""

    def __init__(self, client: LangfuseClient, stand_in: LangfuseServer | None) -> None:
        self.client = client
        self.stand_in = stand_in
        self.session = f"debrief-test-{uuid4()}"

    def scores(self) -> list[Row]:
        """Return what the server shows of the session's scores."""
        fields = "details,subject,annotation"
        rows = self.client.pages("/v3/scores", sessionId=self.session, fields=fields, limit=100)
        return list(rows)

    def fill(self) -> None:
        """Bring the session there, and wait until it is shown."""
        if self.stand_in is not None:
            recorder = Recorder(self.stand_in, self.session)
            told: Json = {
                "model": "gpt-4o",
                "usageDetails": {"input": 10, "output": 5, "total": 15},
            }
            told |= {"environment": ENVIRONMENT, "isRootObservation": True}
            recorder.generation("t1", "Fix the cart.", "Fixed.", **told)
            recorder.keep("t1", "Fix the cart.", "Fixed.")
            return
        self.client.post("/otel/v1/traces", _trace(self.session))
        for _ in range(_PATIENCE):
            if list_session(self.client, self.session):
                return
            time.sleep(1)
        pytest.fail("the server does not show a session that it took")


def real_client(address: str = ADDRESS) -> LangfuseClient:
    """Return a client of the real server."""
    parts = urlsplit(address)
    host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return LangfuseClient(host, parts.username or "", parts.password or "", timeout=120)


@contextmanager
def open_site(name: str) -> Iterator[Site]:
    """Open a site with its session."""
    if name == "real":
        with real_client() as client:
            site = Site(client, None)
            site.fill()
            yield site
    else:
        with LangfuseServer(looks=1) as server, client_of(server) as client:
            site = Site(client, server)
            site.fill()
            yield site


def _trace(session: str) -> object:
    """Return one span, as OpenTelemetry sends it."""
    now = str(time.time_ns())
    told = {
        "session.id": session,
        "langfuse.environment": ENVIRONMENT,
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": "Fix the cart.",
        "langfuse.observation.output": "Fixed.",
        "langfuse.observation.model.name": "gpt-4o",
        "langfuse.observation.usage_details": '{"input": 10, "output": 5}',
    }
    attributes = [{"key": key, "value": {"stringValue": text}} for key, text in told.items()]
    span = {
        "traceId": uuid4().hex,
        "spanId": uuid4().hex[:16],
        "name": "turn",
        "startTimeUnixNano": now,
        "endTimeUnixNano": now,
        "attributes": attributes,
    }
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "test"}, "spans": [span]}]}]}
