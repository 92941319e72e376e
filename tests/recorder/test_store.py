from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.recorder.storage.store import RecordStore
from tests.recorder.rows import TEXT, row


def test_a_record_comes_back_byte_for_byte_and_can_be_asked_as_jsonb(store: RecordStore) -> None:
    new = row()
    store.add_session(new)
    assert store.record_text(new.id) == TEXT
    with store._connection() as connection:
        query = sa.text("SELECT record #>> '{meta,a}' FROM sessions")
        assert connection.execute(query).scalar_one() == "2"


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    value=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    ),
    ascii=st.booleans(),
)
def test_every_text_comes_back_from_the_store_and_from_an_export(
    store: RecordStore, value: dict[str, str], ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii).encode()
    new = row(text=text)
    before = store.sessions().cursor
    store.add_session(new)
    assert store.record_text(new.id) == text
    assert [(found.id, found.text) for found in store.export(cursor=before)] == [(new.id, text)]


def test_a_stored_session_tells_what_it_was_stored_with(store: RecordStore) -> None:
    far = timezone(timedelta(hours=9))
    new = row(created_at=datetime(2026, 11, 3, 1, 0, tzinfo=far), not_ready=("no test ran",))
    stored = store.add_session(new)
    assert stored.created_at == datetime(2026, 11, 2, 16, 0, tzinfo=UTC)
    assert stored.created_at.utcoffset() == timedelta(0)
    assert (stored.size, stored.sha256, stored.status) == (len(TEXT), new.sha256, "draft")
    assert stored.not_ready == ["no test ran"]
    assert store.session(new.id) == stored
    assert list(store.sessions().items) == [stored]


@pytest.mark.parametrize(
    "given",
    [
        {"text": b'{"a": "\\u0000"}'},
        {"text": b"no json"},
        {"repo_name": "a\0b"},
        {"branch": "\ud800"},
    ],
    ids=["NUL in JSON", "no JSON", "NUL", "surrogate"],
)
def test_what_postgres_cannot_hold_is_bad_input(
    refusing: RecordStore, given: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        refusing.add_session(row(**given))
    assert refusing.count() == 0
