"""Discovery finds every transcript once, opens only what changed, and loses nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.readers import READERS
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.sources import Scan, default_folders, read_week, scan
from tests.sessions.scenario import MONDAY, SESSION, Log, usage, write_lines

WEEK = "2026-01-05"


def session(number: int = 1, days: float = 0, prompt: str = "Go") -> Log:
    log = Log(f"0a1b2c3d-0000-4000-8000-{number:012d}", MONDAY + timedelta(days=days))
    log.user(prompt)
    log.says("Done", id=f"m{number}", usage=usage(1, 2))
    return log


def written(folder: Path, *logs: Log) -> Path:
    for log in logs:
        log.write(folder / f"{log.session}.jsonl")
    return folder


def everything(found: Scan) -> list[Session | UnreadTranscript]:
    return [item for week in found.weeks() for item in read_week(found, week)]


def sessions(found: Scan) -> list[Session]:
    return [item for item in everything(found) if isinstance(item, Session)]


def unread(found: Scan) -> list[UnreadTranscript]:
    return [item for item in everything(found) if isinstance(item, UnreadTranscript)]


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


def test_sessions_come_by_week_sorted_by_start_and_id(tmp_path: Path) -> None:
    written(tmp_path, session(3, 1), session(1, 2), session(2, 1), session(4, 8))
    found = scan([tmp_path])
    assert found.weeks() == [WEEK, "2026-01-12"]
    assert [item.id[-1] for item in read_week(found, WEEK) if isinstance(item, Session)] == [
        "2",
        "3",
        "1",
    ]


def test_every_session_has_the_digest_of_its_redacted_form(tmp_path: Path) -> None:
    written(tmp_path, session(prompt="my password is swordfish"))
    found = scan([tmp_path])

    def redact(item: Session) -> Session:
        turns = [
            msgspec.structs.replace(t, prompt=t.prompt.replace("swordfish", "*"))
            for t in item.turns
        ]
        return msgspec.structs.replace(item, turns=tuple(turns))

    (plain,) = read_week(found, WEEK)
    (redacted,) = read_week(found, WEEK, redact)
    assert isinstance(plain, Session)
    assert isinstance(redacted, Session)
    assert redacted.turns[0].prompt == "my password is *"
    assert redacted.digest == digest_of(msgspec.structs.replace(redacted, digest=""))
    assert redacted.digest != plain.digest


def test_unchanged_files_are_not_opened_again(tmp_path: Path) -> None:
    written(tmp_path, session(1), session(2))
    (tmp_path / "notes.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "package.json").write_text("{}")
    first = scan([tmp_path])
    again = scan([tmp_path], first.entries)
    assert (first.opened, again.opened) == (4, 0)
    assert again.entries == first.entries


def test_only_what_changed_is_opened(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path, log, session(2))
    (tmp_path / "notes.jsonl").write_text('{"a": 1}\n')
    first = scan([tmp_path])
    log.user("More")
    written(tmp_path, log, session(3))
    again = scan([tmp_path], first.entries)
    assert again.opened == 2
    assert [item.prompt_count for item in sessions(again)] == [2, 1, 1]


def test_a_changed_subagents_file_means_reading_its_session_again(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path, log)
    agent = Log(log.session)
    agent.user("Look", isSidechain=True, agentId="a1")
    path = agent.write(tmp_path / log.session / "subagents" / "agent-a1.jsonl")
    first = scan([tmp_path])
    agent.says("Found", isSidechain=True, agentId="a1")
    agent.write(path)
    again = scan([tmp_path], first.entries)
    assert again.opened == 1
    assert first.digest(WEEK) != again.digest(WEEK)


def test_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    written(tmp_path, session(1), session(2))
    first = scan([tmp_path])
    (tmp_path / f"{session(2).session}.jsonl").unlink()
    again = scan([tmp_path], first.entries)
    assert len(again.entries) == 1
    assert first.digest(WEEK) != again.digest(WEEK)


def test_a_file_that_no_reader_claimed_is_asked_again_when_there_are_new_readers(
    tmp_path: Path,
) -> None:
    written(tmp_path, session(1))
    known = scan([tmp_path], readers={})
    assert [entry.source for entry in known.entries] == [""]
    assert [entry.source for entry in scan([tmp_path], known.entries).entries] == ["claude-code"]


def test_ten_thousand_unchanged_files_take_at_most_two_seconds(tmp_path: Path) -> None:
    line = session(1).lines()[0]
    for number in range(10_000):
        folder = tmp_path / f"project-{number % 100}"
        folder.mkdir(exist_ok=True)
        id = f"{uuid4()}"
        (folder / f"{id}.jsonl").write_bytes(line.replace(SESSION.encode(), id.encode()))
    first = scan([tmp_path])
    begun = time.process_time()
    again = scan([tmp_path], first.entries)
    took = time.process_time() - begun
    assert (len(again.entries), again.opened) == (10_000, 0)
    assert took < 2


def test_what_a_scan_remembers_can_be_stored_in_the_lake(tmp_path: Path) -> None:
    written(tmp_path / "logs", session(1))
    (tmp_path / "logs" / "empty.jsonl").touch()
    first = scan([tmp_path / "logs", tmp_path / "nowhere"])
    lake = Lake(str(tmp_path / "lake"))
    lake.write("scan", "transcripts", first.entries, ScanEntry)
    remembered = list(lake.read("scan", "transcripts", ScanEntry))
    assert tuple(remembered) == first.entries
    assert scan([tmp_path / "logs"], remembered).opened == 0


def test_a_copy_in_another_folder_is_the_same_session(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path / "a", log)
    log.user("And more")
    written(tmp_path / "b", log)
    (only,) = sessions(scan([tmp_path]))
    assert [turn.prompt for turn in only.turns] == ["Go", "And more"]
    assert (only.usage.output, only.api_calls) == (2, 1)
    assert len(only.transcripts) == 2


def test_a_checkpoints_copy_under_another_name_is_the_same_session(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path, log)
    log.write(tmp_path / "checkpoints" / "7" / "full.jsonl")
    (only,) = sessions(scan([tmp_path]))
    assert only.id == log.session


def test_two_parts_of_one_session_are_united_in_order(tmp_path: Path) -> None:
    log = session(1)
    later = Log(log.session, MONDAY + timedelta(days=1))
    later.user("Next day")
    later.says("Done again", id="m9", usage=usage(5, 5))
    later.records[0]["uuid"], later.records[1]["uuid"] = "n1", "n2"
    written(tmp_path / "b", log)
    written(tmp_path / "a", later)
    (only,) = sessions(scan([tmp_path]))
    assert [(turn.number, turn.prompt) for turn in only.turns] == [(1, "Go"), (2, "Next day")]
    assert (only.started, only.usage.output, only.api_calls) == (MONDAY, 7, 2)


def test_a_resumption_under_another_id_is_the_same_session(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path, log)
    resumed = session(1)
    resumed.user("Go on")
    resumed.session = session(2).session
    for record in resumed.records:
        record["sessionId"] = resumed.session
    written(tmp_path, resumed)
    (only,) = sessions(scan([tmp_path]))
    assert only.id == log.session
    assert (only.prompt_count, only.api_calls) == (2, 1)


def test_ids_that_no_tool_would_give_do_not_unite_strangers(tmp_path: Path) -> None:
    for number in (1, 2):
        log = session(number, prompt=f"Prompt {number}")
        for record in log.records:
            record["sessionId"] = "test"
        log.write(tmp_path / f"{number}" / "test.jsonl")
    found = sessions(scan([tmp_path]))
    assert [item.turns[0].prompt for item in found] == ["Prompt 1", "Prompt 2"]
    assert len({item.id for item in found}) == 2


def test_an_orphaned_subagents_file_elsewhere_joins_its_session(tmp_path: Path) -> None:
    log = session(1)
    written(tmp_path / "a", log)
    agent = Log(log.session, MONDAY + timedelta(hours=1))
    agent.user("Look", isSidechain=True, agentId="a1", uuid="x1")
    agent.says("Found", isSidechain=True, agentId="a1", uuid="x2", usage=usage(3, 3), id="am")
    agent.write(tmp_path / "b" / "agent-a1.jsonl")
    (only,) = sessions(scan([tmp_path]))
    assert [agent.id for agent in only.subagents] == ["a1"]
    assert (only.usage.input, only.api_calls) == (4, 2)


def test_every_file_ends_up_in_a_session_or_is_told(tmp_path: Path) -> None:
    written(tmp_path, session(1))
    write_lines(tmp_path / "empty.jsonl", end=b"")
    write_lines(tmp_path / "snapshots.jsonl", b'{"type":"file-history-snapshot","snapshot":{}}')
    write_lines(tmp_path / "broken.jsonl", b'{"type":"user","isSidechain":false,"mess', end=b"")
    write_lines(tmp_path / "garbage.jsonl", b"\x00\x01 not json", end=b"\n")
    write_lines(tmp_path / "other.jsonl", b'{"temperature": 21}')
    (tmp_path / "package.json").write_text("{}")
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
    }
    assert len(sessions(found)) == 1


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


def test_what_may_not_be_read_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "logs", session(1))
    secret = session(2).write(folder / "secret.jsonl")
    closed = folder / "closed"
    written(closed, session(3))
    for path in (tmp_path, *tmp_path.parents):
        if path.is_relative_to(tempfile.gettempdir()) and path != Path(tempfile.gettempdir()):
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


def test_progress_is_told(tmp_path: Path) -> None:
    written(tmp_path, *[session(number) for number in range(1, 4)])
    found_so_far: list[int] = []
    read_so_far: list[int] = []
    found = scan([tmp_path], progress=found_so_far.append)
    list(read_week(found, WEEK, progress=read_so_far.append))
    assert found_so_far[-1] == 3
    assert read_so_far == [1, 2, 3]


def test_the_usual_folders_are_those_that_exist(tmp_path: Path) -> None:
    assert default_folders(tmp_path) == []
    projects = tmp_path / ".claude" / "projects"
    projects.mkdir(parents=True)
    assert default_folders(tmp_path) == [projects]


def test_sources_are_registered_by_being_there() -> None:
    assert "claude-code" in READERS
    assert all(READERS[source].source == source for source in READERS)
    assert list(READERS) == sorted(READERS)


def test_finding_and_reading_need_no_heavy_module() -> None:
    program = (
        "import sys\n"
        "from debrief.sessions.sources import READERS\n"
        "assert len(READERS) > 1\n"
        "print(sorted({'pyarrow', 'pandas', 'dagster', 'pydantic', 'litellm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


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
