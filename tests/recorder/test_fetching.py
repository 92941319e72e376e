"""Records from a server: each page complete, or fetched again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import httpx
import orjson
import pytest

from debrief.recorder.client import RecorderAwayError, RecorderClient, RecorderRefusedError
from debrief.recorder.storage.rows import SessionFilter
from debrief.recorder.storage.store import RecordStore
from debrief.retry import RetryPolicy
from tests.http_server import LoopbackServer, Reply, Request
from tests.recorder.service.helpers import (
    NO_TLS,
    Api,
    ensure_task,
    running,
    stored,
)

SOON = RetryPolicy(attempts=3, first_wait=0.01, longest_wait=0.02)


@pytest.fixture
def own(record_store: RecordStore) -> Iterator[Api]:
    ensure_task(record_store)
    ensure_task(record_store, "forms")
    with running(record_store) as api:
        yield api


def fetched(api: Api, filters: SessionFilter | None = None, url: str = "") -> list[UUID]:
    """The ids of the records that a client gets."""
    with RecorderClient(url or api.url, api.tokens["export"], SOON) as client:
        lines = list(client.lines("record", filters or SessionFilter(), {}))
    return [UUID(orjson.loads(line)["meta"]["sessionId"]) for line in lines]


class Proxy(LoopbackServer):
    """Stands between a client and a server, and spoils some of the answers."""

    def __init__(self, target: str, spoil: Callable[[int, bytes], bytes | None]) -> None:
        self.asked: list[str] = []

        def answer(request: Request) -> Reply:
            self.asked.append(request.path)
            told = {"Authorization": request.headers["Authorization"]}
            content = httpx.get(f"{target}{request.path}", headers=told, verify=NO_TLS).content
            body = spoil(len(self.asked), content)
            if body is None:
                length = {"Content-Length": str(len(content))}
                return Reply(200, content[: len(content) // 2], length)
            return Reply(200, body)

        super().__init__(answer)


def test_all_records_come_or_only_selected_ones(own: Api) -> None:
    with own.client() as client:
        draft, ready = stored(client), stored(client, task_id="forms")
        client.patch(f"/sessions/{ready}", json={"status": "ready"}).raise_for_status()
    assert fetched(own) == [draft, ready]
    assert fetched(own, SessionFilter(status="ready")) == [ready]
    assert fetched(own, SessionFilter(task_id="forms")) == [ready]
    assert fetched(own, SessionFilter(task_id="forms", status="draft")) == []
    assert fetched(own, SessionFilter(since=datetime(2099, 1, 1, tzinfo=UTC))) == []


def many(api: Api, count: int) -> set[UUID]:
    with api.client() as client:
        return {stored(client) for _ in range(count)}


def test_a_page_that_breaks_off_is_fetched_again(own: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("debrief.recorder.client.PAGE_SIZE", 2)
    ids = many(own, 5)
    with Proxy(own.url, lambda number, body: None if number == 2 else body) as proxy:
        records = fetched(own, SessionFilter(status="draft"), proxy.url)
    assert sorted(records) == sorted(ids)
    assert proxy.asked[1] == proxy.asked[2]
    assert "cursor=" in proxy.asked[1]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body[: body.rindex(b"\n", 0, -1) + 1],
        lambda body: b"\n".join(body.split(b"\n")[1:]),
        lambda body: b"",
    ],
    ids=["no count", "a line is missing", "nothing"],
)
def test_a_short_answer_is_never_taken_for_a_whole_one(
    own: Api, spoil: Callable[[bytes], bytes]
) -> None:
    many(own, 2)
    with (
        Proxy(own.url, lambda number, body: spoil(body)) as proxy,
        pytest.raises(RecorderAwayError, match="no whole page"),
    ):
        fetched(own, SessionFilter(status="draft"), proxy.url)
    assert len(proxy.asked) == SOON.attempts


def test_a_wrong_token_is_reported_at_once(own: Api) -> None:
    lines: list[str] = []
    client = RecorderClient(own.url, own.tokens["read"], SOON, report=lines.append)
    with client, pytest.raises(RecorderRefusedError, match="no export scope") as caught:
        list(client.lines("record", SessionFilter(), {}))
    assert "scope export" in caught.value.next_move
    assert lines == []
