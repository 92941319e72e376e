"""Sessions that are stored together: each gets the answer that it would have got alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.recorder.contracts import StoredSession
from debrief.recorder.errors import ConflictError, StorageError, UnknownTaskError
from debrief.recorder.storage.groups import Arrival, Outcome
from debrief.recorder.storage.rows import NewRow, Scope
from debrief.recorder.storage.store import RecordStore
from tests.recorder.rows import TEXT, row
from tests.waiting import LONG, wait_until

DAMAGED: dict[str, dict[str, Any]] = {
    "task": {"task_id": "drawer"},
    "text": {"text": b"no json"},
    "NUL": {"repo_name": "a\0b"},
    "surrogate": {"branch": "\ud800"},
    "year": {"created_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))},
    "zone": {"created_at": datetime(2026, 1, 1)},
    "files": {"files": 2**31},
}
ANSWERS = {"task": UnknownTaskError, "files": InputError}


@pytest.fixture
def writer(store: RecordStore) -> str:
    return store.add_token(f"w-{uuid4().hex[:8]}", ["write"])[1]


@contextmanager
def blocked(store: RecordStore) -> Iterator[None]:
    """Let nobody store a session for the length of a block; reading goes on."""
    with store._connection() as connection:
        connection.execute(sa.text("LOCK TABLE sessions IN SHARE MODE"))
        yield


def wait_for_copies(store: RecordStore, count: int = 1) -> None:
    query = sa.text(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active'"
    )

    def copies() -> bool:
        with store._connection() as connection:
            return len(connection.execute(query).all()) >= count

    wait_until(copies)


def test_all_of_a_group_are_stored_as_each_would_be_alone(store: RecordStore, writer: str) -> None:
    far = timezone(timedelta(hours=-9, minutes=-30))
    moment = datetime(2026, 11, 3, 1, 0, 0, 123456, tzinfo=far)
    rows = [
        row(),
        row(created_at=moment, not_ready=("no test ran", 'a "quoted", {reason}', "ünï")),
        row(repo_remote=None, branch="ünï/cöde", text='{"a": "ü\\n\\\\x \\t"}'.encode()),
        row(created_at=datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=far), redactions=7),
    ]

    outcomes = store.add_sessions([Arrival(one, writer) for one in rows])

    assert len({one.received_at for one in outcomes if isinstance(one, StoredSession)}) == 1
    for one, outcome in zip(rows, outcomes, strict=True):
        assert isinstance(outcome, StoredSession)
        assert store.session(one.id) == outcome
        assert store.record_text(one.id) == one.text
        alone = store.add_session(one)
        assert alone == outcome
        assert alone.model_dump_json() == outcome.model_dump_json()


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    kinds=st.lists(
        st.tuples(
            st.sampled_from(["good", "good", "good", *DAMAGED]),
            st.integers(0, 4),
            st.sampled_from(["w", "w", "w", "revoked", "read", "unknown"]),
            st.booleans(),
        ),
        min_size=1,
        max_size=7,
    )
)
def test_a_group_is_answered_as_one_after_the_other_would_be(
    store: RecordStore, kinds: list[tuple[str, int, str, bool]]
) -> None:
    secrets = {"unknown": "debrief_" + "x" * 40}
    scopes: list[tuple[str, Scope]] = [("w", "write"), ("revoked", "write"), ("read", "read")]
    for name, scope in scopes:
        token, secrets[name] = store.add_token(f"{name}-{uuid4().hex[:8]}", [scope])
        if name == "revoked":
            store.revoke_token(token.name)

    def arrivals() -> list[Arrival]:
        ids = [uuid4() for _ in range(5)]
        made = []
        for kind, number, token, other in kinds:
            text = TEXT if not other else b'{"other": 1}'
            facts = {"id": ids[number], "text": text, **DAMAGED.get(kind, {})}
            made.append(Arrival(row(**facts), secrets[token]))
        return made

    together, alone = arrivals(), arrivals()

    outcomes = store.add_sessions(together)

    assert [_kind(one) for one in outcomes] == [_kind(store._outcome(one)) for one in alone]
    for arrival, outcome in zip(together, outcomes, strict=True):
        if isinstance(outcome, StoredSession):
            assert store.session(arrival.row.id) == outcome
    assert _stored(store, together) == [_at(alone, together, id) for id in _stored(store, alone)]


def _kind(outcome: Outcome) -> object:
    return (outcome.sha256, outcome.files) if isinstance(outcome, StoredSession) else type(outcome)


def _stored(store: RecordStore, arrivals: list[Arrival]) -> list[UUID]:
    with store._connection() as connection:
        query = sa.text("SELECT id FROM sessions WHERE id = ANY (:ids)")
        ids = [arrival.row.id for arrival in arrivals]
        found = set(connection.execute(query, {"ids": ids}).scalars())
    return list(dict.fromkeys(id for id in ids if id in found))


def _at(arrivals: list[Arrival], others: list[Arrival], id: UUID) -> UUID:
    return next(
        other.row.id
        for arrival, other in zip(arrivals, others, strict=True)
        if arrival.row.id == id
    )


@pytest.mark.parametrize("kind", DAMAGED)
def test_one_that_cannot_be_stored_keeps_none_of_the_others_out(
    store: RecordStore, writer: str, kind: str
) -> None:
    good, bad, late = row(), row(**DAMAGED[kind]), row()

    outcomes = store.add_sessions([Arrival(one, writer) for one in (good, bad, late)])

    assert isinstance(outcomes[1], ANSWERS.get(kind, InputError))
    assert [_kind(outcomes[0]), _kind(outcomes[2])] == [_kind(store.session(good.id))] * 2
    assert store.count() == 2
    assert {item.id for item in store.sessions().items} == {good.id, late.id}


def test_ids_that_are_there_already_are_answered_with_what_is_there(
    store: RecordStore, writer: str
) -> None:
    kept = row()
    first = store.add_session(kept)
    again, other, new = kept, row(id=kept.id, text=b"{}"), row()

    outcomes = store.add_sessions([Arrival(one, writer) for one in (again, other, new, new)])

    assert outcomes[0] == first
    assert isinstance(outcomes[1], ConflictError)
    assert outcomes[2] == outcomes[3] == store.session(new.id)


def test_groups_that_share_sessions_in_any_order_do_not_stand_in_each_others_way(
    store: RecordStore, writer: str
) -> None:
    rows = [row() for _ in range(12)]

    def send(number: int) -> list[Outcome]:
        turned = rows[number:] + rows[:number]
        ordered = turned if number % 2 else turned[::-1]
        outcomes = dict(
            zip(
                [one.id for one in ordered],
                store.add_sessions([Arrival(one, writer) for one in ordered]),
                strict=True,
            )
        )
        return [outcomes[one.id] for one in rows]

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(send, range(12)))

    assert all(answer == answers[0] for answer in answers)
    assert answers[0] == [store.session(one.id) for one in rows]
    assert store.count() == 12


def test_readers_see_each_session_of_groups_once_and_skip_none(
    store: RecordStore, writer: str
) -> None:
    def write(_: int) -> list[UUID]:
        made = [row() for _ in range(5)]
        store.add_sessions([Arrival(one, writer) for one in made])
        return [one.id for one in made]

    seen: list[UUID] = []
    cursor: str | None = None
    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, number) for number in range(16)]
        while True:
            over = all(one.done() for one in writing)
            page = store.sessions(cursor=cursor, limit=7)
            seen += [item.id for item in page.items]
            cursor = page.cursor
            if over and not page.more:
                break
    written = [id for one in writing for id in one.result()]
    assert len(seen) == len(set(seen)) == 80
    assert set(seen) == set(written)


def test_a_token_that_is_revoked_while_a_group_is_stored_stores_nothing(
    store: RecordStore, writer: str
) -> None:
    token, secret = store.add_token("short", ["write"])
    good, gone = row(), row()
    with ThreadPoolExecutor(1) as threads:
        with blocked(store):
            running = threads.submit(
                store.add_sessions, [Arrival(good, writer), Arrival(gone, secret)]
            )
            wait_for_copies(store)
            store.revoke_token(token.name)
        outcomes = running.result(LONG)

    assert outcomes == [store.session(good.id), None]
    assert store.count() == 1


def test_a_group_whose_connection_ends_is_told_so_and_can_come_again(
    store: RecordStore, writer: str
) -> None:
    arrivals = [Arrival(row(), writer) for _ in range(3)]
    with ThreadPoolExecutor(1) as threads, blocked(store):
        running = threads.submit(store.add_sessions, arrivals)
        wait_for_copies(store)
        with store._connection() as connection:
            connection.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE query LIKE 'COPY%' AND datname = current_database()"
                )
            )
        with pytest.raises(StorageError):
            running.result(LONG)
    assert store.count() == 0

    outcomes = store.add_sessions(arrivals)

    assert outcomes == [store.session(arrival.row.id) for arrival in arrivals]


@pytest.mark.parametrize("bad", [None, *DAMAGED])
def test_a_group_leaves_no_transaction_behind(
    store: RecordStore, writer: str, bad: str | None
) -> None:
    rows: list[NewRow] = [row(), row(**DAMAGED[bad])] if bad else [row(task_id="drawer")]
    for _ in range(20):
        store.add_sessions([Arrival(one, writer) for one in rows])

    with store._connection() as connection:
        query = sa.text(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
            " AND datname = current_database()"
        )
        assert connection.execute(query).scalar_one() == 0
    assert len(store.sessions().items) == (1 if bad else 0)
