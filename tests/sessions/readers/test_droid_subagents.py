"""Subagents of Factory droid: transcripts of their own, tokens that may be in two places."""

from __future__ import annotations

from pathlib import Path

from debrief.sessions.model import Usage
from debrief.sessions.readers.droid import READER
from debrief.sessions.readers.files import walk
from tests.sessions.readers.content import prompts_of, texts_of
from tests.sessions.readers.droid_scenario import (
    SETTINGS,
    START,
    message,
    read_all,
    read_one,
    result,
    text,
    use,
    write,
)


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
    (session,) = read_all(tmp_path)
    (subagent,) = session.subagents
    assert (subagent.id, subagent.type, subagent.description, subagent.prompt) == (
        "s2",
        "tester",
        "run tests",
        "test it",
    )
    assert prompts_of(session) == ["go"]
    assert session.usage == Usage(1000, 51, 7, 4000)
    assert session.lines_added == 1
    assert session.api_calls == 2
    assert {Path(each.path).name for each in session.transcripts} == {
        "s1.jsonl",
        "s1.settings.json",
        "s2.jsonl",
        "s2.settings.json",
    }


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
