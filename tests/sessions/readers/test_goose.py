"""Goose's database, as the program writes it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.goose import READER
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of, told_in

START = 1_772_445_600
TABLES = """
    CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
    CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '',
        description TEXT NOT NULL DEFAULT '', session_type TEXT NOT NULL DEFAULT 'user',
        working_dir TEXT NOT NULL, created_at TIMESTAMP, updated_at TIMESTAMP,
        accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER,
        provider_name TEXT, model_config_json TEXT, parent_session_id TEXT);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT,
        session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
        created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP, tokens INTEGER,
        metadata_json TEXT);
"""


class Database:
    """A database that Goose is writing."""

    def __init__(self, folder: Path) -> None:
        self.connection = sqlite3.connect(folder / "sessions.db", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.executescript(TABLES)

    def session(
        self, id: str, *messages: tuple[str, list[Any], dict[str, Any]], **more: str
    ) -> None:
        row = {"id": id, "name": id, "working_dir": "/home/u/shop", **more}
        row |= {"created_at": "2026-03-02 10:00:00", "updated_at": "2026-03-02 10:01:00"}
        row |= {"model_config_json": '{"model_name": "m"}'}
        marks = ", ".join("?" * len(row))
        self.connection.execute(
            f"INSERT INTO sessions ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
        )
        for message in messages:
            self.say(id, *message)

    def say(self, id: str, role: str, content: list[Any], metadata: dict[str, Any]) -> None:
        self.connection.execute(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp,"
            " metadata_json) VALUES (?, ?, ?, ?, ?)",
            (id, role, json.dumps(content), START, json.dumps(metadata)),
        )


def text(words: str) -> list[Any]:
    return [{"type": "text", "text": words}]


def call(id: str, name: str, **given: Any) -> dict[str, Any]:
    value = {"name": name, "arguments": given}
    return {"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value}}


def result(id: str, words: str) -> dict[str, Any]:
    value = {"content": text(words), "isError": False}
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}}


def test_sessions_of_a_database_are_read_while_it_is_written(tmp_path: Path) -> None:
    database = Database(tmp_path)
    used = {"inputTokens": 100, "outputTokens": 5, "totalTokens": 105, "cacheReadTokens": 60}
    about = {"inference": {"requestedModel": "m/two"}, "usage": used}
    hidden = {"userVisible": False, "turnContext": True}
    edit = call("e", "edit", path="/home/u/shop/a.py", before="x\n", after="y\nz\n")
    database.session(
        "20260302_1",
        ("user", text("change a"), {}),
        ("user", text("<turn-context>it is ten</turn-context>"), hidden),
        ("assistant", [*text("So."), edit, call("d", "delegate", task="look")], about),
        ("user", [result("e", "edited"), result("d", "nothing there")], {}),
        ("assistant", text("Done."), {}),
    )
    database.session(
        "20260302_2",
        ("user", text("look"), {}),
        ("assistant", text("nothing there"), {}),
        session_type="sub_agent",
        parent_session_id="20260302_1",
    )
    database.session("20260302_3")  # nothing was said in it
    (session,) = read_all(READER, tmp_path)
    first, second = (each for turn in session.turns for each in turn.messages)
    assert (session.id, session.title, session.cwd) == ("20260302_1", "20260302_1", "/home/u/shop")
    assert prompts_of(session) == ["change a"]
    assert told_in(session) == [("program", "<turn-context>it is ten</turn-context>")]
    assert (first.usage, first.model, second.model) == (Usage(40, 5, 0, 60), "m/two", "m")
    assert [each.result for each in calls_of(session)] == ["edited", "nothing there"]
    assert (session.lines_added, session.lines_removed) == (2, 1)
    assert [(each.id, each.prompt) for each in session.subagents] == [("20260302_2", "look")]
    (before,) = READER.find(walk(tmp_path))
    database.say("20260302_2", "user", text("again"), {})
    (after,) = READER.find(walk(tmp_path))
    assert before.stamp != after.stamp
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["sessions.db", "sessions.db-shm", "sessions.db-wal"]


def test_calls_of_one_answer_are_one_message_though_each_has_a_row(tmp_path: Path) -> None:
    database = Database(tmp_path)
    used = {"inputTokens": 100, "outputTokens": 5, "totalTokens": 105}
    told = result("b", "one function")
    told["toolResult"]["value"]["_meta"] = {"subagent_session_id": "20260302_2"}
    database.session(
        "20260302_1",
        ("user", text("count"), {}),
        ("assistant", [*text("Both."), call("a", "shell", command="ls")], {"usage": used}),
        ("user", [result("a", "a.py")], {}),
        ("assistant", [call("b", "delegate", instructions="Count.")], {}),
        ("user", [told], {}),
        ("assistant", [call("c", "shell", command="wc")], {"usage": used}),
    )
    database.session(
        "20260302_2",
        ("user", text("Subagent ID: 20260302_2\n\nCount."), {}),
        ("assistant", text("one"), {}),
        session_type="sub_agent",
        parent_session_id="20260302_1",
    )
    (session,) = read_all(READER, tmp_path)
    messages = [each for turn in session.turns for each in turn.messages]
    assert [[each.id for each in message.calls] for message in messages] == [["a", "b"], ["c"]]
    assert [each.result for each in calls_of(session)] == ["a.py", "one function", None]
    assert session.usage == Usage(200, 10)
    assert [(each.call_id, each.prompt) for each in session.subagents] == [("b", "Count.")]


def test_what_a_compaction_hides_from_the_model_stays_and_its_summary_is_no_prompt(
    tmp_path: Path,
) -> None:
    gone = {"userVisible": True, "agentVisible": False}
    given = {"userVisible": False, "agentVisible": True}
    Database(tmp_path).session(
        "s",
        ("user", text("one"), gone),
        ("assistant", text("first"), gone),
        ("user", text("They did one."), given),
        ("assistant", text("Go on as if nothing had been."), given),
        ("user", text("two"), {}),
        ("assistant", text("second"), {}),
    )
    (session,) = read_all(READER, tmp_path)
    last = session.turns[-1].messages[-1]
    assert (prompts_of(session), texts_of(session)) == (["one", "two"], ["first", "second"])
    assert (session.compactions, last.summary) == (1, "They did one.")
    assert told_in(session) == [("program", "Go on as if nothing had been.")]


def test_another_programs_database_of_that_name_is_passed_over(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sessions.db") as connection:
        connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY)")
    assert read_all(READER, tmp_path) == []
