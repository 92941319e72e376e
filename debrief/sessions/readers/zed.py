"""Zed's agent: ``threads/threads.db``, a row a thread, whose JSON is compressed.

A thread tells one time, that of its last change, and when it was begun where the row says so. Since
version 0.3.0 a message is an object under who said it; before that, it has a role and segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import ToolNames
from debrief.sessions.readers.codex.records import repository_of
from debrief.sessions.readers.documents import JsonRecord, decoded
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments
from debrief.sessions.readers.tables import DatabaseReader, SessionInDatabase
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import (
    ANTHROPIC_TOKENS,
    decoded_arguments,
    first_string,
    mapping,
    mappings,
    moment,
    string,
)

_LARGEST = 1 << 28
_BILLED = ANTHROPIC_TOKENS
_CANCELED = "Tool canceled by user"


class ZedReader(DatabaseReader):
    """Zed's threads with its own agent."""

    source = "zed"
    tool = "zed"
    tools = ToolNames(
        run="terminal",
        search="find_path list_directory",
        edit="edit_file write_file",
        delegate="spawn_agent",
    )
    home_folders = (".local/share/zed/threads", "Library/Application Support/Zed/threads")
    moved_by = ("XDG_DATA_HOME", ".local/share")
    databases = ("threads.db",)
    needed = {"threads": frozenset({"id", "summary", "updated_at", "data_type", "data"})}

    def listed(self, connection: Connection) -> list[SessionInDatabase]:
        """Return the threads of a database."""
        found: list[SessionInDatabase] = []
        threads = "SELECT *, length(data) AS size, NULL AS data FROM threads ORDER BY id"
        for row in map(dict, connection.execute(threads)):
            began = moment(row.get("created_at") or row["updated_at"])
            changed = f"{row['updated_at']} {row['size']}"
            parent = string(row.get("parent_id"))
            found.append(SessionInDatabase(str(row["id"]), parent, began, 1, changed))
        return found

    def draft_of(self, connection: Connection, id: str, draft: TranscriptDraft) -> None:
        """Read one thread of a database."""
        row = dict(connection.execute("SELECT * FROM threads WHERE id = ?", (id,)).fetchone())
        folders = string(row.get("folder_paths")).splitlines()
        draft.cwd = folders[0] if folders else ""
        draft.take(row, title="summary")
        at = moment(row["updated_at"])
        draft.see(at)
        try:
            document, mended = decoded(_plain(row["data"], row["data_type"]))
        except ValueError as error:
            draft.report(0, f"the thread {id} cannot be read: {error}")
            return
        if mended:
            draft.report(0, f"in the thread {id}, {mended}")
        _convert(mapping(document), draft)


READER = ZedReader()


def _plain(data: Any, kind: Any) -> bytes:
    stored = data.encode() if isinstance(data, str) else bytes(data or b"")
    if kind != "zstd":
        return stored
    import pyarrow

    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(stored), "zstd") as stream:
            plain = stream.read(_LARGEST + 1)
    except OSError as error:
        raise ValueError(f"its compression is damaged ({error})") from error
    if len(plain) > _LARGEST:
        raise ValueError("it holds more than 256 MB")
    return bytes(plain)


def _convert(document: JsonRecord, draft: TranscriptDraft) -> None:
    draft.model = string(mapping(document.get("model")).get("model"))
    snapshot = mapping(document.get("initial_project_snapshot"))
    draft.see(moment(snapshot.get("timestamp")))
    for tree in mappings(snapshot.get("worktree_snapshots")):
        draft.take(tree, cwd="worktree_path")
        git = mapping(tree.get("git_state"))
        draft.take(git, commit="head_sha", branch="current_branch")
        draft.repository = draft.repository or repository_of(string(git.get("remote_url")))
    above = mapping(document.get("subagent_context"))
    draft.take(above, parent="parent_thread_id", parent_call="tool_use_id")
    if counts := document.get("cumulative_token_usage"):
        draft.usage = _BILLED.usage(counts)
    messages = document.get("messages")
    for number, message in enumerate(messages if type(messages) is list else (), 1):
        name = f"{draft.id}-{number}"
        if message == "Resume":
            draft.timeline.add_context("program", "Continue where you left off", None)
        elif type(message) is not dict:
            draft.report(0, f"message {number} is not an object")
        elif "User" in message:
            _ask(mapping(message["User"]), draft)
        elif "Agent" in message:
            agent = mapping(message["Agent"])
            results = mapping(agent.get("tool_results")).values()
            _answer(name, list(_tagged(agent.get("content"))), mappings([*results]), draft)
        elif "Compaction" in message:
            draft.timeline.compact(string(mapping(message["Compaction"]).get("Summary")))
        elif "role" in message:
            _older(name, message, draft)
        else:
            draft.report(0, f"message {number} is of no known kind")


def _tagged(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a message, each with the name that its kind is under."""
    for part in mappings(content):
        yield from part.items()


def _ask(message: JsonRecord, draft: TranscriptDraft) -> None:
    words: list[str] = []
    attached: list[str] = []
    images = 0
    for kind, value in _tagged(message.get("content")):
        if kind == "Text":
            words.append(string(value))
        elif kind == "Mention":
            attached.append(string(mapping(value).get("content")))
        images += kind == "Image"
    draft.timeline.prompt("\n".join(words), None, images)
    for text in filter(str.strip, attached):
        draft.timeline.add_context("program", text, None, is_behind=True)


def _answer(
    name: str, parts: list[tuple[str, Any]], results: list[JsonRecord], draft: TranscriptDraft
) -> None:
    answer = draft.timeline.begin_message(name, draft.model, None)
    for kind, value in parts:
        if kind == "Text":
            answer.texts.append(string(value))
        elif kind == "Thinking":
            answer.thoughts.append(string(mapping(value).get("text")))
        elif kind == "ToolUse":
            use = mapping(value)
            given = use.get("input")
            if mapping(given).get("type") == "json" and "value" in mapping(given):
                given = mapping(given)["value"]
            draft.timeline.call(answer, use.get("id"), use.get("name"), given, None)
    for result in results:
        _result(result, draft)
    if any((call.result or "").startswith(_CANCELED) for call in answer.calls):
        draft.timeline.stop(name)
        draft.timeline.interrupt(None)


def _result(result: JsonRecord, draft: TranscriptDraft) -> None:
    call = draft.called(result.get("tool_use_id"))
    if call is None:
        return
    content = result.get("content")
    parts = content if type(content) is list else [content]
    text = "\n".join(filter(None, map(_shown, parts)))
    failed = result.get("is_error") is True
    edit = _edit(call, result.get("output"))
    draft.timeline.result(call, text, failed=failed, at=None, edit=edit)


def _shown(part: Any) -> str:
    if type(part) is str:
        return part
    return "[image]" if "Image" in mapping(part) else first_string(mapping(part), "Text", "text")


def _edit(call: CallDraft, output: Any) -> FileEdit | None:
    if call.name not in ("edit_file", "write_file"):
        return None
    done = decoded_arguments(output) if type(output) is str else mapping(output)
    done = mapping(done.get("Edit", done))
    path = first_string(call.arguments, "path")
    if diff := string(done.get("diff")):
        return edit_of_arguments({"path": path}, diff)
    return edit_of_arguments(call.arguments)


def _older(name: str, message: JsonRecord, draft: TranscriptDraft) -> None:
    """Take a message of a version before 0.3.0."""
    segments = mappings(message.get("segments"))
    kinds = {"text": "Text", "thinking": "Thinking"}
    parts: list[tuple[str, Any]] = []
    for segment in segments:
        kind = kinds.get(string(segment.get("type")), "")
        parts.append((kind, segment.get("text") if kind == "Text" else segment))
    if message["role"] == "user":
        words = "\n".join(string(value) for kind, value in parts if kind == "Text")
        draft.timeline.prompt(words, None)
        if attached := string(message.get("context")).strip():
            draft.timeline.add_context("program", attached, None, is_behind=True)
    elif message["role"] == "assistant":
        parts += [("ToolUse", use) for use in mappings(message.get("tool_uses"))]
        _answer(name, parts, mappings(message.get("tool_results")), draft)
