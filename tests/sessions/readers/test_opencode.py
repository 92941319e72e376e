"""OpenCode's sessions: exported documents, and stores of one file a message and part."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.base import NoSession
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.opencode import READER
from debrief.sessions.sources import scan
from tests.sessions.readers.content import calls_of, prompts_of, read_all
from tests.sessions.scanned import sessions

START = 1_772_445_600_000


def info(**more: Any) -> dict[str, Any]:
    facts = {"id": "ses_1", "directory": "/home/ann/shop", "title": "Retry", "version": "1.2.0"}
    return {**facts, "time": {"created": START}, **more}


def user(number: int, *parts: Any, **more: Any) -> dict[str, Any]:
    time = {"created": START + number * 1000}
    facts = {"id": f"msg_{number}", "role": "user", "time": time, **more}
    return {"info": facts, "parts": list(parts)}


def assistant(number: int, *parts: Any, **more: Any) -> dict[str, Any]:
    time = {"created": START + number * 1000, "completed": START + number * 1000 + 500}
    facts = {"id": f"msg_{number}", "role": "assistant", "time": time, "modelID": "opus", **more}
    return {"info": facts, "parts": list(parts)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tool(name: str, given: Any, status: str = "completed", **state: Any) -> dict[str, Any]:
    call = f"call_{name}_{len(json.dumps(given))}"
    told = {"status": status, "input": given, **state}
    return {"type": "tool", "tool": name, "callID": call, "state": told}


def tokens(fresh: int, output: int, reasoning: int, read: int, write: int) -> dict[str, Any]:
    cache = {"read": read, "write": write}
    return {"input": fresh, "output": output, "reasoning": reasoning, "cache": cache}


def write(folder: Path, *messages: Any, name: str = "export", **facts: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"info": info(**facts), "messages": list(messages)}))
    return path


def read_one(folder: Path, *messages: Any, **facts: Any) -> Session:
    write(folder, *messages, **facts)
    (session,) = read_all(READER, folder)
    return session


def test_text_that_the_tool_added_is_no_prompt(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        user(1, text("the file says", synthetic=True)),
        user(2, text("look"), text("its content", synthetic=True)),
        assistant(3, text("ok")),
    )
    assert prompts_of(session) == ["look"]


def test_tokens_are_kept_in_four_fields_and_summed_over_steps(tmp_path: Path) -> None:
    step = {"type": "step-finish", "tokens": tokens(1, 20, 5, 300, 40)}
    whole = {**tokens(1, 20, 5, 300, 40), "total": 361}
    session = read_one(
        tmp_path,
        user(1, text("go")),
        assistant(2, step, step, tokens=tokens(1, 20, 5, 300, 40)),
        assistant(3, tokens=tokens(2, 10, 0, 0, 0)),
        assistant(4, tokens=whole),
    )
    assert session.usage == Usage(2 + 2 + 1, 50 + 10 + 20, 80 + 40, 600 + 300)
    assert session.api_calls == 4


@pytest.mark.parametrize(
    ("status", "state", "expected", "code"),
    [
        ("completed", {"output": "ok", "metadata": {"exit": 0}}, "ok", 0),
        ("completed", {"output": "no", "metadata": {"exit": 2}}, "failed", 2),
        ("error", {"error": "The user rejected permission to use this tool"}, "rejected", None),
        ("error", {"error": "file not found"}, "failed", None),
        ("running", {}, "unanswered", None),
    ],
    ids=["exit-0", "exit-2", "refused", "error", "unfinished"],
)
def test_a_state_tells_how_the_call_ended(
    tmp_path: Path, status: str, state: Any, expected: str, code: int | None
) -> None:
    session = read_one(
        tmp_path,
        user(1, text("go")),
        assistant(2, tool("bash", {"command": "make"}, status, **state)),
    )
    (call,) = calls_of(session)
    assert (call.status, call.exit_code) == (expected, code)


def test_an_aborted_answer_is_an_interruption_and_a_summary_a_compaction(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        user(1, text("go")),
        assistant(2, text("on it"), error={"name": "MessageAbortedError"}),
        user(3, {"type": "compaction", "auto": True}),
        assistant(4, text("so far …"), summary=True),
        user(5, text("go on")),
        assistant(6, text("summed up unasked"), summary=True),
    )
    assert prompts_of(session) == ["go", "go on"]
    assert [each.kind for each in session.turns[0].interventions] == ["interruption"]
    assert session.compactions == 2


def test_a_session_with_a_parent_is_its_subagent(tmp_path: Path) -> None:
    task = tool(
        "task",
        {"subagent_type": "explore", "description": "look around", "prompt": "find it"},
        metadata={"sessionId": "ses_2"},
        output="found",
    )
    write(tmp_path, user(1, text("go")), assistant(2, task))
    write(
        tmp_path,
        user(3, text("find it")),
        assistant(4, text("found"), tokens=tokens(5, 6, 0, 0, 0)),
        name="child",
        id="ses_2",
        parentID="ses_1",
    )
    (session,) = read_all(READER, tmp_path)
    (subagent,) = session.subagents
    told = (subagent.id, subagent.type, subagent.description, subagent.prompt)
    assert told == ("ses_2", "explore", "look around", "find it")
    assert session.usage == Usage(5, 6)
    assert session.prompt_count == 1


def store(folder: Path, session: str, *messages: Any, record: Any = None) -> None:
    if record is not None:
        path = folder / "storage" / "session" / "project" / f"{session}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))
    for message in messages:
        facts = {**message["info"], "sessionID": session}
        facts["id"] = f"{session}-{facts['id']}"
        path = folder / "storage" / "message" / session / f"{facts['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(facts))
        for number, part in enumerate(message["parts"]):
            where = folder / "storage" / "part" / facts["id"] / f"prt_{number}.json"
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_text(json.dumps({**part, "messageID": facts["id"]}))


def test_a_store_is_put_together_from_its_files_in_the_order_of_time(tmp_path: Path) -> None:
    record = {**info(), "projectID": "p"}
    store(
        tmp_path,
        "ses_1",
        user(9, text("then")),
        user(1, text("first")),
        assistant(2, text("one"), text("two")),
        record=record,
    )
    store(
        tmp_path,
        "ses_2",
        user(3, text("find it")),
        assistant(4, text("found")),
        record={**info(id="ses_2", parentID="ses_1"), "projectID": "p"},
    )
    (transcript,) = READER.find(walk(tmp_path))
    session = READER.read(transcript)
    peek = READER.peek(transcript)
    assert prompts_of(session) == ["first", "then"]
    assert session.turns[0].messages[0].text == "one\n\ntwo"
    assert [each.id for each in session.subagents] == ["ses_2"]
    assert peek is not None
    assert (peek.session_id, peek.started) == (session.id, session.started)
    files = {str(path) for path in tmp_path.rglob("*.json")}
    assert {each.path for each in session.transcripts} == files


def test_a_store_without_its_session_record_is_read_and_says_so(tmp_path: Path) -> None:
    store(tmp_path, "ses_1", user(1, text("go")), assistant(2, text("done")))
    broken = tmp_path / "storage" / "part" / "ses_1-msg_2" / "prt_9.json"
    broken.write_text('{"type": "text", "te')
    (transcript,) = READER.find(walk(tmp_path))
    session = READER.read(transcript)
    assert (session.id, session.prompt_count) == ("ses_1", 1)
    reasons = {each.path: each.reason for each in session.problems}
    assert reasons[str(broken)].startswith("cannot be read")
    assert "record is missing" in reasons[transcript.path]


def test_a_session_without_messages_is_none(tmp_path: Path) -> None:
    write(tmp_path)
    store(tmp_path, "ses_9", record={**info(id="ses_9"), "projectID": "p"})
    transcripts = list(READER.find(walk(tmp_path)))
    assert len(transcripts) == 2
    for transcript in transcripts:
        assert READER.peek(transcript) is None
        with pytest.raises(NoSession):
            READER.read(transcript)


def test_ids_masked_to_one_word_lose_no_message_and_unite_no_sessions(tmp_path: Path) -> None:
    for name in ("one", "two"):
        messages = [user(1, text(f"Prompt {name}"), id="x")]
        for number in range(2, 1_002):
            spent = tokens(1, 1, 0, 0, 0)
            messages.append(assistant(number, text(f"{number}"), tokens=spent, id="x"))
        write(tmp_path, *messages, name=name, id="x", directory=f"/home/ann/{name}")
    found = sessions(scan([tmp_path]))
    assert [prompts_of(session) for session in found] == [["Prompt one"], ["Prompt two"]]
    assert [session.usage for session in found] == [Usage(1_000, 1_000, 0, 0)] * 2
    assert [session.problems for session in found] == [(), ()]


def test_a_stored_session_without_its_own_record_is_filed_under_its_first_messages_week(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "storage" / "message" / "ses_1"
    folder.mkdir(parents=True)
    for number in (7, 3):
        facts = {"sessionID": "ses_1", **user(number)["info"]}
        (folder / f"msg_{number}.json").write_text(json.dumps(facts))
    (entry,) = (entry for entry in scan([tmp_path]).entries if entry.source)
    assert entry.started == datetime.fromtimestamp(START / 1000 + 3, UTC)
