"""Uploads that come at the same time: stored together, and each answered for itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from debrief.recorder.service.limits import Limits
from debrief.recorder.storage.store import RecordStore
from tests.recorder.service.helpers import (
    JSON,
    Api,
    assert_problem,
    body_of,
    new_record,
    running,
    upload,
)
from tests.waiting import LONG, wait_until


@contextmanager
def halted(store: RecordStore) -> Iterator[None]:
    """Let nobody store a session for the length of a block; reading goes on."""
    with store._connection() as connection:
        connection.execute(sa.text("LOCK TABLE sessions IN SHARE MODE"))
        yield


def test_what_waits_for_the_database_is_stored_by_few_transactions(api: Api) -> None:
    records = [new_record(repo_name="together") for _ in range(24)]
    size = sum(len(body_of(record)) for record in records)
    with ThreadPoolExecutor(24) as pool, api.client() as client:
        with halted(api.store):
            answers = [pool.submit(upload, client, record) for record in records]
            wait_until(lambda: api.service.limits.bodies - api.service.bodies.free == size)
            assert not any(answer.done() for answer in answers)
        sessions = [answer.result(LONG).json() for answer in answers]
        listed = client.get("/sessions", params={"repoName": "together"}).json()["sessions"]

    assert [one["id"] for one in sessions] == [str(one.meta.session_id) for one in records]
    assert sorted(one["id"] for one in listed) == sorted(one["id"] for one in sessions)
    assert len({one["receivedAt"] for one in sessions}) <= 6


def test_each_of_those_that_come_together_gets_its_own_answer(api: Api) -> None:
    kept = new_record()
    other = new_record(session_id=kept.meta.session_id, recorder="debrief 0.2.0")
    gone, secret = api.store.add_token(f"gone-{kept.meta.session_id.hex[:8]}", ["write"])
    with ThreadPoolExecutor(20) as pool, api.client() as client, api.client("read") as reader:
        assert upload(client, kept).status_code == 201
        leaving = {"Authorization": f"Bearer {secret}", **JSON}
        assert client.post("/sessions", content=body_of(kept), headers=leaving).status_code == 201
        api.store.revoke_token(gone.name)
        with halted(api.store):
            first = pool.submit(upload, client, new_record())
            time.sleep(0.1)
            good = [pool.submit(upload, client, new_record()) for _ in range(4)]
            again = [pool.submit(upload, client, kept) for _ in range(3)]
            conflict = pool.submit(upload, client, other)
            homeless = pool.submit(upload, client, new_record(task_id="nobody-made-it"))
            contrary = pool.submit(upload, client, new_record(changes=[]))
            nonsense = pool.submit(client.post, "/sessions", content=b"{", headers=JSON)
            barred = pool.submit(upload, reader, new_record())
            late = pool.submit(
                client.post, "/sessions", content=body_of(new_record()), headers=leaving
            )
            # What is refused for what it is does not wait for the others.
            for refused, status in ((contrary, 422), (nonsense, 400), (barred, 403)):
                assert_problem(refused.result(LONG), status)
        assert {one.result(LONG).status_code for one in (first, *good, *again)} == {201}
        assert_problem(conflict.result(LONG), 409, "new id")
        assert_problem(homeless.result(LONG), 404, "nobody-made-it")
        assert_problem(late.result(LONG), 401, "revoked")


def test_a_database_that_does_not_answer_in_time_is_told_and_a_retry_is_harmless(
    store: RecordStore,
) -> None:
    records = [new_record() for _ in range(6)]
    with running(store, Limits(request_seconds=0.5)) as api, api.client() as client:
        with ThreadPoolExecutor(6) as pool, halted(store):
            answers = list(pool.map(lambda record: upload(client, record), records))
        for answer in answers:
            assert_problem(answer, 503, "longer than 0.5 seconds")
            assert "retry-after" in answer.headers

        def again() -> bool:
            return all(upload(client, record).status_code == 201 for record in records)

        wait_until(again)
    assert store.count() == 6


def test_more_uploads_than_may_wait_are_told_to_come_again(store: RecordStore) -> None:
    with running(store, Limits(waiting=3)) as api, api.client() as client:
        with ThreadPoolExecutor(24) as pool:
            with halted(store):
                answers = [pool.submit(upload, client, new_record()) for _ in range(24)]
                wait_until(lambda: sum(answer.done() for answer in answers) > 0 or _full(api))
                time.sleep(0.5)
                told = [answer.result() for answer in answers if answer.done()]
            statuses = {answer.result(LONG).status_code for answer in answers}
        assert statuses <= {201, 503}
        for answer in told:
            assert_problem(answer, 503, "too many requests wait")
        assert store.count() == len(answers) - len(told)


def _full(api: Api) -> bool:
    return len(api.service.uploads._waiting) >= 3


def test_uploads_go_on_after_the_database_was_away(store: RecordStore) -> None:
    with running(store) as api, api.client() as client:
        assert upload(client, new_record()).status_code == 201
        with store._connection() as connection:
            connection.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: upload(client, new_record()), range(8)))
        assert {answer.status_code for answer in answers} <= {201, 503}
        assert upload(client, new_record()).status_code == 201
        assert store.count() == 2 + sum(answer.status_code == 201 for answer in answers)


@pytest.mark.parametrize("size", [200_000, 300_000], ids=["with others", "by itself"])
def test_records_of_any_size_are_taken(api: Api, size: int) -> None:
    record = new_record()
    # Blanks between values belong to the bytes of a record like all others.
    text = body_of(record).replace(b'"record":', b'"record":' + b" " * size)
    with api.client() as client:
        answer = client.post("/sessions", content=text, headers=JSON)

    assert answer.status_code == 201, answer.text
    assert answer.json()["id"] == str(record.meta.session_id)
