"""OpenCode's databases for tests, in the shape that the program gives its tables."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

START = 1_772_445_600_000
SESSION = "ses_34fa6c8b1ffe2ZkQ9dUw7RtYbN"
CHILD = "ses_34fa6c0a2ffe8MxT4cVp1LsHjK"
OTHER = "ses_34fa6b77cffe5GyB3nKd6WqEzA"

_SESSION_COLUMNS = """
    id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text,
    slug text NOT NULL, directory text NOT NULL, path text, title text, version text NOT NULL,
    share_url text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
    tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
    tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL,
    revert text, agent text, model text, time_created integer NOT NULL,
    time_updated integer NOT NULL, time_compacting integer, time_archived integer
"""
FIRST = f"""
    CREATE TABLE session ({_SESSION_COLUMNS});
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE INDEX session_parent_idx ON session (parent_id);
    CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
    CREATE INDEX part_session_idx ON part (session_id);
"""
SECOND = f"""
    CREATE TABLE session_v2 ({_SESSION_COLUMNS}, fork_session_id text, time_idle integer);
    CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL,
        type text NOT NULL, seq integer NOT NULL, time_created integer NOT NULL,
        time_updated integer NOT NULL, data text NOT NULL);
    CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);
"""
TOKENS = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 30, "write": 4}}
"""Of every answer of the scenarios."""
DIFF = "--- a.py\n+++ a.py\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"
EDIT = {"filePath": "a.py", "oldString": "x", "newString": "y\nz"}


class Database:
    """A database that is being written, as by the program itself."""

    def __init__(self, folder: Path, schema: str = FIRST, name: str = "opencode.db") -> None:
        self.path = folder / name
        folder.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(schema)
        self._rows = 0

    def close(self) -> Path:
        """Close it as the program does when it ends; return where it is."""
        self.connection.close()
        return self.path

    def insert(self, table: str, **values: Any) -> None:
        """Add a row."""
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        self.connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values())
        )

    def session(self, id: str, table: str = "session", **more: Any) -> None:
        """Add a session."""
        facts = {"project_id": "p", "slug": "s", "directory": "/home/ann/shop", "title": "Retry"}
        times = {"time_created": START, "time_updated": START}
        self.insert(table, id=id, **{**facts, "version": "1.18.33", **times, **more})

    def message(self, session: str, role: str, *parts: Any, **more: Any) -> None:
        """Add a message with its parts, the way that OpenCode 1 keeps them."""
        self._rows += 1
        id, at = f"msg_{self._rows:03}", START + self._rows * 1000
        info = {"role": role, "time": {"created": at, "completed": at + 500}, **more}
        data = {"time_created": at, "time_updated": at + 500, "data": json.dumps(info)}
        self.insert("message", id=id, session_id=session, **data)
        for number, part in enumerate(parts):
            owners = {"message_id": id, "session_id": session}
            data = {"time_created": at, "time_updated": at, "data": json.dumps(part)}
            self.insert("part", id=f"prt_{self._rows:03}{number}", **owners, **data)

    def record(self, session: str, type: str, **data: Any) -> None:
        """Add a message the way that OpenCode 2 keeps it."""
        self._rows += 1
        at = START + self._rows * 1000
        facts = {"time": {"created": at, "completed": at + 500}, **data}
        times = {"seq": self._rows, "time_created": at, "time_updated": at}
        id = f"msg_{self._rows:03}"
        self.insert(
            "session_message", id=id, session_id=session, type=type, **times, data=json.dumps(facts)
        )


def text(words: str) -> dict[str, Any]:
    """Return a part that is text."""
    return {"type": "text", "text": words}


def tool(name: str, given: Any, output: str, **metadata: Any) -> dict[str, Any]:
    """Return a call that succeeded, in OpenCode 1's words."""
    state = {"status": "completed", "input": given, "output": output, "metadata": metadata}
    return {"type": "tool", "tool": name, "callID": f"call_{name}", "state": state}


def called(name: str, given: Any, output: str, **metadata: Any) -> dict[str, Any]:
    """Return a call that succeeded, in OpenCode 2's words."""
    content = [{"type": "text", "text": output}]
    state = {"status": "completed", "input": given, "content": content, "metadata": metadata}
    return {"type": "tool", "name": name, "id": f"call_{name}", "state": state, "time": {}}


def answered(database: Database, session: str, *parts: Any) -> None:
    """Add an answer with tokens, the way that OpenCode 1 keeps it."""
    database.message(session, "assistant", *parts, modelID="opus", tokens=TOKENS)


def first(folder: Path) -> Database:
    """Return a database of OpenCode 1: a session that was resumed, with a subagent, and another."""
    database = Database(folder)
    totals: dict[str, Any] = {"tokens_input": 30, "tokens_output": 15, "tokens_reasoning": 6}
    totals |= {"tokens_cache_read": 90, "tokens_cache_write": 12}
    database.session(SESSION, **totals)
    database.session(CHILD, parent_id=SESSION, title="Look", tokens_input=10, tokens_output=5)
    database.connection.execute(
        "UPDATE session SET tokens_reasoning = 2, tokens_cache_read = 30, tokens_cache_write = 4 "
        "WHERE id = ?",
        (CHILD,),
    )
    database.session(OTHER, time_created=START + 86_400_000 * 7)
    database.message(SESSION, "user", text("Fix it"))
    task = {"description": "Look", "subagent_type": "general", "prompt": "Read a.py"}
    answered(database, SESSION, text("Looking"), tool("task", task, "done", sessionId=CHILD))
    database.message(CHILD, "user", text("Read a.py"))
    answered(database, CHILD, tool("read", {"filePath": "a.py"}, "x"), text("It says x"))
    answered(database, SESSION, tool("edit", EDIT, "ok", diff=DIFF))
    database.message(SESSION, "user", text("And test it"))
    answered(database, SESSION, tool("bash", {"command": "make"}, "1 failed", exit=1))
    database.message(OTHER, "user", text("Hello"))
    answered(database, OTHER, text("Hello, Ann"))
    return database


def second(folder: Path) -> Database:
    """Return a database of OpenCode 2 with the same, a compaction and an interruption."""
    database = Database(folder, SECOND)
    database.session(SESSION, "session_v2", version="2.0.24")
    database.session(CHILD, "session_v2", parent_id=SESSION)
    said = {"agent": "build", "model": {"id": "opus", "providerID": "p"}, "tokens": TOKENS}
    database.record(SESSION, "model-switched", model=said["model"])
    database.record(SESSION, "user", text="Fix it", files=[{"mime": "image/png", "data": ""}])
    task = {"description": "Look", "agent": "general", "prompt": "Read a.py"}
    handed = called("subagent", task, "done", sessionID=CHILD)
    database.record(SESSION, "assistant", content=[text("Looking"), handed], **said)
    database.record(CHILD, "user", text="Read a.py")
    database.record(CHILD, "assistant", content=[text("It says x")], **said)
    files = [{"file": "a.py", "patch": DIFF, "status": "modified"}]
    edit = called("edit", {**EDIT, "path": "a.py"}, "Edited a.py", files=files)
    database.record(SESSION, "assistant", content=[edit], **said)
    database.record(SESSION, "synthetic", text="The command ended")
    database.record(
        SESSION, "compaction", status="completed", reason="auto", summary="So far", **said
    )
    database.record(SESSION, "user", text="And test it")
    run = called("shell", {"command": "make"}, "1 failed", exit=1)
    refused = called("shell", {"command": "rm a.py"}, "")
    error = {"type": "permission.rejected", "message": "The user rejected permission"}
    refused["state"] |= {"status": "error", "error": error}
    database.record(SESSION, "assistant", content=[run, {**refused, "id": "call_rm"}], **said)
    database.record(SESSION, "idle", outcome="interrupted")
    return database
