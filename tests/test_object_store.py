"""A lake in an object store that is away, refuses, or is written to by others meanwhile."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from tenacity import RetryCallState

from debrief.errors import ConfigurationError, LakeError
from debrief.lake import Lake
from debrief.lake.patience import LONGEST_PAUSE, PATIENCE, Patience
from tests.object_store import (
    Bucket,
    ObjectStoreServer,
    bucket,
    known,
    object_store,
    object_store_server,
)
from tests.waiting import LONG, wait_until

__all__ = ["bucket", "object_store_server"]


class Thing(Struct, frozen=True):
    id: str


@pytest.fixture
def server() -> Iterator[ObjectStoreServer]:
    """A server of the test's own, which may go away."""
    with object_store() as server, known(server):
        yield server


def test_a_store_that_is_away_for_a_while_costs_nothing_but_time(
    server: ObjectStoreServer, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(f"s3://{server.bucket()}/lake")
    lake.write("things", "w", [Thing("a")], Thing)
    server.stop()

    def come_back() -> None:
        wait_until(lambda: len(caplog.records) > 1)
        server.start()

    back = threading.Thread(target=come_back)
    back.start()
    try:
        with caplog.at_level(logging.WARNING, "debrief.progress"):
            assert lake.write("things", "w", [Thing("b")], Thing).changed
            assert list(lake.read("things", "w", Thing)) == [Thing("b")]
    finally:
        back.join()
    told = [record.getMessage() for record in caplog.records]
    assert told
    assert all(lake.url in line and "does not answer" in line for line in told)
    assert all("tried again in" in line for line in told)


@given(st.integers(1, 1_000), st.floats(0, PATIENCE - 1))
def test_a_store_may_be_away_for_more_than_a_minute(attempt: int, seconds: float) -> None:
    """However many attempts were made by then, the next one comes, and comes soon."""
    tries = Patience("s3://bucket").tries()
    state = RetryCallState(tries, None, (), {})
    state.attempt_number = attempt
    state.outcome_timestamp = state.start_time + seconds
    assert not tries.stop(state)
    assert 0 <= tries.wait(state) <= LONGEST_PAUSE
    assert PATIENCE - LONGEST_PAUSE > 60 + LONGEST_PAUSE
    state.outcome_timestamp = state.start_time + PATIENCE + 0.001
    assert tries.stop(state)


def test_a_store_that_stays_away_is_named_with_the_next_move(server: ObjectStoreServer) -> None:
    url = f"s3://{server.bucket()}/lake"
    server.stop()
    started = time.monotonic()
    with pytest.raises(LakeError) as refused:
        Lake(url, patience=1).write_bytes("a.txt", b"x")
    assert time.monotonic() - started < LONG / 2
    assert refused.value.culprit == url
    assert "was away for 1 s (Could not connect" in str(refused.value)
    assert "run the same again" in refused.value.next_move


def test_a_bucket_that_is_not_there_is_an_error_and_no_empty_lake(bucket: Bucket) -> None:
    lake = Lake("s3://nobody-made-this/lake")
    for attempt in (
        lambda: lake.write_bytes("a.txt", b"x"),
        lambda: lake.stamp("things", "w"),
        lambda: lake.partitions("things"),
        lambda: lake.names("training"),
    ):
        with pytest.raises(ConfigurationError, match="the bucket is not there"):
            attempt()


def test_missing_credentials_are_named(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(ConfigurationError, match="no credentials") as refused:
        Lake(bucket.url("lake")).write_bytes("a.txt", b"x")
    assert "AWS_ACCESS_KEY_ID" in refused.value.next_move


def test_a_key_that_is_not_known_is_denied_at_once(server: ObjectStoreServer) -> None:
    url = f"s3://{server.bucket()}/lake"
    httpx.post(f"{server.url}/moto-api/reset-auth", content=b"0").raise_for_status()
    try:
        started = time.monotonic()
        with pytest.raises(ConfigurationError, match="access was denied") as refused:
            Lake(url).write_bytes("a.txt", b"x")
        assert time.monotonic() - started < LONG / 2
        assert "tests-secret" not in str(refused.value)
    finally:
        httpx.post(f"{server.url}/moto-api/reset-auth", content=b"1000000000")


def test_an_object_that_is_replaced_while_it_is_read_is_never_mixed_with_the_new_one(
    bucket: Bucket,
) -> None:
    lake = Lake(bucket.url("lake"))
    lake.write_bytes("big.bin", b"a" * (5 << 20))
    with lake.open_bytes("big.bin") as file:
        assert file is not None
        assert file.read(10) == b"a" * 10
        lake.write_bytes("big.bin", b"b" * (5 << 20))
        file.seek(4 << 20)
        with pytest.raises(LakeError, match="written anew"):
            file.read(10)


def test_an_unchanged_partition_takes_one_request_and_a_small_read_another(bucket: Bucket) -> None:
    lake = Lake(bucket.url("lake"))
    lake.write("things", "w", [Thing("a")], Thing)
    requests = bucket.server.requests
    before = requests.total()
    assert not lake.write("things", "w", [Thing("a")], Thing).changed
    assert requests.total() - before == 1
    assert list(lake.read("things", "w", Thing)) == [Thing("a")]
    assert requests.total() - before == 2
    assert lake.write("things", "w", [Thing("b")], Thing).changed
    assert requests.total() - before == 4


@pytest.mark.parametrize(
    ("url", "reason"),
    [("nosuch://bucket/lake", "is no place that is known"), ("s4:///x", "is no place")],
)
def test_a_url_that_nothing_speaks_is_refused(url: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        Lake(url)


def test_what_killed_writers_left_on_this_machine_is_swept_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lake = Lake("memory://swept")
    old, new = tmp_path / "debrief-scratch-old.parquet", tmp_path / "debrief-scratch-new.parquet"
    other = tmp_path / "somebody-elses"
    for path in (old, new, other):
        path.write_bytes(b"x")
    for path in (old, other):
        os.utime(path, (1, 1))
    lake.write("things", "a", [Thing("1")], Thing)
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, other.name]
