"""Crush's database, as the program writes it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from debrief.sessions.readers.crush import READER
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of, told_in

START = 1_772_445_600
TABLES = """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
        message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
        completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0,
        updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT,
        todos TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
        parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
        is_summary_message INTEGER DEFAULT 0 NOT NULL);
"""
Part = tuple[str, dict[str, Any]]


class Database:
    """A project's database that Crush is writing."""

    def __init__(self, project: Path) -> None:
        (project / ".crush").mkdir(parents=True)
        self.connection = sqlite3.connect(project / ".crush" / "crush.db", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(TABLES)
        self._messages = 0

    def session(self, id: str, parent: str | None = None) -> None:
        self.connection.execute(
            "INSERT INTO sessions (id, parent_session_id, title, prompt_tokens, updated_at,"
            " created_at) VALUES (?, ?, ?, 900, ?, ?)",
            (id, parent, f"Title of {id}", START, START),
        )

    def say(self, session: str, role: str, *parts: Part, summary: bool = False) -> None:
        self._messages += 1
        told = json.dumps([{"type": kind, "data": data} for kind, data in parts])
        self.connection.execute(
            "INSERT INTO messages (id, session_id, role, parts, model, created_at, updated_at,"
            " is_summary_message) VALUES (?, ?, ?, ?, 'm', ?, ?, ?)",
            (f"m{self._messages}", session, role, told, START, START, summary),
        )


def text(words: str) -> Part:
    return ("text", {"text": words})


def call(id: str, name: str, **given: Any) -> Part:
    return ("tool_call", {"id": id, "name": name, "input": json.dumps(given), "finished": True})


def result(id: str, words: str, about: dict[str, Any] | None = None, error: bool = False) -> Part:
    data = {"tool_call_id": id, "content": words, "metadata": json.dumps(about or {})}
    return ("tool_result", {**data, "is_error": error})


def finish(reason: str) -> Part:
    return ("finish", {"reason": reason, "time": START + 9})


def test_a_session_is_read_from_a_projects_database(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    database = Database(project)
    database.session("s")
    image = ("binary", {"Path": "a.png", "MIMEType": "image/png", "Data": ""})
    database.say("s", "user", text("change a"), image)
    given = {"file_path": "/home/u/shop/a.py", "old_string": "x", "new_string": "y\nz"}
    said = ("reasoning", {"thinking": "hm"}), text("I change it.")
    made = call("e", "edit", **given), call("b", "bash", command="pytest -q")
    database.say("s", "assistant", *said, *made, call("g", "agent", prompt="look"))
    about = {"additions": 2, "removals": 1, "old_content": "q\nx\n", "new_content": "q\ny\nz\n"}
    ran = "1 failed\nExit code 2\n\n<cwd>/home/u/shop</cwd>"
    database.say("s", "tool", result("e", "edited", about), result("b", ran, {"end_time": 1}))
    database.say("s", "tool", result("g", "nothing there"))
    database.say("s", "assistant", call("w", "write", file_path="b.py", content="q"))
    database.say("s", "tool", result("w", "User denied permission", error=True))
    database.session("m2$$g", "s")
    database.say("m2$$g", "user", text("look"))
    database.say("m2$$g", "assistant", text("nothing there"))
    (session,) = read_all(READER, tmp_path)
    assert (session.id, session.title, session.cwd) == ("s", "Title of s", str(project))
    assert (prompts_of(session), session.turns[0].images) == (["change a"], 1)
    edit, bash, _, write = calls_of(session)
    assert (edit.added, edit.removed, edit.estimated) == (2, 1, False)
    assert (bash.exit_code, write.status) == (2, "rejected")
    assert [(each.call_id, each.prompt) for each in session.subagents] == [("g", "look")]
    assert (session.models, session.usage.output, session.problems) == (("m",), 0, ())


def test_summaries_commands_and_stops_are_no_prompts(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.session("s")
    database.say("s", "user", text("one"))
    database.say("s", "assistant", call("b", "bash", command="sleep 9"), finish("canceled"))
    canceled = "Error: user cancelled assistant tool calling"
    database.say("s", "tool", result("b", canceled, error=True))
    database.say("s", "assistant", text("We did one."), summary=True)
    shell = ("shell_command", {"command": "ls", "output": "a.py", "exit_code": 0})
    database.say("s", "user", shell)
    database.say("s", "user", text("two"))
    database.say("s", "assistant", text("Done."), finish("end_turn"))
    (session,) = read_all(READER, tmp_path)
    first, second = session.turns
    assert [deed.kind for deed in first.interventions] == ["interruption"]
    assert [each.status for each in calls_of(session)] == ["failed"]
    assert (prompts_of(session), texts_of(session)) == (["one", "two"], ["", "Done."])
    assert (session.compactions, second.messages[0].summary) == (1, "We did one.")
    assert told_in(session) == [("command", "$ ls\na.py")]


def test_earlier_versions_say_otherwise_that_the_person_refused_or_stopped(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.session("s")
    database.say("s", "user", text("one"))
    database.say("s", "assistant", call("a", "bash", command="a"), finish("permission_denied"))
    database.say("s", "tool", result("a", "Permission denied", error=True))
    database.say("s", "user", text("two"))
    database.say("s", "assistant", call("b", "bash", command="b"), finish("canceled"))
    database.say("s", "tool", result("b", "Tool execution canceled by user", error=True))
    (session,) = read_all(READER, tmp_path)
    assert [each.status for each in calls_of(session)] == ["rejected", "failed"]
    deeds = [[deed.kind for deed in turn.interventions] for turn in session.turns]
    assert deeds == [["rejection"], ["interruption"]]
