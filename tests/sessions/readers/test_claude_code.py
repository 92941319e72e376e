"""Claude Code's records become turns, messages, calls, edits and tokens as they are defined."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from debrief.keys import week_of
from debrief.sessions.model import ToolCall, Usage
from debrief.sessions.readers.base import BrokenTranscript, NoSession
from debrief.sessions.readers.claude_code import READER
from debrief.sessions.sources import scan
from tests.sessions.readers.content import calls_of, prompts_of
from tests.sessions.scenario import Log, hunk, read, usage, write_lines


@pytest.mark.parametrize(
    ("first", "second", "spent", "calls"),
    [
        ({"request": "r1"}, {"request": "r2"}, Usage(2, 3), 2),
        ({"request": "r1", "isSidechain": True, "agentId": "a1"}, {}, Usage(1, 2), 1),
        ({"model": "<synthetic>"}, {}, Usage(1, 2), 1),
    ],
    ids=["another request", "a sidechain repeats it", "the program's own words"],
)
def test_each_message_counts_once(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], spent: Usage, calls: int
) -> None:
    log = Log("Go")
    log.says("a", id="m1", usage=usage(1, 1), **first)
    log.says("b", id="m1", usage=usage(1, 2), **second)
    session = log.read(tmp_path)
    assert (session.usage, session.api_calls) == (spent, calls)


def test_a_result_may_come_before_its_call_or_never_or_alone(tmp_path: Path) -> None:
    log = Log("Go")
    log.result("c1", "early")
    log.result("elsewhere", "orphan")
    log.calls("c1", "Read", file_path="a.py")
    log.calls("c2", "Read", file_path="b.py")
    found = [(call.status, call.result) for call in calls_of(log.read(tmp_path))]
    assert found == [("ok", "early"), ("unanswered", None)]


@pytest.mark.parametrize(
    ("text", "outcome", "error", "status", "code"),
    [
        ("ok", {"stdout": "ok", "interrupted": False}, None, "ok", 0),
        ("Exit code 2\nboom", "Error: Exit code 2", True, "failed", 2),
        ("command not found", None, True, "failed", None),
        ("started", {"backgroundTaskId": "b1"}, False, "ok", None),
        ("", {"interrupted": True}, False, "ok", None),
        ("", {"returnCodeInterpretation": "No matches found"}, False, "ok", None),
    ],
    ids=["success", "failure", "failure without code", "background", "cut off", "no matches"],
)
def test_a_shell_command_has_its_exit_code_where_it_is_told(
    tmp_path: Path, text: str, outcome: Any, error: bool | None, status: str, code: int | None
) -> None:
    log = Log("Go")
    log.calls("c1", "Bash", command="make")
    log.result("c1", text, outcome, error)
    call = calls_of(log.read(tmp_path))[0]
    assert (call.status, call.exit_code) == (status, code)


def test_compaction_marks_the_turn_it_happened_in_and_between_turns_the_next(
    tmp_path: Path,
) -> None:
    log = Log("One")
    log.says("working")
    boundary = log.add("system", subtype="compact_boundary", logicalParentUuid=log.last)
    boundary["parentUuid"] = None
    log.user("This session is being continued …", isCompactSummary=True)
    log.says("still working")
    log.user("Two")
    log.user("Summary", isCompactSummary=True)
    log.user("Three")
    session = log.read(tmp_path)
    assert session.compactions == 2
    marks = [(turn.prompt, turn.compacted) for turn in session.turns]
    assert marks == [("One", True), ("Two", False), ("Three", True)]


def test_a_rewind_keeps_both_branches_and_marks_the_abandoned_one(tmp_path: Path) -> None:
    log = Log("Start")
    start = log.says("Started.")["uuid"]
    log.user("Wrong way")
    log.says("Going wrong.")
    log.user("Further wrong")
    log.user("Right way", parentUuid=start)
    log.says("Going right.")
    log.user("Further right")
    turns = log.read(tmp_path).turns
    assert [(turn.prompt, turn.rewound) for turn in turns] == [
        ("Start", False),
        ("Wrong way", True),
        ("Further wrong", True),
        ("Right way", False),
        ("Further right", False),
    ]


def test_a_chain_through_other_records_several_roots_and_cycles_are_survived(
    tmp_path: Path,
) -> None:
    log = Log("One")
    log.add("progress", data={"type": "hook_progress"})
    log.add("attachment", attachment={"type": "hook_success"})
    log.user("Two", parentUuid=None)
    log.user("Three", parentUuid="nobody")
    first, second = log.user("Four"), log.user("Five")
    first["parentUuid"], second["parentUuid"] = second["uuid"], first["uuid"]
    log.user("Six", parentUuid=second["uuid"])
    log.user("Seven", parentUuid=second["uuid"])
    assert len(prompts_of(log.read(tmp_path))) == 7


@pytest.mark.parametrize(
    ("name", "started"),
    [
        ("x", datetime(2022, 1, 3, tzinfo=UTC)),
        ("talk-2026-02-03", datetime(2026, 2, 3, tzinfo=UTC)),
        ("talk-2026-02-03T10-30-05", datetime(2026, 2, 3, 10, 30, 5, tzinfo=UTC)),
        ("talk-2026-02-33", datetime(2022, 1, 3, tzinfo=UTC)),
        ("019c2a8e-7000-7abc-8def-000000000000", datetime(2026, 2, 4, 21, 28, 23, 808000, UTC)),
    ],
)
def test_a_session_without_times_is_dated_by_its_name_and_by_no_copy(
    tmp_path: Path, name: str, started: datetime
) -> None:
    log = Log("One", session=name)
    del log.records[0]["timestamp"]
    path = log.write(tmp_path / f"{name}.jsonl")
    session = read(path)
    assert session.started == session.ended == started
    ((problem),) = session.problems
    assert problem.reason.startswith("no record tells its time")
    (entry,) = scan([tmp_path]).entries
    assert (entry.started, entry.week) == (started, week_of(started))


def test_resumed_records_that_are_written_again_count_once(tmp_path: Path) -> None:
    log = Log("One")
    log.says("two", id="m", usage=usage(1, 5))
    log.records += [dict(record, version="2.2.0") for record in log.records]
    log.records[-1]["message"] = {**log.records[-1]["message"], "usage": usage(1, 9)}
    session = log.read(tmp_path)
    assert prompts_of(session) == ["One"]
    assert session.turns[0].messages[0].text == "two"
    assert session.usage == Usage(1, 9)


def test_a_different_record_under_a_used_id_is_not_lost(tmp_path: Path) -> None:
    log = Log()
    first = log.user("One")
    log.user("Two", uuid=first["uuid"])
    assert prompts_of(log.read(tmp_path)) == ["One", "Two"]


def test_a_session_without_id_gets_its_files_name_and_beginning(tmp_path: Path) -> None:
    line = b'{"type":"user","message":{"role":"user","content":"Hi"},"isSidechain":false}'
    original = read(write_lines(tmp_path / "a" / "transcript.jsonl", line))
    copy = read(write_lines(tmp_path / "b" / "transcript.jsonl", line, line))
    other = read(write_lines(tmp_path / "c" / "transcript.jsonl", line.replace(b"Hi", b"Ho")))
    assert original.id == copy.id != other.id
    assert original.id.startswith("transcript-")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n',
        b'{"type":"queue-operation","operation":"enqueue","content":"x"}\n',
    ],
    ids=["empty", "blank lines", "snapshots alone", "bookkeeping alone"],
)
def test_a_file_that_never_held_a_session_is_told_from_a_broken_one(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(NoSession):
        read(path)


QWEN = (
    b'{"uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-03-02T09:00:00.000Z",'
    b'"type":"user","provenance":"real_user","message":{"role":"user","parts":[{"text":"Go"}]}}'
)


def test_another_tools_records_in_the_same_envelope_are_not_claimed() -> None:
    assert not READER.claims(QWEN, "a.jsonl")
    assert READER.claims(QWEN.replace(b'"parts":[{"text":"Go"}]', b'"content":"Go"'), "a.jsonl")


def test_a_file_of_prompts_that_none_can_understand_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(BrokenTranscript, match="2 prompts and answers, of which none"):
        read(write_lines(tmp_path / "x.jsonl", QWEN, QWEN.replace(b"u1", b"u2")))


def edited(tmp_path: Path, name: str, outcome: Any = None, **given: Any) -> ToolCall:
    log = Log("Go")
    log.calls("c1", name, file_path="a.py", **given)
    log.result("c1", "The file a.py has been updated.", outcome)
    return calls_of(log.read(tmp_path))[0]


@pytest.mark.parametrize("outcome", [None, "The file was updated", [], 7], ids=repr)
def test_without_a_result_object_the_input_is_compared(tmp_path: Path, outcome: Any) -> None:
    call = edited(tmp_path, "Edit", outcome, old_string="a\nb\nc", new_string="a\nB\nc\nd")
    assert (call.added, call.removed, call.estimated) == (2, 1, True)
    assert call.path == "a.py"


def test_a_file_written_over_without_a_result_object_is_compared_with_what_it_held(
    tmp_path: Path,
) -> None:
    log = Log("Go")
    log.calls("c1", "Write", file_path="a.py", content="a\nb\nc\n")
    log.result("c1", "File created successfully")
    log.calls("c2", "Edit", file_path="a.py", old_string="b", new_string="B")
    log.result("c2", "The file has been updated")
    log.calls("c3", "Write", file_path="a.py", content="a\nB\nd\n")
    log.result("c3", "The file has been updated")
    session = log.read(tmp_path)
    calls = calls_of(session)
    assert [(call.added, call.removed) for call in calls] == [(3, 0), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("error", "text"),
    [(True, "<tool_use_error>String to replace not found"), (None, "The user doesn't want to …")],
    ids=["failed", "rejected"],
)
def test_an_edit_that_was_not_carried_out_counts_nothing(
    tmp_path: Path, error: bool | None, text: str
) -> None:
    log = Log("Go")
    log.calls("c1", "Edit", file_path="a.py", old_string="a", new_string="b")
    log.result("c1", text, {"filePath": "a.py", "structuredPatch": [hunk("-a", "+b")]}, error)
    session = log.read(tmp_path)
    assert (session.lines_added, session.lines_removed) == (0, 0)


def test_a_result_told_twice_counts_once(tmp_path: Path) -> None:
    log = Log("Go")
    log.calls("c1", "Edit", file_path="a.py", old_string="a", new_string="b")
    outcome = {"filePath": "a.py", "structuredPatch": [hunk("-a", "+b")]}
    log.result("c1", "ok", outcome)
    log.result("c1", "ok", outcome)
    session = log.read(tmp_path)
    assert (session.lines_added, session.lines_removed) == (1, 1)


def test_broken_hunks_are_passed_over(tmp_path: Path) -> None:
    patch = ["no hunk", {"lines": "no list"}, {"lines": ["+a", 7, "\\ No newline at end of file"]}]
    call = edited(tmp_path, "Edit", {"filePath": ["a"], "structuredPatch": patch})
    assert (call.added, call.removed) == (1, 0)
