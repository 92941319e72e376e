from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.recorder.contracts import NewTask
from debrief.recorder.errors import (
    ConflictError,
    CursorError,
    NotFoundError,
    StorageError,
    UnknownTaskError,
)
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage import cursors
from debrief.recorder.storage.connecting import CONNECTIONS, make_engine
from debrief.recorder.storage.rows import BenchmarkFilter, NewBenchmark, SessionFilter
from debrief.recorder.storage.store import RecordStore
from tests.postgres import execute
from tests.recorder.rows import TEXT, row, task


@pytest.fixture
def store(record_store: RecordStore) -> RecordStore:
    record_store.add_task(task())
    return record_store


@pytest.fixture
def refusing(shared_store: RecordStore) -> RecordStore:
    """A store with a task, for calls that are refused."""
    shared_store.add_task(task())
    return shared_store


def test_a_record_comes_back_byte_for_byte_and_can_be_asked_as_jsonb(store: RecordStore) -> None:
    new = row()
    store.add_session(new)
    assert store.record_text(new.id) == TEXT
    assert store.record_text(str(new.id)) == TEXT
    with store._connection() as connection:
        query = sa.text("SELECT record #>> '{meta,a}' FROM sessions")
        assert connection.execute(query).scalar_one() == "2"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_the_same_bytes_again_are_the_same_session(store: RecordStore) -> None:
    new = row()
    first = store.add_session(new)
    assert store.add_session(new) == first
    assert store.count() == 1


def test_other_bytes_under_the_same_id_are_refused(store: RecordStore) -> None:
    new = row()
    store.add_session(new)
    with pytest.raises(ConflictError, match="other bytes"):
        store.add_session(row(id=new.id, text=b"{}"))
    assert store.record_text(new.id) == TEXT


def test_ten_retries_at_once_make_one_session(store: RecordStore) -> None:
    new = row()
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(store.add_session, [new] * 10))
    assert len({answer.model_dump_json() for answer in answers}) == 1
    assert store.count() == 1


def test_a_session_of_a_task_that_nobody_made_is_refused(refusing: RecordStore) -> None:
    with pytest.raises(UnknownTaskError, match="task drawer: does not exist"):
        refusing.add_session(row(task_id="drawer"))
    assert refusing.count() == 0


@pytest.mark.parametrize(
    "given",
    [
        {"text": b'{"a": "\\u0000"}'},
        {"text": b"no json"},
        {"repo_name": "a\0b"},
        {"branch": "\ud800"},
        {"created_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))},
        {"created_at": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-14)))},
        {"created_at": datetime(2026, 1, 1)},
    ],
    ids=["NUL in JSON", "no JSON", "NUL", "surrogate", "before 1", "after 9999", "no zone"],
)
def test_what_postgres_cannot_hold_is_bad_input(
    refusing: RecordStore, given: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        refusing.add_session(row(**given))
    assert refusing.count() == 0


def test_an_unknown_session_is_not_found_and_no_uuid_is_bad_input(refusing: RecordStore) -> None:
    calls: list[Callable[[Any], object]] = [
        refusing.session,
        refusing.record_text,
        lambda id: refusing.set_status(id, "ready"),
    ]
    for call in calls:
        with pytest.raises(NotFoundError):
            call(uuid4())
        with pytest.raises(InputError, match="not a UUID"):
            call("../../etc")


def test_a_task_is_made_once_and_keeps_its_words(store: RecordStore) -> None:
    assert store.add_task(task()) == store.tasks()[0]
    with pytest.raises(ConflictError):
        store.add_task(NewTask(id="cart", name="Basket"))
    store.add_task(NewTask(id="api", name="API", description="Routes"))
    assert [found.id for found in store.tasks()] == ["api", "cart"]


def test_ready_is_refused_with_its_reasons(store: RecordStore) -> None:
    fit, unfit = row(), row(not_ready=("no test ran", "not verified"))
    store.add_session(fit)
    store.add_session(unfit)
    assert store.set_status(fit.id, "ready").status == "ready"
    assert store.set_status(fit.id, "ready").status == "ready"
    with pytest.raises(ConflictError, match="no test ran; not verified"):
        store.set_status(unfit.id, "ready")
    assert store.set_status(unfit.id, "draft").status == "draft"
    assert [found.id for found in store.sessions(SessionFilter(status="ready")).items] == [fit.id]


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
        rows = list(store.export(limit=limit))
        assert [found.id for found in rows] == ids[:limit]
        assert [found.id for found in store.export(cursor=rows[-1].cursor)] == ids[limit:]
    late = store.add_session(row()).id
    assert [found.id for found in store.sessions(cursor=cursor).items] == [late]


def test_a_row_that_commits_late_is_not_skipped(store: RecordStore) -> None:
    """Numbers are drawn in one order and committed in another."""
    with store._engine.connect() as slow:
        cursors.numbering(slow)
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
        reader.join(20)
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
    reader.join(30)
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


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_positive(refusing: RecordStore, limit: int) -> None:
    for call in (refusing.sessions, refusing.export, refusing.benchmarks):
        with pytest.raises(InputError, match="limit"):
            call(limit=limit)


def test_an_export_larger_than_what_is_handed_over_at_once_is_whole(store: RecordStore) -> None:
    texts = [json.dumps({"n": n, "text": "x\\\n" * 100_000}).encode() for n in range(12)]
    for text in texts:
        store.add_session(row(text=text))
    export = store.export()
    assert export.count == 12
    batches = list(export.batches())
    assert len(batches) > 3
    assert [found.text for batch in batches for found in batch] == texts
    assert batches[-1][-1].cursor == export.end


def test_an_abandoned_export_gives_its_connection_back(store: RecordStore) -> None:
    for _ in range(8):
        store.add_session(row(text=json.dumps({"text": "x" * 1_000_000}).encode()))
    for _ in range(CONNECTIONS + 2):
        with store.export() as export:
            next(export)
    for _ in range(CONNECTIONS + 2):
        store.export().close()
    store.check()


def test_an_export_that_breaks_off_is_an_error_and_no_shorter_file(
    store: RecordStore, postgres_server: EmbeddedPostgres
) -> None:
    for _ in range(8):
        store.add_session(row(text=json.dumps({"text": "x" * 1_000_000}).encode()))
    export = store.export()
    first = next(export)
    execute(
        postgres_server,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%'",
    )
    with pytest.raises(StorageError):
        list(export)
    assert len(list(store.export(cursor=first.cursor))) == 7


def test_connections_that_the_server_ended_are_replaced_unnoticed(
    store: RecordStore, postgres_server: EmbeddedPostgres
) -> None:
    store.add_session(row())
    execute(
        postgres_server,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE application_name = 'debrief'",
    )
    assert store.count() == 1


def test_a_request_that_the_server_ends_is_a_storage_error(
    store: RecordStore, postgres_server: EmbeddedPostgres
) -> None:
    with store._engine.connect() as holder:
        cursors.numbering(holder)
        failures: list[DebriefError] = []

        def read() -> None:
            try:
                store.sessions()
            except DebriefError as error:
                failures.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        while reader.is_alive():
            execute(
                postgres_server,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE wait_event = 'advisory'",
            )
            reader.join(0.05)
    assert [type(failure) for failure in failures] == [StorageError]


CALLS: dict[str, Callable[[RecordStore], object]] = {
    "check": lambda store: store.check(),
    "revision": lambda store: store.revision(),
    "migrate": lambda store: store.migrate(),
    "tasks": lambda store: store.tasks(),
    "add_task": lambda store: store.add_task(task()),
    "add_session": lambda store: store.add_session(row()),
    "session": lambda store: store.session(uuid4()),
    "record_text": lambda store: store.record_text(uuid4()),
    "sessions": lambda store: store.sessions(),
    "count": lambda store: store.count(),
    "holdings": lambda store: store.holdings(),
    "set_status": lambda store: store.set_status(uuid4(), "ready"),
    "export": lambda store: store.export(),
    "add_token": lambda store: store.add_token("ci", ["read"]),
    "find_token": lambda store: store.find_token("x"),
    "tokens": lambda store: store.tokens(),
    "revoke_token": lambda store: store.revoke_token("ci"),
    "add_benchmark": lambda store: store.add_benchmark(benchmark()),
    "benchmarks": lambda store: store.benchmarks(),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_says_when_the_database_is_away(name: str) -> None:
    store = RecordStore("postgresql://me:hush-hush@127.0.0.1:1/records")
    with pytest.raises(StorageError, match="debrief database status") as told:
        CALLS[name](store)
    assert "hush-hush" not in str(told.value)


def test_every_call_says_when_the_tables_are_missing(postgres_url: str) -> None:
    with RecordStore(postgres_url) as store:
        for name in CALLS.keys() - {"revision", "migrate"}:
            with pytest.raises(StorageError, match="debrief database migrate"):
                CALLS[name](store)


@pytest.mark.parametrize("url", ["", "mysql://db/x", "records", "postgresql://h:port/x"])
def test_an_address_that_is_none_is_a_setting_to_correct(url: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL"):
        make_engine(url)


def test_a_database_of_another_encoding_is_refused(postgres_server: EmbeddedPostgres) -> None:
    execute(postgres_server, "CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    store = RecordStore(postgres_server.url_of("plain"))
    with store, pytest.raises(StorageError, match="SQL_ASCII"):
        store.check()
    execute(postgres_server, "DROP DATABASE plain")


def test_a_token_is_found_by_its_secret_until_it_is_revoked(store: RecordStore) -> None:
    token, secret = store.add_token("ci", ["export", "read"])
    assert token.scopes == ("read", "export")
    found = store.find_token(secret)
    assert found is not None
    assert found.name == "ci"
    assert store.tokens()[0].last_used_at is not None
    for wrong in ("", secret[:-1], secret + "x", secret.upper(), "\0", "\ud800"):
        assert store.find_token(wrong) is None
    revoked = store.revoke_token("ci")
    assert store.find_token(secret) is None
    assert store.revoke_token("ci") == revoked
    with pytest.raises(ConflictError):
        store.add_token("ci", ["read"])
    with pytest.raises(NotFoundError):
        store.revoke_token("cd")


def test_no_secret_is_in_the_database(store: RecordStore) -> None:
    secrets = [store.add_token(f"t{number}", ["read"])[1] for number in range(3)]
    assert len(set(secrets)) == 3
    assert all(len(secret) >= 8 + 43 for secret in secrets)
    with store._connection() as connection:
        kept = str(connection.exec_driver_sql("SELECT * FROM tokens").all())
    assert not any(secret in kept for secret in secrets)


@pytest.mark.parametrize(
    ("name", "scopes"),
    [("", ["read"]), ("CI", ["read"]), ("a" * 65, ["read"]), ("ci", []), ("ci", ["admin"])],
)
def test_a_token_needs_a_name_and_scopes_that_there_are(
    refusing: RecordStore, name: str, scopes: list[Any]
) -> None:
    with pytest.raises(InputError):
        refusing.add_token(name, scopes)


def benchmark(**given: Any) -> NewBenchmark:
    return NewBenchmark(
        **{"value": 0.5, "adapter": "cart-lora", "version": "3", "metric": "pass", **given}
    )


def test_benchmarks_are_listed_by_adapter_version_task_and_session(store: RecordStore) -> None:
    session = store.add_session(row())
    details = {"seed": 7, "cases": ["a", "ü"]}
    kept = [
        store.add_benchmark(benchmark(value=0.5, n=40, task_id="cart", details=details)),
        store.add_benchmark(benchmark(value=0.75, version="4", session_id=session.id)),
        store.add_benchmark(benchmark(value=-1e300, metric="loss")),
    ]
    assert store.benchmarks().items == tuple(kept)
    assert kept[0].details == details
    cases: dict[BenchmarkFilter, list[int]] = {
        BenchmarkFilter(version="4"): [1],
        BenchmarkFilter(task_id="cart"): [0],
        BenchmarkFilter(metric="pass"): [0, 1],
        BenchmarkFilter(session_id=session.id): [1],
        BenchmarkFilter(adapter="other"): [],
    }
    for filters, expected in cases.items():
        assert store.benchmarks(filters).items == tuple(kept[number] for number in expected)
    page = store.benchmarks(limit=2)
    assert page.more
    assert store.benchmarks(cursor=page.cursor).items == (kept[2],)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"value": float("nan")}, InputError),
        ({"value": float("inf")}, InputError),
        ({"value": 1.0, "task_id": "drawer"}, UnknownTaskError),
        ({"value": 1.0, "session_id": uuid4()}, NotFoundError),
        ({"value": 1.0, "details": {"a": "\0"}}, InputError),
        ({"value": 1.0, "n": 2**40}, InputError),
    ],
    ids=["nan", "inf", "no task", "no session", "NUL", "too many"],
)
def test_a_benchmark_that_cannot_be_is_refused(
    refusing: RecordStore, given: dict[str, Any], error: type[DebriefError]
) -> None:
    with pytest.raises(error):
        refusing.add_benchmark(benchmark(**given))
    assert refusing.benchmarks().items == ()
