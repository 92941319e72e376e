"""Zed's threads, as its agent writes them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from debrief.errors import InputError
from debrief.sessions.model import Usage
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.zed import READER
from tests.sessions.readers.content import calls_of, prompts_of, read_all, told_in

TABLE = """
    CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT NOT NULL, updated_at TEXT NOT NULL,
        data_type TEXT NOT NULL, data BLOB NOT NULL, parent_id TEXT, folder_paths TEXT,
        folder_paths_order TEXT, created_at TEXT)
"""
SNAPSHOT = {
    "worktree_snapshots": [
        {
            "worktree_path": "/home/u/shop",
            "git_state": {
                "remote_url": "https://github.com/u/shop.git",
                "head_sha": "0123456789" * 4,
                "current_branch": "main",
                "diff": None,
            },
        }
    ],
    "timestamp": "2026-03-02T10:00:00Z",
}


def write(folder: Path, id: str, document: dict[str, Any], **more: str | bytes) -> None:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(json.dumps(document).encode())
    row = {"id": id, "summary": id, "updated_at": "2026-03-02T10:09:00+00:00"}
    row |= {"data_type": "zstd", "data": sink.getvalue().to_pybytes()} | more
    with sqlite3.connect(folder / "threads.db") as connection:
        connection.execute(TABLE.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO threads ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
        )


def use(id: str, name: str, **given: Any) -> dict[str, Any]:
    return {"ToolUse": {"id": id, "name": name, "raw_input": json.dumps(given), "input": given}}


def came(id: str, text: str, output: Any = None, *, is_error: bool = False) -> dict[str, Any]:
    content = {"Text": text}
    return {"tool_use_id": id, "is_error": is_error, "content": content, "output": output}


def test_a_thread_and_its_subagents_are_one_session(tmp_path: Path) -> None:
    diff = "@@ -1,1 +1,2 @@\n-x\n+y\n+z\n"
    edit = {"path": "shop/a.py", "display_description": "change a", "mode": "edit"}
    mention = {"uri": {"File": {"abs_path": "/home/u/shop/a.py"}}, "content": "x"}
    results = [
        came("e", "Edited a.py", {"input_path": "shop/a.py", "diff": diff}),
        came("t", "Tool canceled by user", is_error=True),
    ]
    agent = {
        "content": [
            {"Thinking": {"text": "hm", "signature": None}},
            {"Text": "I change it."},
            use("e", "edit_file", **edit),
            use("t", "terminal", command="pytest -q", cd="shop"),
            {"ToolUse": {"id": "s", "name": "spawn_agent", "input": {
                "type": "json", "value": {"message": "look"}}}},
        ],
        "tool_results": {each["tool_use_id"]: each for each in results},
    }  # fmt: skip
    asked = {"id": "u", "content": [{"Text": "change "}, {"Mention": mention}, {"Image": {}}]}
    document = {
        "version": "0.3.0",
        "title": "Change a",
        "messages": [{"User": asked}, {"Agent": agent}, "Resume", {"Agent": {
            "content": [{"Text": "Done."}], "tool_results": {}}}],
        "updated_at": "2026-03-02T10:09:00Z",
        "model": {"provider": "p", "model": "m"},
        "cumulative_token_usage": {"input_tokens": 9, "output_tokens": 3,
                                   "cache_read_input_tokens": 5},
        "initial_project_snapshot": SNAPSHOT,
    }  # fmt: skip
    write(tmp_path, "one", document, created_at="2026-03-02T10:00:00+00:00")
    child = {"version": "0.3.0", "messages": [
        {"User": {"id": "v", "content": [{"Text": "look"}]}},
        {"Agent": {"content": [{"Text": "nothing"}], "tool_results": {}}}],
        "subagent_context": {"parent_thread_id": "one", "tool_use_id": "s"}}  # fmt: skip
    write(tmp_path, "two", child, parent_id="one")
    (session,) = read_all(READER, tmp_path)
    assert (session.id, session.title, session.cwd) == ("one", "one", "/home/u/shop")
    assert (session.branch, session.base_commit) == ("main", "0123456789" * 4)
    assert (session.models, session.usage) == (("m",), Usage(9, 3, 0, 5))
    assert (prompts_of(session), session.turns[0].images) == (["change "], 1)
    assert told_in(session) == [("program", "x"), ("program", "Continue where you left off")]
    edited, ran, delegated = calls_of(session)
    assert (edited.added, edited.removed, edited.path) == (2, 1, "shop/a.py")
    assert json.loads(ran.input) == {"command": "pytest -q", "cd": "shop"}
    assert json.loads(delegated.input) == {"message": "look"}
    assert [deed.kind for deed in session.turns[0].interventions] == ["interruption"]
    assert [(each.id, each.call_id) for each in session.subagents] == [("two", "s")]


def test_a_thread_of_an_older_version_has_segments_and_a_broken_one_says_so(
    tmp_path: Path,
) -> None:
    document = {
        "version": "0.2.0",
        "summary": "Old",
        "messages": [
            {"id": 0, "role": "user", "segments": [{"type": "text", "text": "run it"}]},
            {
                "id": 1,
                "role": "assistant",
                "segments": [{"type": "text", "text": "I do."}],
                "tool_uses": [{"id": "t", "name": "terminal", "input": {"command": "ls"}}],
                "tool_results": [{"tool_use_id": "t", "is_error": False, "content": "a.py"}],
            },
        ],
    }
    write(tmp_path, "old", document)
    (session,) = read_all(READER, tmp_path)
    (call,) = calls_of(session)
    assert (prompts_of(session), call.result) == (["run it"], "a.py")
    with sqlite3.connect(tmp_path / "threads.db") as connection:
        connection.execute("UPDATE threads SET data = x'28b52ffd00'")
    (transcript,) = READER.find(walk(tmp_path))
    with pytest.raises(InputError, match="the thread old cannot be read"):
        READER.read(transcript)
