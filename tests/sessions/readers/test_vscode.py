"""Copilot's chats in VS Code: a document, or a log of its changes; rounds, and parts shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.base import NoSession
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.vscode import READER
from debrief.sessions.sources import scan
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of, told_in
from tests.sessions.readers.vscode_scenario import (
    CART,
    CHAT,
    START,
    ask,
    call,
    document,
    edited,
    log,
    rounds,
    shown,
    write,
)


def read_one(folder: Path, *requests: Any, **more: Any) -> Session:
    write(folder, *requests, **more)
    return read_all(READER, folder)[0]


def read_log(folder: Path, *entries: Any) -> Session:
    log(folder, *entries)
    return read_all(READER, folder)[0]


def test_a_log_makes_the_session_that_its_document_does(tmp_path: Path) -> None:
    told = rounds(("Look", [call("read_file", "c", filePath=CART)]), ("Done", []), c="x = 1")
    request = ask("go", response=[{"value": "Look"}, shown("copilot_readFile")], result=told)
    plain = read_one(tmp_path / "document", request)
    logged = read_log(
        tmp_path / "log",
        {"kind": 2, "k": ["requests"], "v": [{**request, "response": [], "result": None}]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Lo"}, {"value": "gone"}]},
        {"kind": 2, "k": ["requests", 0, "response"], "i": 1},
        {"kind": 1, "k": ["requests", 0, "response", 0], "v": {"value": "Look"}},
        {"kind": 1, "k": ["requests", 0, "response", 1], "v": shown("copilot_readFile")},
        {"kind": 1, "k": ["requests", 0, "result"], "v": told},
        {"kind": 1, "k": ["requests", 0, "agent"], "v": {"extensionVersion": "1"}},
        {"kind": 3, "k": ["requests", 0, "agent"]},
    )
    assert (logged.turns, logged.usage, logged.title) == (plain.turns, plain.usage, "Cart")
    assert not logged.problems


def test_a_request_that_was_asked_anew_is_kept_as_taken_back(tmp_path: Path) -> None:
    session = read_log(
        tmp_path,
        {"kind": 2, "k": ["requests"], "v": [ask("one"), ask("wrong", 2), ask("on", 3)]},
        {"kind": 2, "k": ["requests"], "i": 1, "v": [ask("right", 4)]},
        {"kind": 2, "k": ["requests"], "i": 1, "v": [ask("right", 4), ask("last", 5)]},
        {"kind": 1, "k": ["requests", 2, "shouldBeRemovedOnSend"], "v": {"requestId": "request"}},
    )
    assert prompts_of(session) == ["one", "wrong", "on", "right", "last"]
    assert [turn.prompt for turn in session.turns if turn.rewound] == ["wrong", "on", "last"]


BAD_ENTRIES: dict[str, Any] = {
    "a kind to come": {"kind": 9, "k": ["requests"], "v": []},
    "no kind": {"k": ["requests"], "v": []},
    "a request that is not there": {"kind": 1, "k": ["requests", 7, "result"], "v": {}},
    "an index from the end": {"kind": 1, "k": ["requests", -1], "v": ask("no")},
    "an index far beyond": {"kind": 1, "k": ["requests", 10**9], "v": ask("no")},
    "a name in a list": {"kind": 1, "k": ["requests", "0"], "v": ask("no")},
    "no place": {"kind": 1, "k": [], "v": ask("no")},
    "a push on text": {"kind": 2, "k": ["customTitle"], "v": ["x"]},
    "a deletion in a list": {"kind": 3, "k": ["requests", 0]},
}


@pytest.mark.parametrize("bad", BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_an_entry_that_cannot_be_applied_costs_nothing_but_itself(tmp_path: Path, bad: Any) -> None:
    push = {"kind": 2, "k": ["requests"], "v": [ask("go")]}
    later = {"kind": 2, "k": ["requests"], "v": [ask("on", 2)]}
    session = read_log(tmp_path, push, bad, later)
    assert prompts_of(session) == ["go", "on"]
    assert [each.line for each in session.problems] == [3]


def test_a_log_that_grows_while_it_is_read_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = log(tmp_path, {"kind": 2, "k": ["requests"], "v": [ask("go")]})
    whole = path.read_text()
    path.write_text(whole + json.dumps({"kind": 2, "k": ["requests"], "v": [ask("on", 2)]})[:90])
    (session,) = read_all(READER, tmp_path)
    assert prompts_of(session) == ["go"]
    assert [each.reason for each in session.problems] == ["the line is cut short"]


def test_a_document_cut_short_keeps_the_requests_before(tmp_path: Path) -> None:
    path = write(tmp_path, ask("one"), ask("two", 2), ask("three", 3))
    path.write_text(path.read_text()[: path.read_text().index("three")])
    (session,) = read_all(READER, tmp_path)
    assert prompts_of(session) == ["one", "two"]
    assert "2 requests stand before it" in session.problems[0].reason


def test_a_log_whose_first_entry_is_broken_keeps_what_was_added_later(tmp_path: Path) -> None:
    push = {"kind": 2, "k": ["requests"], "v": [ask("go")]}
    path = log(tmp_path, push, first=document(ask("old")))
    path.write_text(path.read_text().replace('"version": 3', '"version": 3, "x": ', 1))
    (session,) = read_all(READER, tmp_path)
    assert prompts_of(session) == ["go"]
    assert [each.line for each in session.problems] == [1]


def test_a_chat_that_nobody_wrote_in_is_no_session(tmp_path: Path) -> None:
    write(tmp_path)
    (transcript,) = READER.find(walk(tmp_path))
    assert READER.peek(transcript) is None
    with pytest.raises(NoSession):
        READER.read(transcript)


SKIP = "The user chose to skip the tool call, they want to proceed without running it"
STOP = "The user cancelled the tool call."
TERMINAL = {"kind": "terminal", "terminalCommandState": {"exitCode": 3}}
ENDS: dict[str, tuple[Any, str | None, str, int | None]] = {
    "ok": (shown("run_in_terminal"), "fine", "ok", None),
    "exit code": (shown("run_in_terminal", toolSpecificData=TERMINAL), "no", "failed", 3),
    "error": (shown("run_in_terminal"), "ERROR while calling tool: no", "failed", None),
    "error shown": (shown("x", resultDetails={"isError": True}), "no", "failed", None),
    "denied": (shown("run_in_terminal", confirmed=0), STOP, "rejected", None),
    "denied before 1.104": (shown("run_in_terminal", confirmed=False), None, "rejected", None),
    "skipped": (shown("run_in_terminal", confirmed=5), SKIP, "rejected", None),
    "not shown": (None, SKIP, "rejected", None),
    "running": (shown("run_in_terminal", isComplete=False), None, "unanswered", None),
}


@pytest.mark.parametrize(("part", "text", "status", "code"), ENDS.values(), ids=ENDS)
def test_a_call_ends_as_the_model_was_told_and_the_person_saw(
    tmp_path: Path, part: Any, text: str | None, status: str, code: int | None
) -> None:
    results = {} if text is None else {"c": text}
    told = rounds(("", [call("run_in_terminal", "c", command="x")]), **results)
    session = read_one(tmp_path, ask("go", response=[part] if part else [], result=told))
    (found,) = calls_of(session)
    assert (found.status, found.exit_code) == (status, code)
    kinds = [deed.kind for turn in session.turns for deed in turn.interventions]
    assert kinds == ["rejection"] * (status == "rejected")


STOPS: list[dict[str, Any]] = [
    {"modelState": {"value": 2, "completedAt": START + 90_000}},
    {"isCanceled": True},
    {"result": {"errorDetails": {"message": "Canceled", "code": "canceled"}}},
]


@pytest.mark.parametrize("stop", STOPS)
def test_stopping_a_request_is_an_interruption_and_no_refusal(tmp_path: Path, stop: Any) -> None:
    asked = shown("run_in_terminal", confirmed=0)
    session = read_one(tmp_path, ask("go", response=[{"value": "I run it"}, asked], **stop))
    (turn,) = session.turns
    assert [deed.kind for deed in turn.interventions] == ["interruption"]
    assert [each.status for each in calls_of(session)] == ["failed"]


def test_several_calls_with_ids_masked_to_one_word_each_keep_their_end(tmp_path: Path) -> None:
    calls = [call("run_in_terminal", "REDACTED", command=name) for name in "abc"]
    parts = [shown("run_in_terminal", "REDACTED", confirmed=kind) for kind in (1, 5, 1)]
    told = rounds(("", calls), REDACTED="done")
    session = read_one(tmp_path, ask("go", response=parts, result=told))
    assert [each.status for each in calls_of(session)] == ["ok", "rejected", "ok"]


def test_edits_count_by_what_the_calls_were_given(tmp_path: Path) -> None:
    several = [
        {"filePath": CART, "oldString": "a\nb\n", "newString": "a\nc\n"},
        {"filePath": "/home/ann/shop/b.py", "oldString": "x\n", "newString": ""},
    ]
    patch = f"*** Begin Patch\n*** Update File: {CART}\n@@\n-c\n+d\n+e\n*** End Patch"
    calls = [
        call("create_file", "c1", filePath=CART, content="a\nb\n"),
        call("multi_replace_string_in_file", "c2", replacements=several),
        call("apply_patch", "c3", input=patch),
        call("replace_string_in_file", "c4", filePath=CART, oldString="d", newString="f"),
    ]
    done = dict.fromkeys(("c1", "c2", "c3"), "done")
    told = rounds(("", calls), **done, c4="ERROR while calling tool: no match")
    session = read_one(tmp_path, ask("go", result=told))
    found = [(each.path, each.added, each.removed) for each in calls_of(session)]
    assert found == [(CART, 2, 0), (CART, 1, 2), (CART, 2, 1), (None, 0, 0)]
    assert "+++ /home/ann/shop/b.py" in calls_of(session)[1].patch


def test_an_edit_that_tells_new_lines_alone_counts_those_that_changed(tmp_path: Path) -> None:
    same, changed, new = ("a = 1", 1, 1, 1, 6), ("b = 22", 2, 1, 2, 6), ("c\n", 3, 1, 3, 1)
    told = rounds(("", [call("insert_edit_into_file", "c", filePath=CART, code="...")]), c="ok")
    parts = [shown("copilot_insertEdit"), shown("vscode_editFile_internal")]
    parts.append(edited(CART, same, changed, new))
    session = read_one(tmp_path, ask("go", response=parts, result=told))
    (found,) = calls_of(session)
    assert (found.added, found.removed, found.estimated) == (2, 1, True)


def test_blocks_that_vs_code_applied_itself_are_edits(tmp_path: Path) -> None:
    parts = [{"value": "Here:"}, edited(CART, ("x = 1\n", 1, 1, 1, 1))]
    for told in ({}, rounds(("Here:", []))):
        session = read_one(tmp_path, ask("go", response=parts, result=told))
        assert [(each.name, each.added) for each in calls_of(session)] == [("edit_files", 1)]


def test_what_was_shown_is_read_where_the_models_own_rounds_are_missing(tmp_path: Path) -> None:
    line = {"original": "pytest -q", "toolEdited": " pytest -q"}
    terminal = {"kind": "terminal", "commandLine": line, "terminalCommandOutput": {"text": "ok"}}
    asked = {"input": '{"city":"Rome"}', "output": [{"value": "sunny"}]}
    parts = [
        {"kind": "thinking", "value": "hm"},
        {"value": "I test "},
        {"kind": "inlineReference", "inlineReference": {"path": CART}},
        {"value": "\n```\n"},
        shown("run_in_terminal", toolSpecificData=terminal),
        {"kind": "markdownContent", "content": {"value": "And ask."}},
        shown("mcp_weather", resultDetails=asked),
        {"kind": "progressMessage", "content": {"value": "Working"}},
    ]
    session = read_one(tmp_path, ask("go", response=parts))
    assert texts_of(session) == ["I test `cart.py`", "And ask."]
    assert [(each.name, each.input, each.result) for each in calls_of(session)] == [
        ("run_in_terminal", '{"command":"pytest -q"}', "ok"),
        ("mcp_weather", '{"city":"Rome"}', "sunny"),
    ]


def test_a_subagents_calls_are_its_own(tmp_path: Path) -> None:
    data = {"kind": "subagent", "agentName": "scout", "prompt": "Who?", "result": "Nobody."}
    parts = [
        shown("runSubagent", "c1", toolSpecificData=data),
        shown("copilot_readFile", "s1", subAgentInvocationId="c1"),
        edited(CART, ("x\n", 1, 1, 1, 1)),
        shown("copilot_readFile", "c2"),
    ]
    asked, look = (
        call("runSubagent", "c1__vscode-17", prompt="Who?"),
        call("read_file", "c2__vscode-18"),
    )
    told = rounds(("", [asked, look]), **{"c1__vscode-17": "Nobody.", "c2__vscode-18": "x"})
    session = read_one(tmp_path, ask("go", response=parts, result=told))
    assert prompts_of(session) == ["go"]
    assert [each.name for each in calls_of(session)] == ["runSubagent", "read_file"]
    (agent,) = session.subagents
    assert (agent.type, agent.prompt, agent.call_id) == ("scout", "Who?", "c1__vscode-17")
    assert [message.text for message in agent.messages] == ["", "Nobody."]
    assert [each.added for message in agent.messages for each in message.calls] == [1]


TOTAL = {"inputTokens": 9, "cachedTokens": 5}
TOKENS: dict[str, tuple[dict[str, Any], dict[str, Any], Usage, int]] = {
    "request": ({"promptTokens": 9, "completionTokens": 4}, {}, Usage(9, 4), 1),
    "result": ({}, {"usage": {"promptTokens": 9, "completionTokens": 4}}, Usage(9, 4), 1),
    "totals": ({"promptTokens": 9, "modelTotals": [TOTAL]}, {}, Usage(4, 0, 0, 5), 0),
    "none": ({}, {}, Usage(), 0),
}


@pytest.mark.parametrize(("more", "result", "usage", "problems"), TOKENS.values(), ids=TOKENS)
def test_tokens_are_those_told_and_what_is_not_told_is_said(
    tmp_path: Path, more: Any, result: Any, usage: Usage, problems: int
) -> None:
    told = {**rounds(("Look", []), ("Done", [])), **result}
    session = read_one(tmp_path, ask("go", result=told, **more))
    assert session.usage == usage
    assert len(session.problems) == problems


def test_a_compaction_gives_the_next_message_its_summary(tmp_path: Path) -> None:
    told = rounds(("One", []), ("Two", []))
    usage = {"prompt_tokens": 50, "completion_tokens": 5}
    summary = {"toolCallRoundId": "r0", "text": "So far.", "usage": usage}
    told["metadata"]["summaries"] = [summary]
    later = rounds(("Three", []))
    later["metadata"]["summary"] = {"toolCallRoundId": "r1", "text": "Further."}
    later["metadata"]["toolCallRounds"][0]["id"] = "r2"
    session = read_one(tmp_path, ask("go", result=told), ask("on", 2, result=later))
    found = [(each.text, each.summary) for turn in session.turns for each in turn.messages]
    assert found == [("One", ""), ("Two", "So far."), ("Three", "Further.")]
    assert (session.compactions, session.usage) == (2, Usage(50, 5))


def test_who_speaks_is_what_the_chat_says(tmp_path: Path) -> None:
    rendered = [{"text": "<userRequest>\nFollow instructions in #prompt:fix\n</userRequest>"}]
    mode = {"name": "careful", "uri": {"path": "/a/careful.agent.md"}, "content": "Test first."}
    given = {"modeInstructions": mode}
    session = read_one(
        tmp_path,
        ask("/fix", modeInfo=given, result={"metadata": {"renderedUserMessage": rendered}}),
        ask("[Terminal] done", 2, isSystemInitiated=True, response=[{"value": "I see"}]),
        ask("", 3, variableData={"variables": [{"kind": "image"}, {"kind": "file"}]}),
        ask("old", 4, message="an old prompt", modeInfo=given),
    )
    found = [(turn.prompt, turn.images, turn.expansion) for turn in session.turns]
    fix = ("/fix", 0, "Follow instructions in #prompt:fix")
    assert found == [fix, ("", 1, ""), ("an old prompt", 0, "")]
    assert texts_of(session) == ["I see"]
    assert told_in(session) == [("program", "[Terminal] done")]
    (file,) = session.instructions or ()
    assert (file.path, file.text, file.place) == ("/a/careful.agent.md", "Test first.", "system")


FOLDERS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "folder": ({"folder": "file:///home/ann/my%20shop"}, {}, "/home/ann/my shop"),
    "remote": ({"folder": "vscode-remote://ssh-remote%2Bx/srv/shop"}, {}, "/srv/shop"),
    "windows": ({"folder": "file:///c%3A/Users/Ann/shop"}, {}, "c:/Users/Ann/shop"),
    "its own": ({"folder": "file:///a"}, {"workingDirectory": "file:///srv/b"}, "/srv/b"),
    "several folders": ({"configuration": "file:///a/x.code-workspace"}, {}, "/home/ann/shop"),
    "not JSON": ("[", {}, "/home/ann/shop"),
}


@pytest.mark.parametrize(("beside", "more", "cwd"), FOLDERS.values(), ids=FOLDERS)
def test_the_workspace_beside_the_chats_tells_the_folder(
    tmp_path: Path, beside: Any, more: dict[str, Any], cwd: str
) -> None:
    base = {"value": "Hi", "baseUri": {"path": "/home/ann/shop/", "scheme": "file"}}
    path = write(tmp_path, ask("go", response=[base]), **more)
    text = beside if isinstance(beside, str) else json.dumps(beside)
    path.parents[1].joinpath("workspace.json").write_text(text)
    (session,) = read_all(READER, tmp_path)
    assert session.cwd == cwd


def test_chats_are_found_where_the_editors_keep_them(tmp_path: Path) -> None:
    homes = (
        ".config/Code/User/workspaceStorage/a/chatSessions",
        ".config/VSCodium/User/globalStorage/emptyWindowChatSessions",
        "Library/Application Support/Code - Insiders/User/workspaceStorage/b/chatSessions",
        ".vscode-server/data/User/workspaceStorage/c/chatSessions",
        "moved/Code/User/workspaceStorage/d/chatSessions",
    )
    for home in homes:
        (tmp_path / home).mkdir(parents=True)
    (tmp_path / ".config/Code/User/workspaceStorage/a/GitHub.copilot-chat").mkdir()
    found = READER.folders(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "moved")})
    assert sorted(found) == sorted(tmp_path / home for home in homes)


def test_a_chat_that_was_moved_to_a_log_and_its_fork_are_one_session(tmp_path: Path) -> None:
    told = rounds(("Done", []))
    write(tmp_path, ask("go", result=told))
    log(tmp_path, first=document(ask("go", result=told), ask("on", 2)))
    fork = tmp_path / "w/chatSessions" / f"{CHAT[:-1]}7.jsonl"
    fork.write_text(json.dumps({"kind": 0, "v": document(ask("go", result=told))}) + "\n")
    assert {entry.session_id for entry in scan([tmp_path]).entries} == {CHAT}


def test_a_long_chat_is_dated_by_its_end(tmp_path: Path) -> None:
    path = write(tmp_path, ask("x" * 40_000), ask("on", 2))
    (transcript,) = READER.find(walk(tmp_path))
    peek, session = READER.peek(transcript), READER.read(transcript)
    assert peek is not None
    assert (peek.started, peek.session_id) == (session.started, path.stem)
