"""A lake in an object store that is away, refuses, or is written to by others meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from msgspec import Struct
from starlette.testclient import TestClient

from debrief.door.app import Door
from debrief.errors import ConfigurationError, LakeError
from debrief.lake import Lake
from debrief.lake.files import S3_OPTIONS
from debrief.settings import load_settings
from debrief.view.app import make_app
from tests.object_store import (
    Bucket,
    ObjectStoreServer,
    bucket,
    known,
    object_store,
    object_store_server,
)
from tests.waiting import LONG

__all__ = ["bucket", "object_store_server"]


class Thing(Struct, frozen=True):
    id: str


@pytest.fixture
def server() -> Iterator[ObjectStoreServer]:
    """A server of the test's own, which may go away."""
    with object_store() as server, known(server):
        yield server


def test_a_store_that_is_away_for_a_while_costs_nothing_but_time(
    server: ObjectStoreServer,
) -> None:
    lake = Lake(f"s3://{server.bucket()}/lake")
    lake.write("things", "w", [Thing("a")], Thing)
    server.stop()
    back = threading.Timer(1.0, server.start)
    back.start()
    try:
        assert lake.write("things", "w", [Thing("b")], Thing).changed
        assert list(lake.read("things", "w", Thing)) == [Thing("b")]
    finally:
        back.join()


def test_health_says_that_the_lake_cannot_be_read(
    server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(S3_OPTIONS["config_kwargs"], "retries", {"total_max_attempts": 1})
    lake, settings = Lake(f"s3://{server.bucket()}/lake"), load_settings()
    client = TestClient(Door(make_app(lake, settings), settings, lake=lake))
    assert client.get("/health").text == "ok\n"
    asked = server.requests.total()
    assert client.get("/health").text == "ok\n"
    assert server.requests.total() == asked, "anybody may ask, and the store is not asked each time"
    monkeypatch.setattr("debrief.door.app._HEALTH_SECONDS", 0.0)
    server.stop()
    answer = client.get("/health")
    assert (answer.status_code, answer.text) == (503, "the lake cannot be read\n")


def test_a_store_that_stays_away_is_named_with_the_next_move(
    server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"s3://{server.bucket()}/lake"
    server.stop()
    monkeypatch.setitem(S3_OPTIONS["config_kwargs"], "retries", {"total_max_attempts": 1})
    with pytest.raises(LakeError, match="Could not connect") as refused:
        Lake(url).write_bytes("a.txt", b"x")
    assert refused.value.culprit == url
    assert "run the same again" in refused.value.next_move


def test_a_bucket_that_is_not_there_is_an_error_and_no_empty_lake(bucket: Bucket) -> None:
    lake = Lake("s3://nobody-made-this/lake")
    for attempt in (
        lambda: lake.write_bytes("a.txt", b"x"),
        lambda: lake.stamp("things", "w"),
        lambda: lake.partitions("things"),
        lambda: lake.names("training"),
    ):
        with pytest.raises(ConfigurationError, match="the bucket does not exist"):
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
    httpx.post(f"{server.url}/moto-api/reset-auth", content=b"0", timeout=LONG).raise_for_status()
    try:
        started = time.monotonic()
        with pytest.raises(ConfigurationError, match="access was denied") as refused:
            Lake(url).write_bytes("a.txt", b"x")
        assert time.monotonic() - started < LONG / 2
        assert "tests-secret" not in str(refused.value)
    finally:
        httpx.post(f"{server.url}/moto-api/reset-auth", content=b"1000000000", timeout=LONG)


def test_an_object_that_is_replaced_while_it_is_read_is_never_mixed_with_the_new_one(
    bucket: Bucket,
) -> None:
    lake = Lake(bucket.url("lake"))
    lake.write_bytes("big.bin", b"a" * (9 << 20))

    def read_while_it_is_replaced() -> None:
        with lake.open_bytes("big.bin") as file:
            assert file is not None
            assert file.read(10) == b"a" * 10
            lake.write_bytes("big.bin", b"b" * (9 << 20))
            file.seek(8 << 20)
            file.read(10)

    with pytest.raises(LakeError, match="replaced while it was read"):
        read_while_it_is_replaced()


def test_an_unchanged_partition_takes_one_request_and_a_read_two_more(bucket: Bucket) -> None:
    lake = Lake(bucket.url("lake"))
    lake.write("things", "w", [Thing("a")], Thing)
    before = bucket.server.requests.total()
    assert not lake.write("things", "w", [Thing("a")], Thing).changed
    assert bucket.server.requests.total() - before == 1
    assert list(lake.read("things", "w", Thing)) == [Thing("a")]
    assert bucket.server.requests.total() - before == 3


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nosuch://bucket/lake", "nosuch:// is no storage"),
        ("s4:///x", "s4:// is no storage"),
        ("ftp://ann:geheim@127.0.0.1/lake", "ftp:// is no storage"),
        ("http://example.org/lake", "http:// is no storage"),
        ("simplecache::s3://bucket/lake", "simplecache::s3:// is no storage"),
        ("s3://ann:geheim@bucket/lake", "an address with a password is not taken"),
    ],
)
def test_a_url_of_no_known_storage_or_with_a_password_is_refused(url: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as told:
        Lake(url)
    assert "geheim" not in str(told.value)
    with pytest.raises(ConfigurationError, match=reason) as told:
        load_settings({"DEBRIEF_LAKE": url})
    assert "geheim" not in str(told.value)
