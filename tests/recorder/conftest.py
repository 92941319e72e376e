"""Stores, a shop to record and a server to send to, under the names that stories call them by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.recorder.storage.store import RecordStore
from tests.recorder.records import task
from tests.recorder.session_scenario import Records, Shop, a_shop, add_pnpm, records_server


@pytest.fixture
def store(record_store: RecordStore) -> RecordStore:
    record_store.add_task(task())
    return record_store


@pytest.fixture
def refusing(shared_store: RecordStore) -> RecordStore:
    """A store with a task, for calls that are refused."""
    shared_store.add_task(task())
    return shared_store


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("PATH", add_pnpm(tmp_path))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    return a_shop(tmp_path)


@pytest.fixture
def server() -> Iterator[Records]:
    with records_server() as served:
        yield served


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "record.json"
