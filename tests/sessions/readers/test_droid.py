"""Factory droid's transcripts, with their settings and their subagents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.errors import InputError
from debrief.sessions.model import Usage
from debrief.sessions.readers.base import NoSession, Transcript
from debrief.sessions.readers.droid import READER
from debrief.sessions.readers.files import walk
from tests.sessions.readers.droid_scenario import (
    START,
    calls_of,
    message,
    read_all,
    read_one,
    result,
    text,
    use,
    write,
)


def test_a_session_has_its_facts_from_its_start_and_its_tokens_from_its_settings(
    tmp_path: Path,
) -> None:
    session = read_one(
        tmp_path,
        [START, message(1, "user", [text("hello")]), message(2, "assistant", [text("hi")])],
    )
    assert (session.id, session.title, session.task, session.repository) == (
        "s1",
        "fix the retry",
        "retry-queue",
        "shop",
    )
    assert session.models == ("gpt-mini",)
    assert session.usage == Usage(900, 50, 7, 4000)
    assert [turn.prompt for turn in session.turns] == ["hello"]
    assert session.started.isoformat() == "2026-03-02T10:00:01+00:00"
    assert session.ended.isoformat() == "2026-03-02T10:00:02+00:00"
    assert len(session.transcripts) == 2
    assert session.problems == ()


def test_what_the_model_alone_or_the_screen_alone_sees_is_no_prompt(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        [
            START,
            message(1, "user", [text("the folder holds …")], visibility="llm_only"),
            message(2, "user", [text("you are offline")], visibility="user_only"),
            message(3, "user", [text("context")], id="context-9"),
            message(4, "user", [text("<system-reminder>use the todo list</system-reminder>")]),
            message(5, "user", [text("<system-reminder>x</system-reminder>"), text("do it")]),
            message(
                6,
                "user",
                [
                    text("look at @a.py"),
                    text("Contents of /home/ann/a.py (lines 1-2 of 2):\nx = 1\n"),
                    {"type": "image", "source": {}},
                ],
            ),
        ],
    )
    assert [turn.prompt for turn in session.turns] == ["do it", "look at @a.py"]
    assert [turn.images for turn in session.turns] == [0, 1]


def test_words_beside_a_tool_result_are_a_remark_and_begin_no_turn(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        [
            START,
            message(1, "user", "go"),
            message(2, "assistant", [use("Read", "c1", file_path="a.py")]),
            message(3, "user", [result("c1", "x = 1"), text("that is the wrong file")]),
        ],
    )
    (turn,) = session.turns
    assert [(each.kind, each.text) for each in turn.interventions] == [
        ("remark", "that is the wrong file")
    ]


@pytest.mark.parametrize(
    ("name", "given", "outcome", "path", "added", "removed"),
    [
        ("Create", {"file_path": "a.py", "content": "x\ny\n"}, "created", "a.py", 2, 0),
        ("Edit", {"file_path": "a.py", "old_str": "x\ny", "new_str": "x\nz"}, "", "a.py", 1, 1),
        (
            "MultiEdit",
            {"file_path": "a.py", "changes": [{"old_str": "p", "new_str": "q\nr"}] * 2},
            "",
            "a.py",
            4,
            2,
        ),
        (
            "ApplyPatch",
            {
                "input": "*** Begin Patch\n*** Update File: a.py\n@@ def f\n-x\n+y\n+z\n c\n"
                "*** End Patch"
            },
            '{"success":true}',
            "a.py",
            2,
            1,
        ),
        (
            "Edit",
            {"file_path": "a.py", "old_str": "long", "new_str": "short"},
            json.dumps({"success": True, "diff": "--- a\n+++ b\n@@ -9,1 +9,1 @@\n-long\n+short\n"}),
            "a.py",
            1,
            1,
        ),
        ("Read", {"file_path": "a.py"}, "x", None, 0, 0),
    ],
    ids=["create", "edit", "several-edits", "patch", "told-by-the-result", "no-edit"],
)
def test_growth_is_counted_from_the_edits(
    tmp_path: Path,
    name: str,
    given: dict[str, Any],
    outcome: str,
    path: str | None,
    added: int,
    removed: int,
) -> None:
    session = read_one(
        tmp_path,
        [
            START,
            message(1, "user", "go"),
            message(2, "assistant", [use(name, "c1", **given)]),
            message(3, "user", [result("c1", outcome)]),
        ],
    )
    (call,) = calls_of(session)
    assert (call.status, call.path, call.added, call.removed) == ("ok", path, added, removed)
    assert (session.lines_added, session.lines_removed) == (added, removed)
    assert call.patch.startswith("@@ -") == (path is not None)


@pytest.mark.parametrize(
    ("name", "content", "is_error", "status", "code"),
    [
        ("Execute", "2 passed\n\n[Process exited with code 0]", False, "ok", 0),
        (
            "Execute",
            "Error: Command failed (exit code: 2)\nno such file",
            True,
            "failed",
            2,
        ),
        ("Execute", "1 failed\n[Process exited with code 1]", False, "failed", 1),
        ("Edit", '{"success":false,"error":"not found"}', False, "failed", None),
        ("Edit", "The tool call was rejected by the user", True, "rejected", None),
    ],
    ids=["passes", "fails-loudly", "fails-by-code", "says-no-success", "refused"],
)
def test_a_result_tells_how_the_call_ended(
    tmp_path: Path, name: str, content: str, is_error: bool, status: str, code: int | None
) -> None:
    given = {"file_path": "a.py", "old_str": "x", "new_str": "y", "command": "make test"}
    session = read_one(
        tmp_path,
        [
            START,
            message(1, "user", "go"),
            message(2, "assistant", [use(name, "c1", **given)]),
            message(3, "user", [result("c1", content, is_error)]),
        ],
    )
    (call,) = calls_of(session)
    assert (call.status, call.exit_code, call.added) == (status, code, int(status == "never"))
    kinds = [each.kind for turn in session.turns for each in turn.interventions]
    assert kinds == (["rejection"] if status == "rejected" else [])


def test_calls_without_results_and_results_without_calls_are_both_told(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        [
            START,
            message(1, "user", "go"),
            message(2, "assistant", [use("Read", "c1", file_path="a.py")]),
            message(3, "user", [result("elsewhere", "x")]),
        ],
    )
    assert [call.status for call in calls_of(session)] == ["unanswered"]
    assert [each.reason for each in session.problems] == ["1 tool results without their calls"]


def test_an_interruption_that_is_noted_twice_is_one_and_a_compaction_marks_its_turn(
    tmp_path: Path,
) -> None:
    session = read_one(
        tmp_path,
        [
            START,
            message(1, "user", "go"),
            message(2, "assistant", [text("working")]),
            {"type": "agent_turn_outcome", "reason": "interrupted"},
            message(3, "user", [text("[Request interrupted by user]")]),
            {"type": "compaction_state", "timestamp": "2026-03-02T10:00:04Z"},
            message(5, "user", "go on"),
            message(6, "assistant", [text("done")]),
        ],
    )
    first, second = session.turns
    assert [each.kind for each in first.interventions] == ["interruption"]
    assert (first.compacted, second.compacted, session.compactions) == (False, True, 1)


def test_settings_that_are_missing_or_broken_are_told_and_messages_tokens_stand_in(
    tmp_path: Path,
) -> None:
    records = [START, message(1, "user", "go"), message(2, "assistant", [text("ok")])]
    missing = read_one(tmp_path, records, settings=None)
    assert [each.reason for each in missing.problems] == [
        "no settings with token counts beside it: tokens are not known"
    ]
    (tmp_path / "s1.settings.json").write_text('{"tokenUsage": ')
    (broken,) = read_all(tmp_path)
    assert any(each.path.endswith(".settings.json") for each in broken.problems)
    records[2]["message"]["usage"] = {"input_tokens": 5, "output_tokens": 2}
    assert read_one(tmp_path, records, settings={}).usage == Usage(5, 2, 0, 0)


def test_broken_lines_cost_nothing_but_themselves(tmp_path: Path) -> None:
    good = [json.dumps(message(number, "user", f"prompt {number}")) for number in range(1, 6)]
    doubled = good[1] + good[2]
    bad_bytes = good[3].encode().replace(b"prompt 4", b"prompt \xff4")
    lines = [
        json.dumps(START).encode(),
        good[0].encode(),
        good[0].encode(),
        doubled.encode(),
        bad_bytes,
        b'{"type":"hologram","id":"x"}',
        b"[" * 100_000,
        good[4].encode()[:-20],
    ]
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b"\n".join(lines))
    (session,) = read_all(tmp_path)
    assert [turn.prompt for turn in session.turns] == [
        "prompt 1",
        "prompt 2",
        "prompt 3",
        "prompt \ufffd4",
    ]
    assert {each.line for each in session.problems} >= {5, 7, 8}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (json.dumps(START).encode() + b"\n", NoSession),
        (json.dumps(START).encode() + b'\n{"type":"mess', InputError),
    ],
    ids=["only-its-start", "cut-short"],
)
def test_a_file_without_a_session_is_refused_with_its_reason(
    tmp_path: Path, data: bytes, kind: type[InputError]
) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(data)
    (transcript,) = READER.find(walk(tmp_path))
    with pytest.raises(kind) as told:
        READER.read(transcript)
    assert str(path) in str(told.value)


def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        READER.read(Transcript(source="droid", path=str(tmp_path / "gone.jsonl")))


def test_a_look_at_the_beginning_agrees_with_the_whole(tmp_path: Path) -> None:
    write(tmp_path, [START, message(7, "user", "x" * 100_000), message(8, "assistant", [])])
    (transcript,) = READER.find(walk(tmp_path))
    peek = READER.peek(transcript)
    session = READER.read(transcript)
    assert peek is not None
    assert (peek.session_id, peek.root) == (session.id, "m7")
    assert peek.started == session.started
