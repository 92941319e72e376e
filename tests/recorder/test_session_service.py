"""Whole sessions against the service itself, with a real database behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.recorder.client import RecorderClient
from debrief.recorder.encoding import encode_record
from debrief.recorder.session_facts import StopOptions
from debrief.recorder.stopping import WaitingError, preflight_check, send_waiting
from debrief.recorder.storage.store import RecordStore
from debrief.settings import load_settings
from tests.recorder.service.helpers import Api, ensure_task, running
from tests.recorder.session_scenario import HASTE, Shop
from tests.waiting import LONG


@pytest.fixture
def api(record_store: RecordStore) -> Iterator[Api]:
    ensure_task(record_store)
    with running(record_store) as api:
        yield api


def client_of(api: Api) -> RecorderClient:
    return RecorderClient(api.url, api.tokens["write"], HASTE)


def test_a_session_ends_in_the_database_byte_for_byte_and_ready(shop: Shop, api: Api) -> None:
    started = shop.start(system="Be brief.")
    shop.change()
    shop.run("pnpm", "test")
    with client_of(api) as client:
        done = shop.stop(client, StopOptions(ready=True))
    assert done.receipt is not None
    assert (done.receipt.status, done.receipt.not_ready) == ("ready", ())
    with api.client("export") as reading:
        text = reading.get(f"/sessions/{started.id}/record").content
    assert text == encode_record(done.record)
    with api.client("read") as reading:
        (stored,) = reading.get("/sessions").json()["sessions"]
    assert (stored["id"], stored["status"]) == (started.id, "ready")
    assert (stored["taskId"], stored["files"], stored["validated"]) == ("cart", 3, True)


def test_a_task_that_is_not_there_makes_the_record_wait_until_it_is(shop: Shop, api: Api) -> None:
    started = shop.start(task_id="checkout")
    shop.change()
    with client_of(api) as client:
        with pytest.raises(WaitingError) as caught:
            shop.stop(client)
        assert "checkout" in caught.value.reason
        assert "--create-task" in str(caught.value)
        (sent,) = send_waiting(shop.home, client, "Checkout")
    assert (sent.session_id, sent.error) == (started.id, None)
    assert [task.name for task in api.store.tasks() if task.id == "checkout"] == ["Checkout"]


def test_what_the_service_lacks_is_known_at_the_start(api: Api, tmp_path: Path) -> None:
    def told(task: str, scope: str) -> str:
        values = {"DEBRIEF_RECORDER_URL": api.url, "DEBRIEF_RECORDER_TOKEN": api.tokens[scope]}
        settings = load_settings({"DEBRIEF_HOME": str(tmp_path), **values})
        return str(preflight_check(settings, task, LONG) or "")

    assert told("cart", "read") == ""
    assert "has no task checkout yet" in told("checkout", "read")
    assert told("checkout", "write") == "", "a token that may only write cannot look"
    api.store.revoke_token(next(t.name for t in api.store.tokens() if t.name.startswith("read")))
    assert "was revoked" in told("cart", "read")
