"""Training lines on their way out: plain, whole, or visibly broken."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from debrief.recorder.encoding import encode_record
from debrief.recorder.exporting import FORMS
from debrief.recorder.service.running import ServiceLimits
from debrief.recorder.storage.store import RecordStore
from tests.recorder.records import BEFORE, as_json, build, row
from tests.recorder.service.helpers import (
    JSON,
    Api,
    assert_problem,
    body_of,
    ensure_task,
    fill,
    new_record,
    running,
    stored,
)
from tests.waiting import wait_until


def _lines(answer: httpx.Response) -> list[Any]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert not answer.content or answer.content.endswith(b"\n")
    return [json.loads(line) for line in answer.content.split(b"\n")[:-1]]


BIG = build({**BEFORE, "big.txt": "word word\n" * 30_000})
"""A record of 300 kB."""


def test_an_export_is_the_stored_records_one_a_line(record_store: RecordStore) -> None:
    ensure_task(record_store)
    with running(record_store) as api, api.client() as client:
        records = [new_record(), new_record()]
        indented = json.dumps(as_json(records[1]), indent=1).replace("\n", "\r\n").encode()
        client.post("/sessions", content=body_of(records[0]), headers=JSON)
        client.post("/sessions", content=body_of(records[1], indented), headers=JSON)

        answer = client.get("/export.jsonl", params={"taskId": "cart"})

        assert _lines(answer) == [as_json(record) for record in records]
        assert answer.content.split(b"\n")[0] == encode_record(records[0])
        assert answer.headers["debrief-count"] == "2"
        assert_problem(client.get("/export.jsonl", params={"taskId": "other"}), 404, "POST /tasks")
        ensure_task(record_store, "other")
        assert _lines(client.get("/export.jsonl", params={"taskId": "other"})) == []
        after = {"cursor": answer.headers["debrief-cursor"]}
        assert _lines(client.get("/export.jsonl", params=after)) == []
        late = stored(client)
        assert [
            line["meta"]["sessionId"] for line in _lines(client.get("/export.jsonl", params=after))
        ] == [str(late)]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_had_and_says_what_it_left_out(
    client: httpx.Client, api: Api, form: str
) -> None:
    task = ensure_task(api.store, f"form-{form}")
    stored(client, task_id=task)
    params: dict[str, Any] = {"taskId": task, "format": form, "manifest": True}

    *lines, last = _lines(client.get("/export.jsonl", params=params))

    manifest = last["manifest"]
    assert (manifest["sessions"], manifest["lines"], manifest["withheld"]) == (1, 1, 0), manifest
    assert len(lines) == 1
    text = json.dumps(lines)
    assert "Make the total right." in text
    assert ("repo.readFile" in text) == (form == "record")


def test_a_record_that_gives_no_line_is_named_in_the_manifest(
    client: httpx.Client, api: Api
) -> None:
    task = ensure_task(api.store, "without-line")
    id = stored(client, task_id=task, contents="full")
    older = row(task_id=task, text=b'{"messages":[],"meta":{}}', verified=False)
    api.store.add_session(older)
    params: dict[str, Any] = {"taskId": task, "format": "messages", "manifest": True}

    *lines, last = _lines(client.get("/export.jsonl", params=params))

    assert len(lines) == 1
    assert last["manifest"]["withheld"] == 1
    assert last["manifest"]["reasons"][0]["id"] != str(id)


def test_an_export_that_breaks_on_the_way_cannot_be_taken_for_a_whole_one(
    record_store: RecordStore, caplog: pytest.LogCaptureFixture
) -> None:
    ensure_task(record_store)
    fill(record_store, 40, BIG)
    with running(record_store) as api:
        with api.client() as client, client.stream("GET", "/export.jsonl") as answer:
            assert answer.headers["debrief-count"] == "40"
            pieces = answer.iter_raw()
            next(pieces)
            _end_all_queries(record_store)
            with pytest.raises(httpx.RemoteProtocolError):
                for _ in pieces:
                    pass
        assert "An export broke off" in caplog.text
        wait_until(lambda: api.service.exports == 0)
        with api.client() as client:
            assert len(_lines(client.get("/export.jsonl"))) == 40


def _end_all_queries(store: RecordStore) -> None:
    with store._engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE 'FETCH%%'"
        )


def test_a_client_that_goes_away_gives_its_place_and_connection_back(
    record_store: RecordStore,
) -> None:
    ensure_task(record_store)
    fill(record_store, 40, BIG)
    with running(record_store, ServiceLimits(exports=1)) as api:
        for _ in range(3):
            with api.client() as client, client.stream("GET", "/export.jsonl") as answer:
                assert answer.status_code == 200
                next(answer.iter_raw())
            wait_until(lambda: api.service.exports == 0)
        pool: Any = record_store._engine.pool
        wait_until(lambda: pool.checkedout() == 0)


def test_more_exports_at_once_than_there_may_be_are_told_to_come_again(
    record_store: RecordStore,
) -> None:
    ensure_task(record_store)
    fill(record_store, 40, BIG)
    with (
        running(record_store, ServiceLimits(exports=1)) as api,
        api.client() as client,
        client.stream("GET", "/export.jsonl") as answer,
    ):
        pieces = answer.iter_raw()
        next(pieces)
        refusal = client.get("/export.jsonl")

    assert_problem(refusal, 503, "1 exports run already")
    assert refusal.headers["retry-after"]
