"""Gemini CLI's chats: one document, or lines that are written again and taken back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session
from debrief.sessions.readers.base import NoSession
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.gemini import READER
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of, write_records

HEADER = {
    "sessionId": "g1",
    "projectHash": "abc",
    "startTime": "2026-03-02T10:00:00.000Z",
    "lastUpdated": "2026-03-02T10:09:00.000Z",
}
DIFF = "Index: a.py\n=====\n--- a.py\tOriginal\n+++ a.py\tWritten\n@@ -1,1 +1,2 @@\n-x\n+y\n+z\n"


def message(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    at = f"2026-03-02T10:00:{number:02d}.000Z"
    return {"id": f"m{number}", "timestamp": at, "type": kind, "content": content, **more}


def call(name: str, given: Any, status: str, answer: Any, display: Any = None) -> dict[str, Any]:
    response = {"functionResponse": {"response": answer}}
    return {
        "id": f"{name}-1",
        "name": name,
        "args": given,
        "status": status,
        "result": [response],
        "resultDisplay": display,
    }


def write(folder: Path, *messages: Any, name: str = "session-1.json", **header: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**HEADER, **header, "messages": list(messages)}, indent=2))
    return path


def read_one(folder: Path, *messages: Any, **header: Any) -> Session:
    write(folder, *messages, **header)
    (session,) = read_all(READER, folder)
    return session


def test_what_the_program_says_to_keep_the_model_going_is_no_prompt(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        message(1, "user", "hello"),
        message(2, "gemini", "hi"),
        message(3, "user", "System: Please continue."),
        message(4, "gemini", "and welcome"),
        message(5, "user", "Please continue."),
    )
    assert prompts_of(session) == ["hello", "Please continue."]
    assert [each.text for each in session.turns[0].messages] == ["hi", "and welcome"]


def test_files_that_were_referenced_and_images_are_not_the_persons_words(tmp_path: Path) -> None:
    referenced = {"text": "\n--- Content from referenced files ---"}
    image = {"inlineData": {"mimeType": "image/png", "data": ""}}
    session = read_one(
        tmp_path, message(1, "user", [image, {"text": "see @a.py"}, referenced, {"text": "x = 1"}])
    )
    (turn,) = session.turns
    assert (turn.prompt, turn.images) == ("see @a.py", 1)


FILE, SHOWN = {"file_path": "a.py"}, {"fileDiff": DIFF}
WRITTEN, SHELL = {**FILE, "content": "x\n"}, "run_shell_command"
ENDS: dict[str, tuple[Any, str, int | None, int, int]] = {
    "diff": (call("replace", FILE, "success", {"output": "ok"}, SHOWN), "ok", None, 2, 1),
    "write": (call("write_file", WRITTEN, "success", {"output": ""}), "ok", None, 1, 0),
    "error": (call("replace", FILE, "error", {"error": "no"}, SHOWN), "failed", None, 0, 0),
    "refused": (call("replace", FILE, "cancelled", {"error": ""}, SHOWN), "rejected", None, 0, 0),
    "exit-3": (
        call(SHELL, {}, "success", {"output": "Output: no\nExit Code: 3"}),
        "failed",
        3,
        0,
        0,
    ),
    "exit-0": (call(SHELL, {}, "success", {"output": "Output: ok"}), "ok", 0, 0, 0),
    "unfinished": (call("read_file", {}, "executing", None), "unanswered", None, 0, 0),
}


@pytest.mark.parametrize(("told", "status", "code", "added", "removed"), ENDS.values(), ids=ENDS)
def test_a_call_tells_how_it_ended(
    tmp_path: Path, told: Any, status: str, code: int | None, added: int, removed: int
) -> None:
    session = read_one(
        tmp_path, message(1, "user", "go"), message(2, "gemini", "", toolCalls=[told])
    )
    (found,) = calls_of(session)
    assert (found.status, found.exit_code) == (status, code)
    assert (found.added, found.removed) == (added, removed)


def test_lines_are_written_again_and_taken_back(tmp_path: Path) -> None:
    records = [
        HEADER,
        message(1, "user", "one"),
        message(2, "gemini", "draft"),
        message(2, "gemini", "final"),
        {"$set": {"summary": "Counting"}},
        message(3, "user", "wrong way"),
        message(4, "gemini", "gone wrong"),
        {"$rewindTo": "m3"},
        message(5, "user", "right way"),
        message(6, "gemini", "good"),
    ]
    path = write_records(tmp_path / "session-1.jsonl", *records)
    path.write_text(path.read_text() + '{"id": "m7", "ty')
    (session,) = read_all(READER, tmp_path)
    found = [(turn.prompt, turn.rewound) for turn in session.turns]
    assert found == [("one", False), ("wrong way", True), ("right way", False)]
    assert texts_of(session) == ["final", "gone wrong", "good"]
    assert session.title == "Counting"
    assert [each.line for each in session.problems] == [11]


def test_a_project_root_beside_the_chats_tells_the_folder(tmp_path: Path) -> None:
    write(tmp_path, message(1, "user", "go"), name="shop/chats/session-1.json")
    (tmp_path / "shop" / ".project_root").write_text("/home/ann/shop\n")
    (session,) = read_all(READER, tmp_path)
    assert (session.cwd, session.task) == ("/home/ann/shop", "shop")


@pytest.mark.parametrize("name", ["shop", hashlib.sha256(b"/home/ann/shop").hexdigest()])
def test_the_projects_file_tells_the_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path, message(1, "user", "go"), name=f"tmp/{name}/chats/session-1.json")
    listed = {"projects": {"/home/ann/bar": "bar", "/home/ann/shop": "shop"}}
    (tmp_path / "projects.json").write_text(json.dumps(listed))
    (session,) = read_all(READER, tmp_path)
    assert (session.cwd, session.task) == ("/home/ann/shop", "shop")


def test_a_chat_that_was_resumed_began_when_it_began_and_holds_the_persons_file(
    tmp_path: Path,
) -> None:
    context = (
        "<session_context>\n--- Context from: /home/ann/shop/GEMINI.md ---\nBe brief.\n"
        "--- End of Context from: /home/ann/shop/GEMINI.md ---\n</session_context>"
    )
    lines = [
        {**HEADER, "startTime": "2026-03-02T09:59:00.000Z"},
        {"$set": {"messages": [message(0, "user", [{"text": context}])]}},
        message(1, "user", "go"),
        {**HEADER, "startTime": "2026-03-02T10:30:00.000Z"},
        message(2, "user", "more"),
    ]
    write_records(tmp_path / "session-1.jsonl", *lines)
    (session,) = read_all(READER, tmp_path)
    assert session.started.minute == 59
    assert prompts_of(session) == ["go", "more"]
    (own,) = session.instructions or ()
    assert (own.path, own.text, own.place) == ("/home/ann/shop/GEMINI.md", "Be brief.", "message")


def test_a_subagent_is_linked_to_the_call_that_asked_for_it(tmp_path: Path) -> None:
    asked = {"prompt": "Count them.", "agent_name": "generalist"}
    calls = [call("invoke_agent", asked, "success", {"output": "One."})]
    write(
        tmp_path,
        message(1, "user", "go"),
        message(2, "gemini", "", toolCalls=calls),
        name="chats/a.json",
    )
    loaded = "\n<loaded_context>\nrules\n</loaded_context>"
    write(
        tmp_path,
        message(3, "user", [{"text": loaded}, {"text": "Count them."}]),
        message(4, "gemini", "One."),
        message(5, "user", "You have stopped calling tools without finishing. Finish."),
        name="chats/g1/b.json",
        sessionId="g2",
        kind="subagent",
    )
    (session,) = read_all(READER, tmp_path)
    (agent,) = session.subagents
    told = (agent.prompt, agent.type, agent.call_id)
    assert told == ("Count them.", "generalist", "invoke_agent-1")


def test_a_subagents_chat_is_filed_under_its_session(tmp_path: Path) -> None:
    write(tmp_path, message(1, "user", "go"), message(2, "gemini", "ok"), name="chats/a.json")
    write(
        tmp_path,
        message(3, "user", "look"),
        message(4, "gemini", "seen"),
        name="chats/g1/b.json",
        sessionId="g2",
        kind="subagent",
    )
    (session,) = read_all(READER, tmp_path)
    assert [each.id for each in session.subagents] == ["g2"]
    assert session.prompt_count == 1


def test_a_chat_of_notices_alone_is_no_session(tmp_path: Path) -> None:
    write(tmp_path, message(1, "warning", "a hook failed"))
    (transcript,) = READER.find(walk(tmp_path))
    assert READER.peek(transcript) is None
    with pytest.raises(NoSession):
        READER.read(transcript)


def test_a_message_told_twice_or_in_no_known_shape_costs_only_itself(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        message(1, "user", "go"),
        message(1, "user", "go"),
        "what is this",
        message(2, "hologram", {"x": 1}),
        message(3, "gemini", "ok"),
    )
    assert prompts_of(session) == ["go"]
    assert len(session.problems) == 2
