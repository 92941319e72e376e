"""Goose: ``~/.local/share/goose/sessions/sessions.db``, and the ``.jsonl`` files before 1.10.

A message is a role and a list of parts; what tools return stands in the person's name. What the
person does not see, the model was given by the program.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments
from debrief.sessions.readers.tables import DatabaseReader, SessionInDatabase, json_in
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft
from debrief.sessions.readers.values import (
    decoded_arguments,
    first_string,
    mapping,
    mappings,
    moment,
    string,
    text_of,
    usage_in,
    whole_numbers,
)

_REFUSED = "The user has declined to run this tool"
_NAMED = re.compile(r"\ASubagent ID: \S+\n\n")
"""What the program puts before what a subagent is asked."""
_CREATED = re.compile(rb'(?<!\\)"created"\s*:\s*(\d{9,16})')
_BILLED = ("inputTokens", "outputTokens", "cacheWriteTokens", "cacheReadTokens")
_TOTALS = tuple(
    f"accumulated_{name}_tokens" for name in ("input", "output", "cache_write", "cache_read")
)


class GooseReader(DatabaseReader):
    """Goose's sessions: rows of its database, and files of older versions."""

    source = "goose"
    tool = "goose"
    tools = ToolNames(
        run="developer__shell shell",
        read="read_image",
        search="developer__analyze developer__tree analyze tree",
        edit="developer__write developer__edit write edit",
        plan="todo__todo_write todo__write",
        delegate="subagent__execute_task dynamic_task__create_task delegate",
        web="computercontroller__web_scrape",
    )
    home_folders = (
        ".local/share/goose/sessions",
        "Library/Application Support/Block.block.goose/sessions",
    )
    moved_by = ("XDG_DATA_HOME", ".local/share")
    suffixes = (".jsonl",)
    databases = ("sessions.db",)
    needed = {
        "sessions": frozenset({"id", "working_dir", "created_at", "updated_at"}),
        "messages": frozenset({"id", "session_id", "role", "content_json", "created_timestamp"}),
    }
    start = re.compile(rb'\A\s*\{[^\n]{0,8000}?"working_dir"\s*:\s*"')
    marks = (re.compile(rb'\A[^\n]*"message_count"\s*:\s*\d'),)
    message_mark = re.compile(rb'(?<!\\)"role"\s*:\s*"(?:user|assistant)"')

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a file with this beginning is one of an older version."""
        return bool(self.start.match(head)) and all(mark.search(head) for mark in self.marks)

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning of an older version's file says: its name is the session's."""
        created = head.text(_CREATED)
        return Peek(session_id=Path(path).stem, started=moment(int(created)) if created else None)

    def read_file(self, path: str) -> TranscriptDraft:
        """Read an older version's file."""
        draft = TranscriptDraft(path)
        draft.id = Path(path).stem
        draft.read_lines(_convert)
        return draft

    def listed(self, connection: Connection) -> list[SessionInDatabase]:
        """Return the sessions of a database."""
        counted = """
            SELECT session_id, count(*) AS many, max(id) AS last,
                sum(length(CAST(content_json AS BLOB))) AS size
            FROM messages GROUP BY session_id
        """
        counts = {str(row["session_id"]): row for row in connection.execute(counted)}
        found: list[SessionInDatabase] = []
        for row in map(dict, connection.execute("SELECT * FROM sessions ORDER BY id")):
            id = str(row["id"])
            if (count := counts.get(id)) is not None:
                changed = f"{row['updated_at']} {count['last']} {count['size']}"
                found.append(
                    SessionInDatabase(
                        id,
                        string(row.get("parent_session_id")),
                        moment(row["created_at"]),
                        count["many"],
                        changed,
                    )
                )
        return found

    def draft_of(self, connection: Connection, id: str, draft: TranscriptDraft) -> None:
        """Read one session of a database."""
        row = dict(connection.execute("SELECT * FROM sessions WHERE id = ?", (id,)).fetchone())
        draft.take(row, cwd="working_dir", title="name")
        draft.take(row, title="description")
        draft.model = string(
            decoded_arguments(string(row.get("model_config_json"))).get("model_name")
        )
        draft.is_subagent = row.get("session_type") == "sub_agent"
        messages = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
        talk = _Talk(draft)
        for message in connection.execute(messages, (id,)):
            metadata: Any = {}
            if "metadata_json" in message.keys():  # noqa: SIM118 - of a row
                metadata = decoded_arguments(string(message["metadata_json"]))
            at = moment(message["created_timestamp"])
            name = f"{id}-{message['id']}"
            talk.add(name, message["role"], json_in(message, "content_json", draft), metadata, at)
        _settle(row, draft)


READER = GooseReader()


def _convert(lines: JsonLines, draft: TranscriptDraft) -> None:
    talk = _Talk(draft)
    header: JsonRecord = {}
    for record in lines:
        if "role" not in record:
            header = header or record
            draft.take(record, cwd="working_dir", title="description")
            continue
        at, metadata = moment(record.get("created")), record.get("metadata")
        talk.add(string(record.get("id")), record["role"], record.get("content"), metadata, at)
    _settle(header, draft)


def _settle(header: JsonRecord, draft: TranscriptDraft) -> None:
    """Take the session's own total where its messages tell no tokens."""
    given, output, written, read = whole_numbers(header, *_TOTALS)
    total = Usage(max(0, given - written - read), output, written, read)
    if total != NO_USAGE and draft.timeline.usage == NO_USAGE:
        draft.usage = total


class _Talk:
    """A session's messages on their way to its timeline."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self._draft = draft
        self._messages = 0
        self._hidden = 0
        """Messages since the last compaction that the model is not shown any more."""

    def add(self, id: str, role: Any, content: Any, metadata: Any, at: datetime | None) -> None:
        """Take a message: whose it is say its parts, and its role for words alone."""
        draft, about = self._draft, mapping(metadata)
        parts = mappings(content)
        draft.see(at)
        self._messages += 1
        self._hidden += about.get("agentVisible") is False
        for part in parts:
            if part.get("type") == "toolResponse":
                _result(part, at, draft)
        words = "\n\n".join(string(part.get("text")) for part in parts if _is(part, "text"))
        if about.get("userVisible") is False:
            self._give(words, about, at)
        elif role == "assistant":
            self._answer(id or f"{draft.id}-{self._messages}", parts, about, at)
        elif role == "user":
            words = _NAMED.sub("", words) if draft.is_subagent else words
            images = sum(_is(part, "image") for part in parts)
            if words.strip() or images:
                draft.timeline.prompt(words, at, images)

    def _give(self, words: str, about: JsonRecord, at: datetime | None) -> None:
        if not words.strip():
            return
        if self._hidden and about.get("turnContext") is not True:
            self._hidden = 0
            self._draft.timeline.compact(words)
        else:
            self._draft.timeline.add_context("program", words, at)

    def _answer(
        self, id: str, parts: list[JsonRecord], about: JsonRecord, at: datetime | None
    ) -> None:
        timeline = self._draft.timeline
        used = mapping(about.get("inference"))
        model = first_string(used, "resolvedModel", "requestedModel") or self._draft.model
        kinds = ("text", "thinking", "redactedThinking", "toolRequest", "frontendToolRequest")
        if not any(_is(part, *kinds) for part in parts):
            return
        usage = _usage(mapping(about.get("usage")))
        answer = timeline.message
        is_new = usage != NO_USAGE or any(_is(part, "text") for part in parts)
        if is_new or answer is None or answer.usage == NO_USAGE:  # else of a row for each call
            answer = timeline.begin_message(id, model, at)
        for part in parts:
            if _is(part, "text"):
                answer.texts.append(string(part.get("text")))
            elif _is(part, "thinking"):
                answer.thoughts.append(string(part.get("thinking")))
            elif _is(part, "toolRequest", "frontendToolRequest"):
                call = mapping(part.get("toolCall"))
                called = mapping(call.get("value", call))
                timeline.call(
                    answer, part.get("id"), called.get("name"), called.get("arguments"), at
                )
        timeline.spend(usage)


def _is(part: JsonRecord, *kinds: str) -> bool:
    return part.get("type") in kinds


def _usage(counts: JsonRecord) -> Usage:
    """Return the tokens of an answer; its total shows if input includes cached ones."""
    given, output, written, read, total = whole_numbers(counts, *_BILLED, "totalTokens")
    if total == given + output + written + read:
        return Usage(given, output, written, read)
    return usage_in(counts, *_BILLED)


def _result(part: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    call = draft.called(part.get("id"))
    if call is None:
        return
    result = part.get("toolResult")
    outcome = mapping(result)
    value = outcome.get("value", result)
    content = mapping(value).get("content", value)
    text = text_of([_text(each) for each in mappings(content)])
    failed = outcome.get("status") == "error" or mapping(value).get("isError") is True
    if failed and not text:
        text = string(outcome.get("error"))
    if text.startswith(_REFUSED):
        draft.timeline.reject(call, text, at)
        return
    if agent := string(mapping(mapping(value).get("_meta")).get("subagent_session_id")):
        draft.child_calls[agent] = call.id
    code = mapping(mapping(value).get("structuredContent")).get("exit_code")
    draft.timeline.result(
        call,
        text,
        failed=failed,
        at=at,
        exit_code=code if type(code) is int else None,
        edit=_edit(call),
    )


def _text(block: JsonRecord) -> JsonRecord:
    resource = mapping(block.get("resource"))
    return {"type": "text", "text": resource["text"]} if "text" in resource else block


def _edit(call: CallDraft) -> FileEdit | None:
    name, given = call.name.rpartition("__")[2], call.arguments
    path = first_string(given, "path")
    if name == "edit":
        texts = {"old_str": given.get("before"), "new_str": given.get("after")}
        return edit_of_arguments({**texts, **given})
    if name == "write":
        return edit_of_arguments({"path": path, "content": given.get("content")})
    if name != "text_editor" or given.get("command") in ("view", "undo_edit"):
        return None
    if given.get("command") == "write":
        return edit_of_arguments({"path": path, "file_text": given.get("file_text")})
    texts = {name: given.get(name) for name in ("old_str", "new_str")}
    return edit_of_arguments({"path": path, **texts}, string(given.get("diff")))
