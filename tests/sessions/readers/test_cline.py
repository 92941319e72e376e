"""Cline's sessions, and the tasks of its extension for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.cline import READER
from tests.sessions.readers.content import (
    calls_of,
    deeds_of,
    prompts_of,
    read_all,
    texts_of,
    told_in,
)

START = 1_772_445_600_000
ID = "1772445600000_abcde"


def user(second: int, *blocks: Any, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": each} if type(each) is str else each for each in blocks]
    return {
        "id": f"u{second}",
        "role": "user",
        "content": content,
        "ts": START + 1000 * second,
        **more,
    }


def answer(second: int, *blocks: Any, tokens: int = 10) -> dict[str, Any]:
    counts = {"inputTokens": tokens, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 1}
    return {
        "id": f"a{second}",
        "role": "assistant",
        "content": [{"type": "text", "text": f"answer {second}"}, *blocks],
        "ts": START + 1000 * second,
        "modelInfo": {"id": "m", "provider": "p"},
        "metrics": counts,
    }


def use(name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "c", "name": name, "input": given}


def came(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "c", "content": content, **more}


def write(folder: Path, *messages: Any, name: str = ID, **more: Any) -> Path:
    document = {
        "version": 1,
        "updated_at": "2026-03-02T10:09:00Z",
        "agent": "lead",
        "sessionId": name,
        "origin": {"version": "3.0.65"},
        **more,
        "messages": messages,
        "system_prompt": "You help.",
    }
    path = folder / ID / f"{name.rpartition('__')[2]}.messages.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1))
    return path


def read_one(folder: Path, *messages: Any, **more: Any) -> Session:
    write(folder, *messages, **more)
    (session,) = read_all(READER, folder)
    return session


def test_a_manifest_beside_tells_where_and_a_total(tmp_path: Path) -> None:
    usage = {"inputTokens": 20, "outputTokens": 4, "cacheReadTokens": 6, "cacheWriteTokens": 2}
    head = "0123456789" * 4
    manifest = {
        "session_id": ID,
        "started_at": "2026-03-02T10:00:00Z",
        "cwd": "/w/shop",
        "metadata": {
            "git": {"branch": "main"},
            "title": "Adding",
            "usage": usage,
            "checkpoint": {"history": [{"ref": head, "kind": "commit"}, {"ref": "s"}]},
        },
    }
    path = write(tmp_path, user(1, '<user_input mode="act">go</user_input>'), answer(2), answer(3))
    path.with_name(f"{ID}.json").write_text(json.dumps(manifest))
    (session,) = read_all(READER, tmp_path)
    assert (session.id, session.task, session.branch) == (ID, "shop", "main")
    assert (session.title, session.tool_version, session.base_commit) == ("Adding", "3.0.65", head)
    assert session.usage == session.reported_usage == Usage(12, 4, 2, 6)
    assert (session.system_prompt, session.problems) == ("You help.", ())
    assert prompts_of(session) == ["go"]


def test_words_stand_in_an_envelope_and_what_the_program_says_is_no_prompt(tmp_path: Path) -> None:
    notice = "<mode_notice>The user switched from plan mode to act mode.</mode_notice>"
    session = read_one(
        tmp_path,
        user(1, f'{notice}\n<user_input mode="act">do it</user_input>'),
        answer(2),
        user(3, '<user_command slash="team">spawn a team: count</user_command>'),
        answer(4),
        user(5, "carry on", metadata={"displayRole": "system"}),
        answer(6),
        user(7, "plain", {"type": "image", "data": ""}),
    )
    found = [(turn.prompt, turn.expansion, turn.images) for turn in session.turns]
    assert found == [("do it", "", 0), ("/team", "spawn a team: count", 0), ("plain", "", 1)]
    assert told_in(session) == [("program", notice), ("program", "carry on")]


EDIT = {"path": "a.py", "old_text": "x\n", "new_text": "y\nz\n", "content": "not obeyed"}
PATCH = {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n+z\n*** End Patch\n"}
RED = [{"query": "pytest", "result": "[Command exited with code 2]\nred", "success": False}]
ENDS: dict[str, tuple[str, Any, Any, Any]] = {
    "edit": ("editor", EDIT, json.dumps({"result": "", "success": True}), ("ok", None, 2, 1)),
    "edit, failed": ("editor", EDIT, json.dumps({"success": False}), ("failed", None, 0, 0)),
    "new file": ("editor", {"path": "a", "new_text": "x\n"}, "{}", ("ok", None, 1, 0)),
    "patch": ("apply_patch", PATCH, "done", ("ok", None, 2, 1)),
    "shell": ("run_commands", {"commands": ["ls"]}, [{"success": True}], ("ok", 0, 0, 0)),
    "shell, red": ("run_commands", {"commands": ["pytest"]}, RED, ("failed", 2, 0, 0)),
    "blocks": ("read_files", {}, [{"type": "text", "text": "x"}], ("ok", None, 0, 0)),
}


@pytest.mark.parametrize(("name", "given", "content", "end"), ENDS.values(), ids=ENDS)
def test_a_call_tells_how_it_ended(
    tmp_path: Path, name: str, given: Any, content: Any, end: Any
) -> None:
    session = read_one(
        tmp_path, user(1, "go"), answer(2, use(name, **given)), user(3, came(content))
    )
    (call,) = calls_of(session)
    assert (call.status, call.exit_code, call.added, call.removed) == end
    assert session.prompt_count == 1


def test_subagents_are_linked_by_what_they_were_asked(tmp_path: Path) -> None:
    write(tmp_path, user(1, "go"), answer(2, use("spawn_agent", task="count")), answer(5))
    write(tmp_path, user(3, "count"), answer(4), name=f"{ID}__agent_1_x", agent="subagent")
    (session,) = read_all(READER, tmp_path)
    (agent,) = session.subagents
    assert (agent.prompt, agent.call_id) == ("count", "c")
    assert [message.text for message in agent.messages] == ["answer 4"]
    assert session.usage.input == 3 * 6


def test_a_compaction_is_told_beside_and_stands_where_it_happened(tmp_path: Path) -> None:
    path = write(tmp_path, user(1, "one"), answer(2), user(5, "two"), answer(6))
    summary = user(0, "They said one.", metadata={"generatedAt": START + 4000})
    beside = path.with_name(f"{ID}.compaction.json")
    beside.write_text(json.dumps({"updated_at": "2026-03-02T10:00:09Z", "messages": [summary]}))
    (session,) = read_all(READER, tmp_path)
    assert [turn.compacted for turn in session.turns] == [False, True]
    assert session.turns[1].messages[0].summary == "They said one."


def test_a_document_that_is_written_still_keeps_what_stands_in_it(tmp_path: Path) -> None:
    path = write(tmp_path, user(1, "go"), answer(2), answer(3))
    whole = path.read_text()
    path.write_text(whole[: whole.index('"a3"') + 20])
    (session,) = read_all(READER, tmp_path)
    assert texts_of(session) == ["answer 2"]
    assert "cut short" in session.problems[0].reason


def test_masked_ids_and_unknown_shapes_cost_only_themselves(tmp_path: Path) -> None:
    messages: list[Any] = [
        user(1, "go"),
        answer(2, use("ls"), use("ls")),
        user(3, came("1"), came("2")),
    ]
    messages += [answer(4), "what is this", {"role": "ghost"}, user(5, {"type": "novelty"})]
    session = read_one(
        tmp_path, *({**each, "id": "x"} if type(each) is dict else each for each in messages)
    )
    assert [call.result for call in calls_of(session)] == ["1", "2"]
    assert (session.usage.input, len(session.problems)) == (12, 1)


# The extension's tasks.

TASK = "1772445600000"
PLACE = "<environment_details>\n# Current Working Directory (/w/shop) Files\na.py\n"
PLACE += '"latestGitCommitHash": "' + "0123456789" * 4 + '"\n</environment_details>'


def said(text: str, index: int, role: str = "user") -> dict[str, Any]:
    content = [{"type": "text", "text": text}, {"type": "text", "text": PLACE}]
    return {"role": role, "content": content if role == "user" else text}


def task(folder: Path, *messages: Any, **beside: Any) -> Session:
    place = folder / TASK
    place.mkdir()
    (place / "api_conversation_history.json").write_text(json.dumps(messages))
    for name, content in beside.items():
        (place / f"{name}.json").write_text(json.dumps(content))
    (session,) = read_all(READER, folder)
    return session


def native(*blocks: Any, tokens: int = 5) -> dict[str, Any]:
    told = {"tokens": {"prompt": tokens, "completion": 2, "cached": 3}}
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": "look"}, *blocks],
        "modelInfo": {"modelId": "m"},
        "metrics": told,
    }


def test_a_task_is_what_the_model_was_sent_word_for_word(tmp_path: Path) -> None:
    edit = {"path": "a.py", "diff": "------- SEARCH\nx\n=======\ny\nz\n+++++++ REPLACE\n"}
    session = task(
        tmp_path,
        said("<task>\nadd it\n</task>", 0),
        native(use("replace_in_file", **edit)),
        said("[replace_in_file for 'a.py'] Result:\nThe content was saved.", 2),
        native(use("execute_command", command="pytest")),
        said("[execute_command for 'pytest'] Result:\nCommand failed with exit code 2.\nred", 4),
        native(use("ask_followup_question", question="why?\nreally?")),
        said("[ask_followup_question for 'why?\nreally?'] Result:\n<answer>\nso\n</answer>", 6),
        native(use("attempt_completion", result="done")),
        said("[attempt_completion] Result:\n<feedback>\nnow test it\n</feedback>", 8),
    )
    first, second = session.turns
    assert (first.prompt, second.prompt) == ("add it", "now test it")
    assert deeds_of(first) == [("answer", "so")]
    found = [(call.status, call.exit_code, call.added, call.removed) for call in calls_of(session)]
    assert found[:2] == [("ok", None, 2, 1), ("failed", 2, 0, 0)]
    assert (session.id, session.tool, session.cwd) == (TASK, "cline-vscode", "/w/shop")
    assert (session.base_commit, session.models) == ("0123456789" * 4, ("m",))
    assert session.usage == Usage(20, 8, 0, 12)
    assert session.started.timestamp() == START / 1000


def test_older_tasks_have_calls_as_elements(tmp_path: Path) -> None:
    call = "Writing.\n<write_to_file>\n<path>a.html</path>\n<content>\n<b>x</b>\ny\n</content>\n</write_to_file>"
    session = task(
        tmp_path,
        said("<task>go</task>", 0),
        said(call, 1, "assistant"),
        said("[write_to_file for 'a.html'] Result:", 2),
    )
    assert texts_of(session) == ["Writing."]
    (found,) = calls_of(session)
    assert json.loads(found.input) == {"path": "a.html", "content": "<b>x</b>\ny"}
    assert found.status == "unanswered"


def test_what_the_editor_shows_tells_tokens_and_times(tmp_path: Path) -> None:
    told = {"tokensIn": 7, "tokensOut": 2, "cacheWrites": 30, "cacheReads": 400}
    shown = [
        {"ts": START + 1000, "say": "text", "text": "go"},
        {
            "ts": START + 2000,
            "say": "api_req_started",
            "text": json.dumps(told),
            "conversationHistoryIndex": -1,
        },
    ]
    session = task(
        tmp_path,
        said("<task>go</task>", 0),
        native(),
        ui_messages=shown,
        task_metadata={"environment_history": [{"cline_version": "3.51.0"}]},
    )
    (message,) = session.turns[0].messages
    assert message.usage == session.usage == Usage(7, 2, 30, 400)
    assert message.at is not None
    assert (message.at.timestamp(), session.tool_version) == (START / 1000 + 2, "3.51.0")


def test_a_refusal_in_a_task_keeps_the_persons_words(tmp_path: Path) -> None:
    refusal = "[execute_command for 'rm x'] Result:\nThe user denied this operation.\n"
    session = task(
        tmp_path,
        said("<task>go</task>", 0),
        native(use("execute_command", command="rm x")),
        said(f"{refusal}<feedback>\nleave it\n</feedback>", 2),
    )
    assert [call.status for call in calls_of(session)] == ["rejected"]
    assert deeds_of(session.turns[0]) == [("rejection", "leave it")]


def test_words_that_open_elements_and_close_none_are_read_in_linear_time(tmp_path: Path) -> None:
    diff = "------- SEARCH\n" * 50_000
    calls = native(use("replace_in_file", path="a.py", diff=diff))
    session = task(
        tmp_path,
        said("<task>" * 50_000, 0),
        calls,
        said("[replace_in_file for 'a.py'] Result:\nok", 2),
        said("<read_file><path>" * 50_000, 3, "assistant"),
        said("<user_input>" * 50_000, 4),
    )
    assert [call.name for call in calls_of(session)] == ["replace_in_file"]
