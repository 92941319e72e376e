"""The service on a loopback port, in a thread, with a real database behind it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

import httpx
import sqlalchemy as sa
from fastapi import FastAPI
from msgspec import Struct

from debrief.recorder.checks import ReadyRule
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import encode_record, upload_body
from debrief.recorder.service.app import Service, create_app
from debrief.recorder.service.ingest import Ingest
from debrief.recorder.service.running import (
    ServiceLimits,
    listen,
    make_server,
    url_of,
)
from debrief.recorder.storage.rows import SCOPES, ConflictError, NewTask
from debrief.recorder.storage.store import RecordStore
from debrief.redaction import Redactor
from tests.recorder.records import build, row
from tests.waiting import LONG

KEY = b"a key of the tests, and no other's"
JSON = {"Content-Type": "application/json"}
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients on loopback: reading all certificates takes longer than most tests."""


class Api(Struct):
    """A running service, and what a client of it needs."""

    url: str
    port: int
    app: FastAPI
    service: Service
    store: RecordStore
    tokens: dict[str, str]
    """The secret of a token by its scopes: ``read``, ``write``, ``export``, ``all``."""

    def client(self, scopes: str = "all", **options: Any) -> httpx.Client:
        """Return a client that has a token."""
        headers = {"Authorization": f"Bearer {self.tokens[scopes]}"}
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=LONG, verify=NO_TLS, **options
        )


def token_secrets(store: RecordStore) -> dict[str, str]:
    """Make a token for each scope, and one for all of them."""
    some = uuid4().hex[:8]
    secrets: dict[str, str] = {}
    for scope in SCOPES:
        secrets[scope] = store.add_token(f"{scope}-{some}", [scope])[1]
    return {**secrets, "all": store.add_token(f"all-{some}", list(SCOPES))[1]}


@contextmanager
def running(
    store: RecordStore,
    limits: ServiceLimits | None = None,
    rule: ReadyRule | None = None,
) -> Iterator[Api]:
    """Run the service for the length of a block."""
    limits = limits or ServiceLimits()
    service = Service(store, Ingest(Redactor(KEY), rule or ReadyRule()), limits)
    app = create_app(service)
    listener = listen("127.0.0.1", 0)
    server = make_server(app, limits)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    try:
        yield Api(url_of(listener), port, app, service, store, token_secrets(store))
    finally:
        server.should_exit = True
        thread.join(LONG)
        listener.close()
        assert not thread.is_alive()


def ensure_task(store: RecordStore, task: str = "cart") -> str:
    """Make a task where there is none."""
    with suppress(ConflictError):
        store.add_task(NewTask(id=task, name=task))
    return task


def new_record(**meta: Any) -> Record:
    """Return a consistent record with an id of its own."""
    return build(**{"session_id": uuid4(), **meta})


def body_of(record: Record, text: bytes | None = None) -> bytes:
    """Return what uploads a record, or other bytes in its place."""
    return upload_body(encode_record(record) if text is None else text, record.meta)


def upload(client: httpx.Client, record: Record) -> httpx.Response:
    """Upload a record."""
    return client.post("/sessions", content=body_of(record), headers=JSON)


def stored(client: httpx.Client, **meta: Any) -> UUID:
    """Upload a new record and return its id."""
    record = new_record(**meta)
    answer = upload(client, record)
    assert answer.status_code == 201, answer.text
    return record.meta.session_id


def fill(store: RecordStore, count: int, record: Record) -> None:
    """Store a record past the API, so many times, each under an id of its own."""
    text, id = encode_record(record), str(record.meta.session_id).encode()
    for _ in range(count):
        own = uuid4()
        store.add_session(row(id=own, text=text.replace(id, str(own).encode())))


@contextmanager
def no_writes(store: RecordStore) -> Iterator[None]:
    """Let nobody store a session for the length of a block; reading continues."""
    with store._connection() as connection:
        # Else the server ends who holds a lock for ten seconds, which is short on a busy machine.
        connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout TO 0"))
        connection.execute(sa.text("LOCK TABLE sessions IN SHARE MODE"))
        yield


def assert_problem(answer: httpx.Response, status: int, words: str = "") -> dict[str, Any]:
    """Make sure that an answer is a refusal in the one shape, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) == {
        "status",
        "title",
        "detail",
        "place",
        "reasons",
        "nextMove",
    }
    assert problem["status"] == status
    assert problem["place"] in problem["detail"]
    assert words in problem["detail"], problem["detail"]
    return problem
