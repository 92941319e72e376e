"""Copilot's chats in VS Code: where they are, forks, and a long one."""

from __future__ import annotations

import json
from pathlib import Path

from debrief.sessions.readers.files import walk
from debrief.sessions.readers.vscode import READER
from debrief.sessions.sources import scan
from tests.sessions.readers.vscode_scenario import CHAT, ask, document, log, rounds, write


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
