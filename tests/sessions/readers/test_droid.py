"""Factory droid's transcripts, with their settings and their subagents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.droid import READER
from debrief.sessions.readers.files import walk
from tests.sessions.readers.content import (
    calls_of,
    deeds_of,
    prompts_of,
    read_all,
    texts_of,
    write_records,
)

START = {
    "type": "session_start",
    "id": "s1",
    "title": "fix the retry",
    "sessionTitle": "New Session",
    "version": 2,
    "cwd": "/home/ann/shop/.debrief/worktrees/retry-queue",
}
SETTINGS = {
    "model": "gpt-mini",
    "tokenUsage": {
        "inputTokens": 900,
        "outputTokens": 50,
        "cacheCreationTokens": 7,
        "cacheReadTokens": 4000,
        "thinkingTokens": 20,
    },
}


def message(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": more.pop("id", f"m{number}"),
        "timestamp": f"2026-03-02T10:00:{number:02d}.000Z",
        "message": {"role": role, "content": content},
        **more,
    }


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def use(name: str, call: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def result(call: str, content: Any, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": is_error}


def write(folder: Path, records: list[Any], name: str = "s1", settings: Any = SETTINGS) -> Path:
    if settings is not None:
        (folder / f"{name}.settings.json").write_text(json.dumps(settings))
    return write_records(folder / f"{name}.jsonl", *records)


def read_one(folder: Path, records: list[Any], settings: Any = SETTINGS) -> Session:
    write(folder, records, settings=settings)
    (session,) = read_all(READER, folder)
    return session


def read_turn(folder: Path, *records: Any) -> Session:
    """Read a session in which a person says "go", and then what ``records`` tell happens."""
    return read_one(folder, [START, message(1, "user", "go"), *records])


def test_what_the_model_alone_or_the_screen_alone_sees_is_no_prompt(tmp_path: Path) -> None:
    notice = message(7, "user", [text("Token limit reached")])
    notice["message"]["visibility"] = "user_only"
    shown = "Contents of /home/ann/a.py (lines 1-2 of 2):\nx = 1\n"
    session = read_one(
        tmp_path,
        [
            START,
            message(1, "user", [text("the folder holds …")], visibility="llm_only"),
            message(2, "user", [text("you are offline")], visibility="user_only"),
            message(3, "user", [text("context")], id="context-9"),
            notice,
            message(4, "user", [text("<system-reminder>use the todo list</system-reminder>")]),
            message(5, "user", [text("<system-reminder>x</system-reminder>"), text("do it")]),
            message(
                6, "user", [text("look at @a.py"), text(shown), {"type": "image", "source": {}}]
            ),
        ],
    )
    assert prompts_of(session) == ["do it", "look at @a.py"]
    assert [turn.images for turn in session.turns] == [0, 1]


def test_the_persons_prompt_files_are_taken_out_of_the_context(tmp_path: Path) -> None:
    files = "".join(
        f"% cat /home/ann/shop/{name}\n<coding_guidelines>\n{words}\n</coding_guidelines>\n\n"
        for name, words in (("CLAUDE.md", "Be brief."), ("AGENTS.md", "Test first."))
    )
    context = message(1, "user", [text(f"<system-reminder>\n{files}</system-reminder>")])
    context["id"] = "context-1"
    session = read_one(tmp_path, [START, context, message(2, "user", "go")])
    assert [(each.path, each.text) for each in session.instructions or ()] == [
        ("/home/ann/shop/CLAUDE.md", "Be brief."),
        ("/home/ann/shop/AGENTS.md", "Test first."),
    ]


def test_words_beside_a_tool_result_are_a_remark_and_begin_no_turn(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
        message(2, "assistant", [use("Read", "c1", file_path="a.py")]),
        message(3, "user", [result("c1", "x = 1"), text("that is the wrong file")]),
    )
    (turn,) = session.turns
    assert deeds_of(turn) == [("remark", "that is the wrong file")]


@pytest.mark.parametrize(
    ("name", "content", "is_error", "status", "code"),
    [
        ("Execute", "2 passed\n\n[Process exited with code 0]", False, "ok", 0),
        ("Execute", "Error: Command failed (exit code: 2)\nno such file", True, "failed", 2),
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
    session = read_turn(
        tmp_path,
        message(2, "assistant", [use(name, "c1", **given)]),
        message(3, "user", [result("c1", content, is_error)]),
    )
    (call,) = calls_of(session)
    assert (call.status, call.exit_code, call.added) == (status, code, int(status == "never"))
    kinds = [each.kind for turn in session.turns for each in turn.interventions]
    assert kinds == (["rejection"] if status == "rejected" else [])


def test_calls_without_results_and_results_without_calls_are_both_told(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
        message(2, "assistant", [use("Read", "c1", file_path="a.py")]),
        message(3, "user", [result("elsewhere", "x")]),
    )
    assert [call.status for call in calls_of(session)] == ["unanswered"]
    assert [each.reason for each in session.problems] == ["1 tool results without their calls"]


def test_an_interruption_that_is_noted_twice_is_one_and_a_compaction_marks_its_turn(
    tmp_path: Path,
) -> None:
    session = read_turn(
        tmp_path,
        message(2, "assistant", [text("working")]),
        {"type": "agent_turn_outcome", "reason": "interrupted"},
        message(3, "user", [text("[Request interrupted by user]")]),
        {"type": "compaction_state", "timestamp": "2026-03-02T10:00:04Z"},
        message(5, "user", "go on"),
        message(6, "assistant", [text("done")]),
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
    (broken,) = read_all(READER, tmp_path)
    assert any(each.path.endswith(".settings.json") for each in broken.problems)
    records[2]["message"]["usage"] = {"input_tokens": 5, "output_tokens": 2}
    assert read_one(tmp_path, records, settings={}).usage == Usage(5, 2, 0, 0)


def test_a_subagent_belongs_to_the_session_that_called_it(tmp_path: Path) -> None:
    child = {**START, "id": "s2", "callingSessionId": "s1", "callingToolUseId": "c1"}
    task = use("Task", "c1", subagent_type="tester", description="run tests", prompt="test it")
    write(tmp_path, [START, message(1, "user", "go"), message(2, "assistant", [task])])
    write(
        tmp_path,
        [
            child,
            message(3, "user", "test it"),
            message(4, "assistant", [use("Create", "c9", file_path="t.py", content="x\n")]),
            message(5, "user", [result("c9", "ok")]),
        ],
        name="s2",
        settings={"tokenUsage": {"inputTokens": 100, "outputTokens": 1}},
    )
    (session,) = read_all(READER, tmp_path)
    (subagent,) = session.subagents
    told = (subagent.id, subagent.type, subagent.description, subagent.prompt)
    assert told == ("s2", "tester", "run tests", "test it")
    assert prompts_of(session) == ["go"]
    assert session.usage == Usage(1000, 51, 7, 4000)
    assert session.lines_added == 1
    assert session.api_calls == 2
    assert {each.path for each in session.transcripts} == set(map(str, tmp_path.iterdir()))


def test_a_subagent_without_its_session_is_kept_without_human_turns(tmp_path: Path) -> None:
    child = {**START, "callingSessionId": "lost"}
    session = read_one(
        tmp_path, [child, message(1, "user", "test it"), message(2, "assistant", [text("ok")])]
    )
    assert session.prompt_count == 0
    assert texts_of(session) == ["ok"]
    assert any("lost" in each.reason for each in session.problems)


def test_two_sessions_that_call_each_other_their_parent_are_both_found(tmp_path: Path) -> None:
    for name, other in (("s1", "s2"), ("s2", "s1")):
        records = [{**START, "id": name, "callingSessionId": other}, message(1, "user", name)]
        write(tmp_path, records, name=name)
    covered = [
        path for each in READER.find(walk(tmp_path)) for path in (each.path, *each.companions)
    ]
    assert {str(tmp_path / "s1.jsonl"), str(tmp_path / "s2.jsonl")} <= set(covered)


def test_without_its_subagents_transcripts_the_inclusive_tokens_count(tmp_path: Path) -> None:
    settings = {**SETTINGS, "inclusiveTokenUsage": {"inputTokens": 5000, "outputTokens": 60}}
    records = [START, message(1, "user", "go"), message(2, "assistant", [text("ok")])]
    assert read_one(tmp_path, records, settings=settings).usage == Usage(5000, 60, 0, 0)
