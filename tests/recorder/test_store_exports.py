"""Listing and exporting: each session once, whatever else goes on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from debrief.errors import InputError
from debrief.recorder.storage import listing
from debrief.recorder.storage.rows import (
    CursorError,
    SessionFilter,
)
from debrief.recorder.storage.store import RecordStore
from tests.recorder.rows import row, task
from tests.waiting import LONG


def test_filters_hold_for_listing_count_and_export_alike(store: RecordStore) -> None:
    store.add_task(task("api"))
    day = datetime(2026, 11, 2, tzinfo=UTC)
    for number in range(6):
        new = row(
            task_id=("cart", "api")[number % 2],
            repo_name=f"r{number % 3}",
            created_at=day + timedelta(days=number),
        )
        store.add_session(new)
    cases = {
        SessionFilter(task_id="api"): 3,
        SessionFilter(task_id="api", repo_name="r1"): 1,
        SessionFilter(since=day + timedelta(days=2)): 4,
        SessionFilter(until=day + timedelta(days=2)): 2,
        SessionFilter(since=day + timedelta(days=9)): 0,
        SessionFilter(task_id="o'; DROP TABLE tasks; --%s"): 0,
        SessionFilter(status="draft"): 6,
    }
    for filters, count in cases.items():
        listed = [found.id for found in store.sessions(filters).items]
        export = store.export(filters)
        assert export.count == store.count(filters) == len(listed) == count
        assert [found.id for found in export] == listed
    with pytest.raises(InputError):
        store.count(SessionFilter(task_id="\0"))


def test_pages_and_exports_of_any_size_give_every_session_once(store: RecordStore) -> None:
    ids = [store.add_session(row()).id for _ in range(7)]
    for limit in (1, 2, 3, 7, 8):
        seen: list[UUID] = []
        cursor = None
        while True:
            page = store.sessions(cursor=cursor, limit=limit)
            seen += [found.id for found in page.items]
            cursor = page.cursor
            if not page.more:
                break
        assert seen == ids
        assert store.sessions(cursor=cursor).items == ()
        export = store.export(limit=limit)
        assert [found.id for found in export] == ids[:limit]
        assert [found.id for found in store.export(cursor=export.end)] == ids[limit:]
    late = store.add_session(row()).id
    assert [found.id for found in store.sessions(cursor=cursor).items] == [late]


def test_a_row_that_commits_late_is_not_skipped(store: RecordStore) -> None:
    """Numbers are drawn in one order and committed in another."""
    with store._engine.connect() as slow:
        listing.lock_numbering(slow)
        number = slow.exec_driver_sql(
            "SELECT nextval(pg_get_serial_sequence('sessions', 'number'))"
        ).scalar_one()
        fast = store.add_session(row())
        pages: list[Any] = []
        reader = threading.Thread(target=lambda: pages.append(store.sessions()))
        reader.start()
        reader.join(0.3)
        assert reader.is_alive()
        late = row()
        slow.exec_driver_sql(
            """INSERT INTO sessions (id, number, task_id, repo_name, base_ref, record_text,
                size, sha256, verified, files, validated, redactions) OVERRIDING SYSTEM VALUE
            VALUES (%(id)s, %(number)s, 'cart', 'r', repeat('1', 40), '{}', 2, 'x', true, 0, true, 0)""",
            {"id": str(late.id), "number": number},
        )
        slow.commit()
        reader.join(LONG)
    [page] = pages
    assert [found.id for found in page.items] == [late.id, fast.id]


def test_readers_miss_nothing_while_many_write(store: RecordStore) -> None:
    done = threading.Event()
    seen: list[UUID] = []

    def read() -> None:
        cursor = None
        while True:
            last = done.is_set()
            page = store.sessions(cursor=cursor, limit=5)
            seen.extend(found.id for found in page.items)
            cursor = page.cursor
            if last and not page.more:
                return

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(6) as threads:
        written = list(threads.map(lambda _: store.add_session(row()).id, range(120)))
    done.set()
    reader.join(LONG)
    assert sorted(seen) == sorted(written)


def test_who_keeps_up_by_changes_sees_a_session_again_when_its_status_is_set(
    store: RecordStore,
) -> None:
    first, second = store.add_session(row()), store.add_session(row())
    page = store.sessions(order="changed")
    assert [found.id for found in page.items] == [first.id, second.id]
    store.set_status(first.id, "ready")
    store.set_status(second.id, "draft")
    page = store.sessions(cursor=page.cursor, order="changed")
    assert [(found.id, found.status) for found in page.items] == [(first.id, "ready")]
    assert [found.id for found in store.sessions().items] == [first.id, second.id]


@pytest.mark.parametrize(
    "cursor",
    ["", "1", "zzzzzzzz-received-1", "00000000-received-1", "00000000-received-" + "f" * 40, "\0"],
    ids=repr,
)
def test_a_cursor_that_this_database_did_not_give_is_refused(
    refusing: RecordStore, cursor: str
) -> None:
    for call in (refusing.sessions, refusing.export, refusing.benchmarks):
        with pytest.raises(CursorError, match="Start again"):
            call(cursor=cursor)


def test_a_cursor_of_one_listing_is_refused_by_another(refusing: RecordStore) -> None:
    with pytest.raises(CursorError):
        refusing.sessions(cursor=refusing.sessions(order="changed").cursor)
    with pytest.raises(CursorError):
        refusing.benchmarks(cursor=refusing.sessions().cursor)
