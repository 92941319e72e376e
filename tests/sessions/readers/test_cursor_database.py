"""Cursor's own database, as Cursor writes it: the rows of 2025, and those of its version 3."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from debrief.sessions.actions import with_actions
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.cursor import READER
from debrief.sessions.readers.files import walk
from tests.sessions.readers.content import calls_of, prompts_of, read_all, texts_of, write_records

ID, CHILD = "22b57e58-4764-45d1-8303-21d00aaa6ec5", "59c0d1aa-1c67-4e17-8954-0b6e2b3322f1"
START = 1_772_445_600_000


class Database:
    """The database of a Cursor that is running."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(folder / "state.vscdb", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute(
            "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
        )

    def put(self, key: str, value: Any) -> None:
        text = value if isinstance(value, str | None) else json.dumps(value)
        self.connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, text))

    def session(self, id: str, *bubbles: dict[str, Any], **about: Any) -> None:
        heads = []
        for number, bubble in enumerate(bubbles):
            name = f"b{number}"
            heads.append({"bubbleId": name, "type": bubble["type"]})
            self.put(f"bubbleId:{id}:{name}", {"bubbleId": name, **bubble})
        listed = {"createdAt": START, "fullConversationHeadersOnly": heads, **about}
        self.put(f"composerData:{id}", {"composerId": id, **listed})


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"type": 1, "text": text, **more}


def said(text: str = "", thought: str = "", **more: Any) -> dict[str, Any]:
    return {"type": 2, "text": text, "thinking": {"text": thought}, **more}


def called(id: str, name: str, given: Any, result: Any = None, **more: Any) -> dict[str, Any]:
    tool = {"toolCallId": id, "name": name, "rawArgs": json.dumps(given), "status": "completed"}
    tool["result"] = json.dumps(result)
    return {"type": 2, "text": "", "toolFormerData": {**tool, **more}}


def test_a_session_of_2025_is_read_with_its_results_edits_and_refusals(tmp_path: Path) -> None:
    database = Database(tmp_path)
    sent = {"clientRpcSendTime": START + 5_000, "clientEndTime": START + 9_000}
    chunk = {"diffString": "  a\r\n- b\r\n+ c\r\n+ d", "oldStart": 3, "newStart": 3}
    edit = called(
        "e", "edit_file", {"target_file": "x.js"}, {"diff": {"chunks": [chunk]}},
        userDecision="accepted",
    )  # fmt: skip
    ran = {"output": "$ npm test\nno tests", "exitCodeV2": 1}
    error = json.dumps({"modelVisibleErrorMessage": "no such folder"})
    database.session(
        ID,
        asked("Add it."),
        said("I look.", timingInfo=sent),
        called("r", "read_file", {"target_file": "x.js"}, {"contents": "a\nb"}),
        said("I change it."),
        edit,
        called("t", "run_terminal_cmd", {"command": "npm test"}, ran),
        called("l", "list_dir", {"relative_workspace_path": "no"}, status="error", error=error),
        called("n", "run_terminal_cmd", {"command": "rm x"}, {}, userDecision="rejected"),
        called("p", "run_terminal_cmd", {"command": "sleep 9"}, status="loading"),
        said("Done.", tokenCount={"inputTokens": 40, "outputTokens": 3}),
        name="A title",
    )
    database.put("composerData:draft", {"composerId": "draft", "fullConversationHeadersOnly": []})
    database.put("composerData:none", None)
    (session,) = (with_actions(each) for each in read_all(READER, tmp_path))
    assert (session.id, session.title, prompts_of(session)) == (ID, "A title", ["Add it."])
    assert texts_of(session) == ["I look.", "I change it.", "Done."]
    assert (session.turns[0].at, session.models) == (session.turns[0].messages[0].at, ())
    assert [(each.id, each.status, each.exit_code, each.action) for each in calls_of(session)] == [
        ("r", "ok", None, "read"),
        ("e", "ok", None, "edit"),
        ("t", "failed", 1, "run"),
        ("l", "failed", None, "search"),
        ("n", "rejected", None, "run"),
        ("p", "unanswered", None, "run"),
    ]
    read, changed, tested, lost, *_ = calls_of(session)
    assert (read.result, tested.result, lost.result) == ("a\nb", ran["output"], "no such folder")
    assert (changed.path, changed.added, changed.removed, changed.estimated) == (
        "x.js",
        2,
        1,
        False,
    )
    assert changed.patch == "@@ -3,2 +3,3 @@\n a\n-b\n+c\n+d"
    assert (session.usage.input, session.usage.output, session.problems) == (40, 3, ())


def test_version_3_says_more_and_keeps_files_apart(tmp_path: Path) -> None:
    database = Database(tmp_path)
    database.put("composer.content.1", "a\nb\n")
    database.put("composer.content.2", "a\nc\nd\n")
    contents = {"beforeContentId": "composer.content.1", "afterContentId": "composer.content.2"}
    edited = {"relativeWorkspacePath": "/w/x.js"}
    task = {"additionalData": {"subagentComposerId": CHILD}, "modelCallId": "two"}
    skipped = json.dumps({"clientVisibleErrorMessage": "Edit rejected: User chose to skip"})
    database.session(
        ID,
        asked("Go.", createdAt="2026-03-02T10:00:01.000Z", images=[{"uuid": "i"}]),
        said(thought="Hm.", createdAt="2026-03-02T10:00:02.000Z"),
        called("r", "read_file_v2", {"targetFile": "x.js"}, {"totalLinesInFile": 2}),
        called("e", "edit_file_v2", {}, contents, modelCallId="one", params=json.dumps(edited)),
        called("s", "task_v2", {"prompt": "Look.", "description": "A look"}, {}, **task),
        called("k", "edit_file_v2", edited, {}, status="cancelled", error=skipped),
        modelConfig={"modelName": "grok-4.6"},
        workspaceIdentifier={"uri": {"fsPath": "/home/ann/shop"}},
        trackedGitRepos=[{"branches": [{"branchName": "main"}]}],
        subagentComposerIds=[CHILD],
    )
    nothing = asked("Look."), said("It is there.", modelInfo={"modelName": "composer-2.5"})
    database.session(CHILD, *nothing, modelConfig={"modelName": "default"})
    (session,) = read_all(READER, tmp_path)
    assert (session.cwd, session.branch) == ("/home/ann/shop", "main")
    assert session.models == ("grok-4.6", "composer-2.5")
    assert [[each.id for each in message.calls] for message in session.turns[0].messages] == [
        ["r", "e"],
        ["s", "k"],
    ]
    read, edit, _, skip, *_ = calls_of(session)
    assert (read.result, read.status, skip.status) == (None, "ok", "rejected")
    assert (edit.path, edit.added, edit.removed, edit.estimated) == ("/w/x.js", 2, 1, False)
    (agent,) = session.subagents
    assert (agent.id, agent.call_id, agent.prompt) == (CHILD, "s", "Look.")
    assert session.turns[0].images == 1


def test_a_session_that_is_a_transcript_too_is_read_from_the_database(tmp_path: Path) -> None:
    database = Database(tmp_path / "globalStorage")
    database.session(ID, asked("Go."), said("Gone."))
    place = tmp_path / "projects" / "home-ann" / "agent-transcripts" / ID
    blocks = [{"type": "text", "text": "<user_query>\nGo.\n</user_query>"}]
    write_records(place / f"{ID}.jsonl", {"role": "user", "message": {"content": blocks}})
    found = list(READER.find(walk(tmp_path)))
    failures: list[Exception] = []

    def failed(transcript: Transcript, error: Exception) -> None:
        failures.append(error)

    session = READER.read_all(found, failed)
    assert session is not None
    assert (len(found), prompts_of(session), texts_of(session)) == (2, ["Go."], ["Gone."])
    database.connection.execute("UPDATE cursorDiskKV SET value = 'x' WHERE key LIKE 'bubble%'")
    session = READER.read_all(found, failed)
    assert session is not None
    assert (prompts_of(session), len(failures)) == (["Go."], 1)
