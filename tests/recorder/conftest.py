"""Stores under the names that their stories call them by."""

from __future__ import annotations

import pytest

from debrief.recorder.storage.store import RecordStore
from tests.recorder.rows import task


@pytest.fixture
def store(record_store: RecordStore) -> RecordStore:
    record_store.add_task(task())
    return record_store


@pytest.fixture
def refusing(shared_store: RecordStore) -> RecordStore:
    """A store with a task, for calls that are refused."""
    shared_store.add_task(task())
    return shared_store
