"""OpenCode's databases: read exactly, beside the program, again only where they changed."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session, UnreadTranscript, Usage
from debrief.sessions.readers import databases
from debrief.sessions.readers.databases import read_database
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.opencode import READER
from debrief.sessions.sources import default_folders, read_week, scan
from debrief.sessions.transfer import push
from tests.sessions.readers.content import prompts_of
from tests.sessions.readers.opencode_database import (
    CHILD,
    DIFF,
    EDIT,
    FIRST,
    OTHER,
    SECOND,
    SESSION,
    START,
    TOKENS,
    Database,
    answered,
    called,
    first,
    second,
    text,
)

ANSWER = Usage(10, 7, 4, 30)


def whole(*folders: Path) -> tuple[dict[str, Session], list[UnreadTranscript]]:
    """Return what a scan of the folders reads, and what it does not."""
    found = scan(folders)
    items = [item for week in found.weeks() for item in read_week(found, week)]
    sessions = {item.id: item for item in items if isinstance(item, Session)}
    return sessions, [item for item in items if isinstance(item, UnreadTranscript)]


def reasons(folder: Path) -> str:
    """Return why transcripts of a folder were not read."""
    return " | ".join(item.reason for item in whole(folder)[1])


def times_of(usage: Usage, count: int) -> Usage:
    return sum([usage] * count, Usage())


def test_totals_that_the_program_keeps_and_its_messages_do_not_make_are_reported(
    tmp_path: Path,
) -> None:
    database = first(tmp_path)
    assert whole(tmp_path)[0][SESSION].reported_usage == times_of(ANSWER, 4)
    database.connection.execute("UPDATE session SET tokens_input = 99 WHERE id = ?", (SESSION,))
    (problem,) = whole(tmp_path)[0][SESSION].problems
    assert "own total" in problem.reason


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def crash(folder: Path) -> None:
    program = (
        "import os; from pathlib import Path\n"
        "from tests.sessions.readers.opencode_database import first\n"
        f"first(Path({str(folder)!r})); os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)


@pytest.mark.parametrize("left", ["closed", "crashed", "log-alone", "empty-log", "rollback"])
def test_nothing_is_created_or_changed_beside_a_database_and_its_log_is_seen(
    left: str, tmp_path: Path
) -> None:
    if left in ("crashed", "log-alone"):
        crash(tmp_path)
    else:
        database = first(tmp_path)
        if left == "rollback":
            database.connection.execute("PRAGMA journal_mode = DELETE")
        database.close()
    if left == "log-alone":
        (tmp_path / "opencode.db-shm").unlink()
    if left == "empty-log":
        (tmp_path / "opencode.db-wal").touch()
    before = state(tmp_path)
    assert set(whole(tmp_path)[0]) == {SESSION, OTHER}
    assert state(tmp_path) == before


def test_a_program_that_writes_is_neither_waited_for_nor_disturbed(tmp_path: Path) -> None:
    database = first(tmp_path)
    answered(database, OTHER, text("One more"))
    database.connection.execute("BEGIN IMMEDIATE")
    answered(database, OTHER, text("Not whole yet"))
    names = set(state(tmp_path))
    stored = {name: data for name, data in state(tmp_path).items() if not name.endswith("-shm")}
    sessions, unread = whole(tmp_path)
    assert unread == []
    assert sessions[OTHER].turns[-1].messages[-1].text == "One more"
    assert set(state(tmp_path)) == names
    assert stored.items() <= state(tmp_path).items()
    database.connection.execute("COMMIT")
    assert whole(tmp_path)[0][OTHER].turns[-1].messages[-1].text == "Not whole yet"


def test_what_is_written_while_it_is_read_comes_with_the_next_reading(tmp_path: Path) -> None:
    database = first(tmp_path)

    def count(opened: sqlite3.Connection) -> tuple[int, int]:
        before = opened.execute("SELECT count(*) FROM message").fetchone()[0]
        database.message(OTHER, "user", text("Meanwhile"))
        return before, opened.execute("SELECT count(*) FROM message").fetchone()[0]

    before, after = read_database(str(database.path), count)
    assert before == after
    assert read_database(str(database.path), count)[0] == before + 1


def test_only_the_sessions_that_changed_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = first(tmp_path)
    known = scan([tmp_path])
    with monkeypatch.context() as patch:
        patch.setattr(databases, "_opened", None)
        assert scan([tmp_path], known.entries).entries == known.entries
    answered(database, OTHER, text("One more"))
    changed = scan([tmp_path], known.entries)
    (old, later) = known.weeks()
    assert changed.weeks() == [old, later]
    assert changed.digest(old) == known.digest(old)
    assert changed.digest(later) != known.digest(later)
    database.connection.execute(
        "UPDATE part SET data = '{}', time_updated = time_updated + 9 WHERE session_id = ?",
        (CHILD,),
    )
    assert scan([tmp_path], changed.entries).digest(old) != known.digest(old)


def test_a_session_that_was_moved_into_the_database_or_its_new_tables_is_one(
    tmp_path: Path,
) -> None:
    database = first(tmp_path)
    (transcript, _) = READER.find(walk(tmp_path))
    for number, document in enumerate(READER.documents(transcript)):
        (tmp_path / f"export-{number}.json").write_bytes(document)
    database.connection.executescript(SECOND)
    database.session(SESSION, "session_v2")
    moved = {"agent": "build", "model": {"id": "opus"}, "tokens": TOKENS}
    edit = called("edit", EDIT, "ok", diff=DIFF)
    said = {1: "Fix it", 2: [text("Looking")], 5: [edit], 6: "And test it", 7: [text("Run")]}
    for number, content in said.items():  # as the program moves them: under the same ids
        kind = "user" if isinstance(content, str) else "assistant"
        told = {"text": content} if kind == "user" else {"content": content, **moved}
        times = {"time_created": START + number * 1000, "time_updated": START}
        facts = {"time": {"created": START + number * 1000}, **told}
        database.insert(
            "session_message",
            id=f"msg_{number:03}",
            session_id=SESSION,
            type=kind,
            seq=number,
            **times,
            data=json.dumps(facts),
        )
    database.record(SESSION, "user", text="And then?")
    database.record(SESSION, "assistant", content=[text("Done")], **moved)
    session = whole(tmp_path)[0][SESSION]
    assert prompts_of(session) == ["Fix it", "And test it", "And then?"]
    assert session.usage == times_of(ANSWER, 5)
    assert [agent.id for agent in session.subagents] == [CHILD]
    assert (session.lines_added, session.lines_removed) == (2, 1)


def test_a_database_is_pushed_as_exports_without_its_secrets(tmp_path: Path) -> None:
    database = first(tmp_path / "opencode")
    token = "ghp_" + "q7RtY2vB9nM4xK8sLw3ZcF6hJ1dG5pQa0TuE"
    database.message(OTHER, "user", text(f"Use {token}"))
    store, home = tmp_path / "store", tmp_path / "home"
    store.mkdir()
    redactor = Redactor(b"k" * 32)
    done = push([tmp_path / "opencode"], store.as_uri(), "ann", redactor, home)
    assert (done.files, done.secrets) == (3, 1)
    assert all(token.encode() not in path.read_bytes() for path in store.rglob("*.json"))
    here, there = whole(tmp_path / "opencode")[0], whole(store)[0]
    assert there[SESSION].turns == here[SESSION].turns
    assert there[SESSION].usage == here[SESSION].usage
    assert len(there[SESSION].subagents) == 1
    again = push([tmp_path / "opencode"], store.as_uri(), "ann", redactor, home)
    assert (again.files, again.unchanged) == (0, 2)


def drop(statement: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        database = first(folder)
        database.connection.executescript(statement)
        database.close()

    return make


def locked(folder: Path) -> sqlite3.Connection:
    database = first(folder)
    database.connection.execute("PRAGMA journal_mode = DELETE")
    database.connection.execute("BEGIN EXCLUSIVE")
    return database.connection


def cut(folder: Path) -> None:
    path = first(folder).close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xee" * (path.stat().st_size - 4096))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (locked, "is locked by another program; close that or try again"),
        (drop("DROP TABLE part"), "its table part is missing: moved from another version in part"),
        (
            drop("ALTER TABLE message RENAME data TO content"),
            "its table message has no column data",
        ),
        (drop("ALTER TABLE session RENAME TO talk"), "it has no table of sessions"),
        (cut, "is a broken database"),
        (lambda folder: (folder / "opencode.db").write_text("no database" * 9), "no SQLite"),
        (lambda folder: (folder / "opencode.db").touch(), "is empty"),
    ],
    ids=["locked", "half-moved", "column", "to-come", "broken", "other", "empty"],
)
def test_a_database_that_cannot_be_read_is_a_failure_with_its_reason_and_costs_no_other(
    make: Callable[[Path], object], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "bad").mkdir()
    held = make(tmp_path / "bad")
    second(tmp_path / "good").close()
    sessions, unread = whole(tmp_path)
    assert set(sessions) == {SESSION}
    assert [item.expected for item in unread] == [False]
    assert reason in unread[0].reason
    assert held is None or held


def test_one_form_of_the_tables_is_read_when_the_other_is_not_whole(tmp_path: Path) -> None:
    database = second(tmp_path)
    database.connection.executescript(FIRST + "DROP TABLE part;")
    sessions, unread = whole(tmp_path)
    assert set(sessions) == {SESSION}
    assert "its table part is missing" in unread[0].reason


def test_a_lock_that_is_gone_is_noticed_though_the_file_is_the_same(tmp_path: Path) -> None:
    connection = locked(tmp_path)
    known = scan([tmp_path])
    connection.rollback()
    connection.close()
    assert len([entry for entry in scan([tmp_path], known.entries).entries if entry.own_id]) == 2


def test_rows_that_are_no_json_cost_nothing_but_themselves(tmp_path: Path) -> None:
    database = first(tmp_path)
    database.insert(
        "message", id="msg_000", session_id=OTHER, time_created=1, time_updated=1, data="{"
    )
    rows = {"session_id": OTHER, "time_created": 1, "time_updated": 1}
    database.insert("part", id="prt_x", message_id="msg_000", **rows, data=b"\xff{}")
    database.insert("part", id="prt_y", message_id="msg_999", **rows, data="[1]")
    session = whole(tmp_path)[0][OTHER]
    assert prompts_of(session) == ["Hello"]
    assert len(session.problems) == 3


def test_sessions_that_began_each_other_and_one_whose_parent_is_gone_are_read(
    tmp_path: Path,
) -> None:
    database = first(tmp_path)
    database.connection.execute("UPDATE session SET parent_id = ? WHERE id = ?", (CHILD, SESSION))
    database.connection.execute("UPDATE session SET parent_id = 'ses_gone' WHERE id = ?", (OTHER,))
    sessions, unread = whole(tmp_path)
    assert unread == []
    assert len(sessions) == 2
    assert sessions[OTHER].prompt_count == 0


def test_an_id_that_no_file_can_have_costs_no_other_session(tmp_path: Path) -> None:
    database = first(tmp_path)
    database.connection.execute("UPDATE session SET id = 'a' || char(0) WHERE id = ?", (OTHER,))
    database.close()
    sessions, unread = whole(tmp_path)
    assert list(sessions) == [SESSION]
    assert [transcript.reason for transcript in unread] == [
        "holds no session: no prompt and no answer"
    ]


def test_a_database_without_sessions_is_no_failure(tmp_path: Path) -> None:
    Database(tmp_path).close()
    (entry,) = (entry for entry in scan([tmp_path]).entries if entry.source)
    assert (entry.reason, entry.expected) == ("no session is in it", True)


def test_the_same_database_cannot_be_read_without_permission(tmp_path: Path) -> None:
    path = first(tmp_path).close()
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("nothing is forbidden to this user")
    assert "no permission" in reasons(tmp_path)


def test_a_session_that_is_gone_since_it_was_found_is_told(tmp_path: Path) -> None:
    database = first(tmp_path)
    (transcript, _) = READER.find(walk(tmp_path))
    database.connection.execute("DELETE FROM session")
    with pytest.raises(InputError, match="is in its database no more"):
        READER.read(transcript)


@pytest.mark.parametrize(
    ("variable", "folder"),
    [("XDG_DATA_HOME", "opencode"), ("CLAUDE_CONFIG_DIR", "projects"), ("CODEX_HOME", "sessions")],
)
def test_folders_that_a_variable_moves_are_searched_beside_the_usual_ones(
    variable: str, folder: str, tmp_path: Path
) -> None:
    usual = tmp_path / "home" / ".factory" / "sessions"
    moved = tmp_path / "moved" / folder
    for path in (usual, moved):
        path.mkdir(parents=True)
    environ = {variable: str(tmp_path / "moved")}
    assert set(default_folders(tmp_path / "home", environ)) == {usual, moved}
