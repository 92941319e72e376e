"""Crush: ``<project>/.crush/crush.db``, a row a message, with its parts as JSON.

A summary is a message of its own, after which the model is shown nothing older. The session's
tokens are those of its last request alone.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import ToolNames
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, replaced
from debrief.sessions.readers.tables import DatabaseReader, SessionInDatabase, json_in
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import (
    decoded_arguments,
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
)

_EXIT_CODE = re.compile(r"Exit code (-?\d+)\s*(?:\n\n<cwd>[^\n]*</cwd>\s*)?\Z")
_TAIL = 500
_AGAIN = "The previous session was interrupted because it got too long"
_CANCELED = ("Error: user cancelled assistant tool calling", "Tool execution canceled by user")
_DENIED = "Permission denied"
"""The person's refusal, in versions of 2025: a tool's own error has more words."""
_ABORTED = "Command was aborted before completion"
_EDITING = frozenset({"edit", "multiedit", "write"})


class CrushReader(DatabaseReader):
    """Crush's sessions, a database a project."""

    source = "crush"
    tool = "crush"
    tools = ToolNames(
        run="bash",
        read="view",
        search="grep glob ls sourcegraph",
        edit="edit multiedit write",
        wait="job_output",
        plan="todos",
        delegate="agent agentic_fetch",
        ask="question",
        web="fetch web_fetch web_search",
    )
    databases = ("crush.db",)
    needed = {
        "sessions": frozenset({"id", "parent_session_id", "title", "created_at", "updated_at"}),
        "messages": frozenset({"id", "session_id", "role", "parts", "model", "created_at"}),
    }

    def listed(self, connection: Connection) -> list[SessionInDatabase]:
        """Return the sessions of a database."""
        counted = """
            SELECT session_id, count(*) AS many, max(updated_at) AS changed,
                sum(length(CAST(parts AS BLOB))) AS size
            FROM messages GROUP BY session_id
        """
        counts = {str(row["session_id"]): row for row in connection.execute(counted)}
        found: list[SessionInDatabase] = []
        for row in connection.execute("SELECT * FROM sessions ORDER BY created_at, id"):
            if (count := counts.get(str(row["id"]))) is not None:
                changed = f"{row['updated_at']} {count['changed']} {count['size']}"
                found.append(
                    SessionInDatabase(
                        str(row["id"]),
                        string(row["parent_session_id"]),
                        moment(row["created_at"]),
                        count["many"],
                        changed,
                    )
                )
        return found

    def draft_of(self, connection: Connection, id: str, draft: TranscriptDraft) -> None:
        """Read one session of a database."""
        row = dict(connection.execute("SELECT * FROM sessions WHERE id = ?", (id,)).fetchone())
        draft.take(row, title="title")
        folder = Path(draft.path.rpartition("#")[0]).parent
        draft.cwd = str(folder.parent) if folder.name == ".crush" else ""
        draft.parent_call = id.partition("$$")[2]
        messages = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid"
        for each in map(dict, connection.execute(messages, (id,))):
            at = moment(each["created_at"])
            draft.see(at)
            parts = [
                (string(part.get("type")), mapping(part.get("data")))
                for part in mappings(json_in(each, "parts", draft))
            ]
            if each.get("is_summary_message"):
                draft.timeline.compact(_words(parts))
            elif each["role"] == "user":
                _ask(parts, at, draft)
            elif each["role"] == "assistant":
                _answer(each, parts, at, draft)
            for kind, data in parts:
                if kind == "tool_result":
                    _result(data, at, draft)


READER = CrushReader()
_Parts = list[tuple[str, JsonRecord]]


def _words(parts: _Parts) -> str:
    return "\n\n".join(string(data.get("text")) for kind, data in parts if kind == "text")


def _ask(parts: _Parts, at: datetime | None, draft: TranscriptDraft) -> None:
    timeline, words = draft.timeline, _words(parts)
    for kind, data in parts:
        if kind == "shell_command":
            ran = f"$ {string(data.get('command'))}\n{string(data.get('output'))}"
            timeline.add_context("command", ran, at)
    kinds = [string(data.get("MIMEType")) for kind, data in parts if kind == "binary"]
    images = sum(kind.startswith("image/") for kind in kinds)
    images += sum(kind == "image_url" for kind, _ in parts)
    if words.startswith(_AGAIN):
        timeline.add_context("program", words, at)
    elif words.strip() or images:
        timeline.prompt(words, at, images)


def _answer(
    row: dict[str, Any], parts: _Parts, at: datetime | None, draft: TranscriptDraft
) -> None:
    timeline = draft.timeline
    answer = timeline.begin_message(row["id"], row["model"], at)
    is_canceled = False
    for kind, data in parts:
        if kind == "text":
            answer.texts.append(string(data.get("text")))
        elif kind == "reasoning":
            answer.thoughts.append(string(data.get("thinking")))
        elif kind == "tool_call":
            timeline.call(answer, data.get("id"), data.get("name"), data.get("input"), at)
        elif kind == "finish":
            draft.see(moment(data.get("time")))
            is_canceled = data.get("reason") == "canceled"
    if is_canceled:
        timeline.interrupt(at)


def _result(data: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    call = draft.called(data.get("tool_call_id"))
    if call is None:
        return
    text, timeline = string(data.get("content")), draft.timeline
    failed = data.get("is_error") is True
    if text in _CANCELED:  # the person stopped the answer, which it says too
        call.result, call.status = text, "failed"
        timeline.answered(call)
        return
    if failed and text == _DENIED:
        timeline.reject(call, text, at)
        return
    about = decoded_arguments(string(data.get("metadata")))
    code = None
    if call.name == "bash" and about.get("end_time") and not about.get("background"):
        end = text[-_TAIL:]  # where it says so unless the command came to a good end
        code = number_in(end, _EXIT_CODE, None if _ABORTED in end else 0)
    timeline.result(call, text, failed=failed, at=at, exit_code=code, edit=_edit(call, about))


def _edit(call: CallDraft, about: JsonRecord) -> FileEdit | None:
    if call.name not in _EDITING:
        return None
    path, given = first_string(call.arguments, "file_path"), call.arguments
    old, new = about.get("old_content", ""), about.get("new_content", "")
    if type(old) is str and type(new) is str and old + new:
        return replaced(path, old, new)
    return edit_of_arguments(given, string(about.get("diff")))
