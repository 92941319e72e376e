"""Pi's sessions: a tree of entries, of which one way is the conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.pi import READER
from debrief.sessions.sources import scan
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of, told_in
from tests.sessions.readers.content import write_records as write
from tests.sessions.scanned import sessions

ID = "0d6f6d0e-0000-7000-8000-00000000a001"


def header(**more: Any) -> dict[str, Any]:
    at = "2026-03-02T10:00:00Z"
    return {"type": "session", "version": 3, "id": ID, "timestamp": at, "cwd": "/w/shop", **more}


def entry(number: int, parent: int | None, kind: str = "message", **more: Any) -> dict[str, Any]:
    above = None if parent is None else f"e{parent}"
    at = f"2026-03-02T10:00:{number:02d}Z"
    return {"type": kind, "id": f"e{number}", "parentId": above, "timestamp": at, **more}


def user(number: int, parent: int | None, text: Any) -> dict[str, Any]:
    return entry(number, parent, message={"role": "user", "content": text})


def answer(number: int, parent: int, *blocks: Any, **more: Any) -> dict[str, Any]:
    usage = {"input": number, "output": 2, "cacheRead": 3, "cacheWrite": 4}
    content = [{"type": "text", "text": f"answer {number}"}, *blocks]
    message = {"role": "assistant", "content": content, "model": "m", "usage": usage, **more}
    return entry(number, parent, message=message)


def called(name: str, given: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": "c", "name": name, "arguments": given}


def result(number: int, parent: int, text: str, failed: bool = False, **details: Any) -> Any:
    content = [{"type": "text", "text": text}]
    return entry(
        number,
        parent,
        message={
            "role": "toolResult",
            "toolCallId": "c",
            "content": content,
            "details": details,
            "isError": failed,
        },
    )


def read_one(folder: Path, *records: Any) -> Session:
    write(folder / "a.jsonl", header(), *records)
    (session,) = read_all(READER, folder)
    return session


def test_only_the_way_from_the_last_entry_to_the_root_was_kept(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        user(1, None, "one"),
        answer(2, 1),
        user(3, 2, "wrong way"),
        answer(4, 3),
        entry(5, 2, "branch_summary", fromId="e4", summary="It went wrong."),
        user(6, 5, "right way"),
        answer(7, 6),
        entry(8, 7, "label", targetId="e1", label="here"),
    )
    found = [(turn.prompt, turn.rewound) for turn in session.turns]
    assert found == [("one", False), ("wrong way", True), ("right way", False)]
    assert session.usage == Usage(2 + 4 + 7, 6, 12, 9)
    assert told_in(session) == [("program", "It went wrong.")]


@pytest.mark.parametrize("masked", [{"id": "x", "parentId": "x"}, {"id": 1, "parentId": None}])
def test_where_ids_tell_no_way_every_turn_stands(tmp_path: Path, masked: Any) -> None:
    records = [user(1, None, "one"), answer(2, 1), user(3, 1, "two"), answer(4, 3)]
    session = read_one(tmp_path, *({**record, **masked} for record in records))
    assert [turn.rewound for turn in session.turns] == [False, False]
    assert texts_of(session) == ["answer 2", "answer 4"]
    assert session.usage == Usage(2 + 4, 4, 8, 6)


EDIT = {"path": "a.py", "edits": [{"oldText": "b\n", "newText": "B\nB\n"}]}
OLD_EDIT = {"path": "a.py", "oldText": "b\n", "newText": "B\nB\n"}
SHOWN = "    ...\n  9 a\n-10 b\n+10 B\n+11 B\n    ...\n 20 y\n+22 z"
HUNKS = "@@ -9,2 +9,3 @@\n a\n-b\n+B\n+B\n@@ -20,1 +21,2 @@\n y\n+z"
ENDS: dict[str, tuple[str, Any, Any, tuple[str, int | None, int, int, bool]]] = {
    "edit": ("edit", EDIT, result(3, 2, "done", diff=SHOWN), ("ok", None, 3, 1, False)),
    "edit, no diff": ("edit", OLD_EDIT, result(3, 2, "done"), ("ok", None, 2, 1, True)),
    "edit, failed": ("edit", EDIT, result(3, 2, "no", True), ("failed", None, 0, 0, False)),
    "write": (
        "write",
        {"path": "a.py", "content": "a\nb\n"},
        result(3, 2, "done"),
        ("ok", None, 2, 0, True),
    ),
    "bash": ("bash", {"command": "ls"}, result(3, 2, "a.py"), ("ok", 0, 0, 0, False)),
    "bash, red": (
        "bash",
        {"command": "pytest"},
        result(3, 2, "red\n\nCommand exited with code 2", True),
        ("failed", 2, 0, 0, False),
    ),
    "bash, stopped": (
        "bash",
        {"command": "sleep 9"},
        result(3, 2, "Command aborted", True),
        ("failed", None, 0, 0, False),
    ),
}


@pytest.mark.parametrize(("name", "given", "came", "end"), ENDS.values(), ids=ENDS)
def test_a_call_tells_how_it_ended(
    tmp_path: Path, name: str, given: Any, came: Any, end: Any
) -> None:
    session = read_one(tmp_path, user(1, None, "go"), answer(2, 1, called(name, given)), came)
    (call,) = calls_of(session)
    assert (call.status, call.exit_code, call.added, call.removed, call.estimated) == end


def test_the_programs_own_kind_of_diff_becomes_hunks(tmp_path: Path) -> None:
    came = result(3, 2, "done", diff=SHOWN)
    session = read_one(tmp_path, user(1, None, "go"), answer(2, 1, called("edit", EDIT)), came)
    (call,) = calls_of(session)
    assert call.patch == HUNKS


def test_a_compactions_summary_goes_to_the_next_message(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        user(1, None, "one"),
        answer(2, 1),
        entry(3, 2, "compaction", summary="They said one.", firstKeptEntryId="e2"),
        user(4, 3, "two"),
        answer(5, 4),
    )
    (first, second) = session.turns
    assert (session.compactions, first.compacted, second.compacted) == (1, False, True)
    assert [message.summary for message in second.messages] == ["They said one."]


def test_an_answer_that_broke_off_and_was_asked_for_again_counts_its_tokens_alone(
    tmp_path: Path,
) -> None:
    write(
        tmp_path / "a.jsonl",
        header(),
        user(1, None, "go"),
        answer(2, 1, stopReason="error", errorMessage="terminated"),
        answer(3, 2, called("bash", {"command": "make"})),
        result(4, 3, "made"),
        answer(5, 4, stopReason="error"),
    )
    (session,) = read_all(READER, tmp_path)
    assert texts_of(session) == ["answer 3", "answer 5"]  # nobody asked again after the last
    assert (session.usage, session.api_calls) == (Usage(2 + 3 + 5, 6, 12, 9), 3)


def test_a_skill_is_asked_for_by_its_name_and_its_text_is_kept(tmp_path: Path) -> None:
    text = '<skill name="tidy" location="/s/SKILL.md">\nTidy up.\n</skill>\n\nall of it'
    session = read_one(tmp_path, user(1, None, text), answer(2, 1))
    (turn,) = session.turns
    assert (turn.prompt, turn.expansion) == ("/skill:tidy all of it", text)


def test_a_subagent_is_within_the_result_that_it_gave(tmp_path: Path) -> None:
    inner = [
        {"role": "user", "content": "count"},
        answer(1, 1, called("read", {"path": "a.py"}))["message"],
        result(1, 1, "def a")["message"],
        answer(2, 1)["message"],
    ]
    told = {"agent": "scout", "task": "count", "messages": inner}
    session = read_one(
        tmp_path,
        user(1, None, "go"),
        answer(2, 1, called("subagent", {"agent": "scout", "task": "count"})),
        result(3, 2, "one", mode="single", results=[told]),
    )
    (agent,) = session.subagents
    assert (agent.type, agent.prompt, agent.call_id) == ("scout", "count", "c")
    assert [message.text for message in agent.messages] == ["answer 1", "answer 2"]
    assert [call.result for call in agent.messages[0].calls] == ["def a"]
    assert session.usage.input == 2 + 1 + 2
    assert prompts_of(session) == ["go"]


def test_the_first_version_has_no_tree_and_errors_without_words(tmp_path: Path) -> None:
    records = [user(1, None, "one"), answer(2, 1), user(3, 2, "two")]
    for record in records:
        del record["id"], record["parentId"]
    broken = {"role": "assistant", "content": [], "stopReason": "error", "usage": {"input": 0}}
    session = read_one(tmp_path, *records, {"type": "message", "message": broken})
    assert [(turn.prompt, len(turn.messages)) for turn in session.turns] == [("one", 1), ("two", 0)]


def test_a_fork_is_a_session_of_its_own_with_the_history_that_it_copied(tmp_path: Path) -> None:
    shared = [user(1, None, "one"), answer(2, 1)]
    write(tmp_path / "a.jsonl", header(), *shared, user(3, 2, "two"), answer(4, 3))
    fork = header(id=ID.replace("a001", "a002"), timestamp="2026-03-09T10:00:00Z")
    write(tmp_path / "b.jsonl", fork, *shared, user(5, 2, "another two"), answer(6, 5))
    original, forked = sessions(scan([tmp_path]))
    assert (original.id, prompts_of(original)) == (ID, ["one", "two"])
    assert (forked.id, prompts_of(forked)) == (fork["id"], ["one", "another two"])
    assert [turn.origin for turn in forked.turns] == ["inherited", "prompt"]
    assert (original.usage.input, forked.usage.input) == (2 + 4, 6)
    assert forked.relative_of == ID


def test_unknown_records_and_shapes_cost_only_themselves(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        entry(1, None, "hologram", x=1),
        user(2, 1, "go"),
        entry(3, 2, message="nothing"),
        entry(4, 3, message={"role": "ghost", "content": "boo"}),
        result(5, 4, "of no call"),
        answer(6, 5),
    )
    assert (prompts_of(session), texts_of(session)) == (["go"], ["answer 6"])
    assert [problem.line for problem in session.problems] == [4, 0]


def test_the_system_prompt_and_the_tools_that_the_model_was_sent_are_kept(tmp_path: Path) -> None:
    own = '<project_instructions path="/w/shop/AGENTS.md">\nBe brief.\n\n</project_instructions>'
    tool = {"name": "read", "description": "Read.", "parameters": {"type": "object"}}
    message = {"role": "system", "content": "", "sections": {"preamble": "You code.", "own": own}}
    thought = {"type": "thinking", "thinking": "Easy."}
    session = read_one(
        tmp_path,
        entry(1, None, message={**message, "toolsAdded": [tool]}),
        user(2, 1, "go"),
        answer(3, 2, thought),
    )
    assert session.system_prompt == f"You code.\n\n{own}"
    assert [each.name for each in session.declared_tools or ()] == ["read"]
    (given,) = session.instructions or ()
    assert (given.path, given.text) == ("/w/shop/AGENTS.md", "Be brief.\n")
    assert session.turns[0].messages[0].thinking == "Easy."
