"""Captured prompts of a team whose transcripts and lake are in a bucket."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import fsspec
import pytest

from assets.sessions import raw_sessions
from debrief.lake import Lake, Stamp
from debrief.redaction.redactor import Redactor
from debrief.sessions.transfer import Pushed, push
from debrief.snapshots.captures import captures_beside
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from debrief.snapshots.model import PromptSnapshot, PromptSnapshotRow, SessionMetadataRow
from tests.assets.running import asset, resources
from tests.object_store import Bucket, bucket, object_store_server
from tests.sessions.test_mirroring import TOKEN, WEEK, transcript
from tests.snapshots.scenario import write

prompt_snapshots = asset("prompt_snapshots")
session_metadata = asset("session_metadata")

__all__ = ["bucket", "object_store_server"]

KEY = "6b" * 32
ELSEWHERE = "/home/kim/ledger"
PROMPTS = PromptSnapshot(main="Keep changes small.", subagents={"tester": "Run the tests."})


@pytest.fixture
def kim(tmp_path: Path) -> Path:
    """The machine of somebody who captured the prompts of one session in a repository."""
    repository = tmp_path / "kim" / "ledger"
    for session, token in (("one", ""), ("two", f" The token is {TOKEN}.")):
        folder = repository / ".debrief" / "sessions" / session
        given = {"tool": "claude-code", "recorded_at": "2026-11-03T10:00:00Z"}
        files = {"metadata.json": json.dumps({**given, "session_id": session})}
        files["prompts/main.md"] = f"{PROMPTS.main}{token}"
        files["prompts/tester.md"] = PROMPTS.subagents["tester"]
        files["claude-code/projects/private.jsonl"] = "the transcript, with all its secrets"
        write(folder, files)
        path = transcript(tmp_path / "kim" / "transcripts", session)
        path.write_text(path.read_text().replace(ELSEWHERE, str(repository)))
    return tmp_path / "kim"


def pushed(kim: Path, bucket: Bucket) -> Pushed:
    folders = [kim / "transcripts"]
    redactor = Redactor(bytes.fromhex(KEY))
    to = bucket.url("transcripts")
    return push(folders, to, "kim", redactor, kim / "home", captures=captures_beside(folders))


def taken_by(machine: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Read and place the week on a machine that shares nothing but the bucket."""
    told = {
        "DEBRIEF_HOME": str(machine),
        "DEBRIEF_LAKE": bucket.url("lake"),
        "DEBRIEF_SESSIONS": bucket.url("transcripts"),
        "DEBRIEF_REDACTION_KEY": KEY,
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize(
            [raw_sessions, prompt_snapshots, session_metadata],
            instance=instance,
            partition_key=WEEK,
            resources=resources(""),
        )
    assert done.success
    return Lake(bucket.url("lake"))


def stamps(lake: Lake) -> list[Stamp | None]:
    return [lake.stamp(table, WEEK) for table in ("prompt_snapshots", "session_metadata")]


def test_prompts_captured_on_one_machine_are_those_of_the_session_on_every_other(
    kim: Path, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed(kim, bucket)
    kim.rename(tmp_path / "away")
    lake = taken_by(tmp_path / "first", bucket, monkeypatch)
    rows = {row.session_id: row for row in lake.read("prompt_snapshots", WEEK, PromptSnapshotRow)}
    assert [row.origin for row in rows.values()] == ["recorded", "recorded"]
    assert rows["one"].prompt_fingerprint == compute_prompt_fingerprint(PROMPTS)
    assert rows["one"].note.startswith(bucket.url("transcripts", "kim", "captures-"))
    filed = {row.session_id: row for row in lake.read("session_metadata", WEEK, SessionMetadataRow)}
    assert filed["one"].prompt_fingerprint == rows["one"].prompt_fingerprint
    before = stamps(lake)
    assert stamps(taken_by(tmp_path / "second", bucket, monkeypatch)) == before


def test_captures_are_pushed_once_without_their_secrets_and_again_when_they_change(
    kim: Path, bucket: Bucket
) -> None:
    first = pushed(kim, bucket)
    assert (first.files, first.secrets) == (8, 1)
    store = fsspec.filesystem("s3")
    found = {path: store.cat_file(path) for path in store.find(bucket.name)}
    assert sum("/.debrief/sessions/" in path for path in found) == 6
    assert not any("private.jsonl" in path for path in found)
    assert not any(TOKEN.encode() in data for data in found.values())
    assert pushed(kim, bucket).files == 0
    main = kim / "ledger" / ".debrief" / "sessions" / "one" / "prompts" / "main.md"
    main.write_text("Keep changes smaller still.")
    assert pushed(kim, bucket).files == 1
