"""Transcripts on their way to an object store, and from there to any machine."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import pytest

from debrief.errors import ConfigurationError, InputError
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import scan_into, store_week
from debrief.sessions.transfer import mirror, push
from debrief.settings import split_locations
from tests.object_store import Bucket, bucket, object_store_server
from tests.sessions.readers.codex_scenario import asked, meta, said, write
from tests.sessions.readers.test_compressed import squeeze
from tests.sessions.scenario import Log

__all__ = ["bucket", "object_store_server"]

REDACTOR = Redactor(b"k" * 32)
WEEK = "2026-11-02"
TOKEN = "ghp_" + "q7RtY2vB9nM4xK8sLw3ZcF6hJ1dG5pQa0TuE"


def transcript(folder: Path, session: str, text: str = "Round amounts to cents.") -> Path:
    started = datetime(2026, 11, 3, 10, tzinfo=UTC)
    log = Log(session=session, started=started, cwd="/home/kim/ledger")
    log.user([{"type": "text", "text": text}])
    log.says(text)
    return log.write(folder / "project" / f"{session}.jsonl")


def test_places_are_separated_as_in_a_path_and_urls_stay_whole() -> None:
    assert split_locations("/a:s3://b/c:/d") == ("/a", "s3://b/c", "/d")
    assert split_locations("s3://b/c") == ("s3://b/c",)
    assert split_locations("") == ()


def test_two_machines_make_the_same_rows_of_one_store(bucket: Bucket, tmp_path: Path) -> None:
    transcript(tmp_path / "kim", "one")
    push([tmp_path / "kim"], bucket.url("transcripts"), "kim", REDACTOR, tmp_path / "home")
    lakes = []
    for name in ("first", "second"):
        places = [mirror(bucket.url("transcripts"), tmp_path / name)]
        lake = Lake(str(tmp_path / name / "lake"))
        assert not store_week(lake, scan_into(lake, places, REDACTOR), WEEK, REDACTOR)
        lakes.append(lake)
    first, second = lakes
    for name in ("raw_sessions/2026-11-02.jsonl.zst", "scan/transcripts.jsonl.zst"):
        assert first.read_bytes(name) == second.read_bytes(name)
    (session,) = first.read("raw_sessions", WEEK, Session)
    assert session.transcripts[0].path.startswith(bucket.url("transcripts", "kim", "kim-"))
    (entry,) = first.read("scan", "transcripts", ScanEntry)
    assert entry.path == session.transcripts[0].path
    third = mirror(bucket.url("transcripts"), tmp_path / "third")
    found = scan_into(first, [third], REDACTOR)
    assert store_week(first, found, WEEK, REDACTOR)


def test_only_what_is_new_or_changed_is_brought_and_what_is_gone_goes(
    bucket: Bucket, tmp_path: Path
) -> None:
    kim, home = tmp_path / "kim", tmp_path / "home"
    for name in ("one", "two", "three"):
        transcript(kim, name)
    url = bucket.url("transcripts")
    first = push([kim], url, "kim", REDACTOR, home)
    assert (first.files, first.unchanged) == (3, 0)
    files = mirror(url, tmp_path / "worker")
    assert len(list(files.rglob("*.jsonl"))) == 3
    requests = bucket.server.requests
    before = requests.total()
    assert mirror(url, tmp_path / "worker") == files
    assert requests.total() - before == 1
    transcript(kim, "two", "Round them to whole euros.")
    again = push([kim], url, "kim", REDACTOR, home)
    assert (again.files, again.unchanged) == (1, 2)
    store = fsspec.filesystem("s3")
    (gone,) = store.glob(f"{bucket.name}/transcripts/*/*/project/three.jsonl")
    store.rm_file(gone)
    mirror(url, tmp_path / "worker")
    texts = {path.stem: path.read_text() for path in files.rglob("*.jsonl")}
    assert texts.keys() == {"one", "two"}
    assert "whole euros" in texts["two"]


def test_no_secret_leaves_the_machine_and_the_transcript_reads_as_before(
    bucket: Bucket, tmp_path: Path
) -> None:
    path = transcript(tmp_path / "kim", "one", f'Use the token {TOKEN}, and say "done".')
    done = push([tmp_path / "kim"], bucket.url("t"), "kim", REDACTOR, tmp_path / "home")
    assert done.secrets == 2
    files = mirror(bucket.url("t"), tmp_path / "worker")
    (copy,) = files.rglob("*.jsonl")
    assert TOKEN not in copy.read_text()
    lines = [json.loads(line) for line in copy.read_text().splitlines()]
    assert len(lines) == len(path.read_text().splitlines())
    text = lines[0]["message"]["content"][0]["text"]
    assert text.startswith("Use the token <secret:")
    assert text.endswith('and say "done".')
    lake = Lake(str(tmp_path / "lake"))
    store_week(lake, scan_into(lake, [files], REDACTOR), WEEK, REDACTOR)
    assert [head.id for head in lake.read("raw_sessions", WEEK, SessionHead)] == ["one"]


def test_a_compressed_rollout_is_pushed_as_text_and_without_its_secrets(
    bucket: Bucket, tmp_path: Path
) -> None:
    kim = tmp_path / "kim"
    kim.mkdir()
    plain = write(kim, [meta(), *asked(1, f"use {TOKEN}"), said(2, "assistant", "done")])
    squeeze(plain)
    pushed = push([kim], bucket.url("transcripts"), "kim", REDACTOR, tmp_path / "home")
    assert (pushed.files, pushed.secrets) == (1, 2)
    (brought,) = mirror(bucket.url("transcripts"), tmp_path / "worker").rglob("rollout-*")
    assert brought.name == plain.name
    assert "<secret:" in brought.read_text()
    assert TOKEN not in brought.read_text()


def test_files_of_no_known_tool_stay_where_they_are(bucket: Bucket, tmp_path: Path) -> None:
    transcript(tmp_path / "kim", "one")
    (tmp_path / "kim" / "notes.txt").write_text("mine")
    (tmp_path / "kim" / "package.json").write_text('{"name": "ledger"}')
    done = push([tmp_path / "kim"], bucket.url("t"), "kim", REDACTOR, tmp_path / "home")
    assert done.files == 1


def test_a_line_that_is_no_text_is_pushed_as_it_is(bucket: Bucket, tmp_path: Path) -> None:
    path = transcript(tmp_path / "kim", "one")
    with path.open("ab") as file:
        file.write(b'{"type": "user", "text": "\xff\xfe"}\n{"cut')
    push([tmp_path / "kim"], bucket.url("t"), "kim", REDACTOR, tmp_path / "home")
    (copy,) = mirror(bucket.url("t"), tmp_path / "worker").rglob("*.jsonl")
    assert copy.read_bytes() == path.read_bytes()


def test_an_empty_store_and_a_missing_bucket_are_told(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no transcripts"):
        mirror(bucket.url("nothing"), tmp_path)
    with pytest.raises(ConfigurationError, match="the bucket does not exist"):
        mirror("s3://nobody-made-this/t", tmp_path)


def test_a_key_that_leads_out_of_the_mirror_is_left_where_it_is(
    bucket: Bucket, tmp_path: Path
) -> None:
    store = fsspec.filesystem("s3")
    store.pipe_file(f"{bucket.name}/t/../../evil.jsonl", b"{}\n")
    store.pipe_file(f"{bucket.name}/t/fine.jsonl", b"{}\n")
    files = mirror(bucket.url("t"), tmp_path / "worker")
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == ["fine.jsonl"]
    assert (files / "fine.jsonl").is_file()
