"""Files that are no transcripts, may not be read, or change underneath: told, and nothing else lost."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Head, Peek
from debrief.sessions.sources import read_week, scan
from tests.planting import EXAMPLES
from tests.sessions.scanned import WEEK, everything, session, sessions, unread, written
from tests.sessions.scenario import write_lines


@contextmanager
def an_ordinary_user() -> Iterator[None]:
    """Give up the rights of root, to whom nothing is forbidden, for the length of a block."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_every_file_ends_up_in_a_session_or_is_told(tmp_path: Path) -> None:
    written(tmp_path, session(1))
    write_lines(tmp_path / "empty.jsonl", end=b"")
    write_lines(tmp_path / "snapshots.jsonl", b'{"type":"file-history-snapshot","snapshot":{}}')
    write_lines(tmp_path / "broken.jsonl", b'{"type":"user","isSidechain":false,"mess', end=b"")
    write_lines(tmp_path / "garbage.jsonl", b"\x00\x01 not json", end=b"\n")
    write_lines(tmp_path / "other.jsonl", b'{"temperature": 21}')
    (tmp_path / "package.json").write_text("{}")
    for name in ("a.md", "b/c.md", "old.zip", "notes.sqlite", "bare/HEAD", "bare/x.md", "lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("objects", "refs"):
        (tmp_path / "bare" / name).mkdir()
    found = scan([tmp_path])
    rows = {
        Path(item.path).name: (item.expected, item.line, bool(item.reason))
        for item in unread(found)
    }
    assert rows == {
        "empty.jsonl": (True, 0, True),
        "snapshots.jsonl": (True, 0, True),
        "broken.jsonl": (False, 1, True),
        "garbage.jsonl": (False, 1, True),
        "other.jsonl": (True, 0, True),
        "package.json": (True, 0, True),
        "*.md": (True, 0, True),
        "old.zip": (True, 0, True),
        "notes.sqlite": (True, 0, True),
    }
    assert {item.week for item in unread(found) if item.reason.startswith("not read")} == {WEEK}
    assert len(sessions(found)) == 1


def test_a_reader_that_fails_costs_the_file_alone_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(head: Head, path: str) -> Peek:
        raise TypeError("'int' object is not iterable")

    written(tmp_path, session(1))
    shutil.copy(EXAMPLES["droid"], tmp_path / "d.jsonl")
    monkeypatch.setattr(READERS["droid"], "describe", describe)
    found = scan([tmp_path])
    ((path, reason),) = [(item.path, item.reason) for item in unread(found)]
    assert path == str(tmp_path / "d.jsonl")
    assert reason == "its reader failed: TypeError: 'int' object is not iterable"
    assert len(sessions(found)) == 1

    monkeypatch.setattr(READERS["droid"], "transcripts", describe)
    assert len(sessions(scan([tmp_path]))) == 1


@pytest.mark.parametrize("source", ["claude-code", "droid", "gemini"])
def test_a_byte_order_mark_is_no_reason_to_refuse_a_file(source: str, tmp_path: Path) -> None:
    example = EXAMPLES[source]
    (tmp_path / example.name).write_bytes(b"\xef\xbb\xbf" + example.read_bytes())
    found = scan([tmp_path])
    assert not unread(found)
    (read,) = sessions(found)
    assert (read.source, read.problems) == (source, ())


def test_files_beside_transcripts_are_named_as_what_they_are(tmp_path: Path) -> None:
    folder = written(tmp_path, session(1))
    for name in ("s/tool-results/a.txt", ".specstory/history/a.md", "a.cast", "a.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    reasons = {
        str(Path(item.path).relative_to(folder)): item.reason.removeprefix("not read: ")
        for item in unread(scan([folder]))
    }
    assert reasons == {
        "s/tool-results/a.txt": "long results that Claude Code keeps beside its transcripts",
        ".specstory/history/a.md": "SpecStory's Markdown, which holds a conversation without its "
        "calls",
        "a.cast": "a terminal's recording, which holds a screen and no calls",
        "a.txt": "no known session has this form",
    }


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    (row,) = unread(scan([tmp_path / "nowhere"]))
    assert (row.expected, row.reason) == (False, "there is no such folder")
    assert row.path.endswith("nowhere")


def test_a_file_can_be_named_instead_of_its_folder(tmp_path: Path) -> None:
    path = session(1).write(tmp_path / "x.jsonl")
    assert len(sessions(scan([path]))) == 1


def test_folders_within_folders_are_met_once(tmp_path: Path) -> None:
    written(tmp_path / "a" / "b", session(1))
    found = scan([tmp_path, tmp_path / "a", tmp_path / "a" / ".." / "a" / "b"])
    assert len(found.entries) == 1


def test_loops_of_symbolic_links_end_and_linked_files_are_met_once(tmp_path: Path) -> None:
    folder = written(tmp_path / "logs", session(1))
    (folder / "loop").symlink_to(folder)
    (folder / "up").symlink_to(tmp_path)
    (folder / "again.jsonl").symlink_to(folder / f"{session(1).session}.jsonl")
    (folder / "dead.jsonl").symlink_to(folder / "nobody.jsonl")
    elsewhere = written(tmp_path / "elsewhere", session(2))
    (folder / "linked").symlink_to(elsewhere)
    found = scan([folder])
    assert len(sessions(found)) == 2
    (dead,) = unread(found)
    assert dead.path.endswith("dead.jsonl")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can get to, which cannot be said of those that pytest makes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o755)
        yield Path(place)


def test_what_may_not_be_read_is_told_and_the_rest_is_read(open_folder: Path) -> None:
    folder = written(open_folder / "logs", session(1))
    secret = session(2).write(folder / "secret.jsonl")
    closed = folder / "closed"
    written(closed, session(3))
    for path in open_folder.rglob("*"):
        path.chmod(path.stat().st_mode | 0o055)
    secret.chmod(0)
    closed.chmod(0)
    try:
        with an_ordinary_user():
            found = scan([folder])
            rows = everything(found)
    finally:
        closed.chmod(0o700)
    told = {Path(row.path).name: row.reason for row in rows if isinstance(row, UnreadTranscript)}
    assert told == {
        "secret.jsonl": "no permission to read it",
        "closed": "no permission to read it",
    }
    assert sum(isinstance(row, Session) for row in rows) == 1


def test_names_with_newlines_and_names_that_are_not_utf8_are_handled(tmp_path: Path) -> None:
    session(1).write(tmp_path / "two\nlines.jsonl")
    name = os.fsencode(tmp_path) + b"/\xff.jsonl"
    shutil.copy(os.fsencode(session(2).write(tmp_path / "plain.jsonl")), name)
    found = scan([tmp_path])
    assert len(sessions(found)) == 2
    (row,) = unread(found)
    assert "not UTF-8" in row.reason
    msgspec.json.encode(found.entries)


def test_a_pipe_with_a_transcripts_name_does_not_stop_the_scan(tmp_path: Path) -> None:
    written(tmp_path, session(1))
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert len(scan([tmp_path]).entries) == 1


def test_a_file_that_grows_while_it_is_read_is_read_again_next_time(tmp_path: Path) -> None:
    log = session(1)
    path = tmp_path / f"{log.session}.jsonl"
    one, two = log.lines()
    path.write_bytes(one + b"\n" + two[:30])
    first = scan([tmp_path])
    (half,) = sessions(first)
    assert [problem.line for problem in half.problems] == [2]
    path.write_bytes(one + b"\n" + two + b"\n")
    (whole,) = sessions(scan([tmp_path], first.entries))
    assert (whole.problems, len(whole.turns[0].messages)) == ((), 1)


def test_a_file_that_vanishes_between_scan_and_reading_is_told(tmp_path: Path) -> None:
    path = session(1).write(tmp_path / "x.jsonl")
    found = scan([tmp_path])
    path.unlink()
    (row,) = everything(found)
    assert isinstance(row, UnreadTranscript)
    assert (row.expected, row.path) == (False, str(path))


def test_a_session_that_cannot_be_redacted_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, session(1, prompt="poison"), session(2))

    def redact(item: Session) -> Session:
        if item.turns[0].prompt == "poison":
            raise RuntimeError("too much")
        return item

    rows = list(read_week(scan([tmp_path]), WEEK, redact))
    assert [type(row) for row in rows] == [UnreadTranscript, Session]
    assert isinstance(rows[0], UnreadTranscript)
    assert "too much" in rows[0].reason


@pytest.mark.parametrize("text", ["{}", '{"type": "user"}', '"text"', "[]"])
def test_files_of_json_lines_that_are_no_transcripts_are_not_claimed(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "x.jsonl").write_text(text + "\n")
    assert [entry.source for entry in scan([tmp_path]).entries] == [""]


def test_a_transcripts_first_line_may_be_very_long(tmp_path: Path) -> None:
    log = session(1, prompt="x" * 300_000)
    record = log.records[0]
    log.records[0] = {"message": record.pop("message"), **record}
    written(tmp_path, log)
    assert json.loads(log.lines()[0])["message"]
    assert len(sessions(scan([tmp_path]))) == 1


def test_answers_in_a_form_that_is_not_known_are_a_failure_and_bookkeeping_is_none(
    tmp_path: Path,
) -> None:
    info = '{"info": {"id": "ses_1", "directory": "/shop"}, "messages": [%s]}'
    speaks = '{"info": {"id": "m", "said": {"role": "assistant", "text": "Done"}}, "parts": []}'
    (tmp_path / "newer.json").write_text(info % speaks)
    (tmp_path / "quiet.json").write_text(info % '{"info": {"id": "m"}, "parts": []}')
    rows = {Path(item.path).name: (item.expected, item.reason) for item in unread(scan([tmp_path]))}
    assert rows["newer.json"] == (False, "holds answers of a model in a form that is not known")
    assert rows["quiet.json"][0]
