"""Messages and parts of OpenCode as events of a session."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.jsonl import JsonRecord
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, from_unified, joined
from debrief.sessions.readers.timeline import CallDraft, MessageDraft
from debrief.sessions.readers.values import (
    arguments_text,
    first_string,
    mapping,
    mappings,
    moment,
    string,
    whole_number,
)

_ABORTED = "MessageAbortedError"
_EDITING = frozenset({"edit", "write", "multiedit", "patch", "apply_patch"})


def take_info(info: JsonRecord, draft: TranscriptDraft) -> None:
    """Take over what a session's own record says of it."""
    draft.id = string(info.get("id"))
    draft.title = string(info.get("title"))
    draft.cwd = string(info.get("directory"))
    draft.version = string(info.get("version"))
    draft.parent = string(info.get("parentID"))
    draft.see(time_of(info, "created"))


def convert(messages: list[tuple[JsonRecord, list[Any]]], draft: TranscriptDraft) -> None:
    """Report the messages, each with its parts, to the draft's timeline in their order."""
    seen: set[str] = set()
    for number, (info, parts) in enumerate(messages, 1):
        identity = string(info.get("id")) or f"message-{number}"
        if identity in seen:
            draft.report(0, f"message {number} repeats an earlier one and was counted once")
            continue
        seen.add(identity)
        at = time_of(info, "created")
        draft.see(at)
        draft.see(time_of(info, "completed"))
        if info.get("role") == "user":
            _ask(mappings(parts), at, draft)
        elif info.get("role") == "assistant":
            _answer(info, mappings(parts), identity, at, draft)


def time_of(record: JsonRecord, key: str) -> datetime | None:
    """Return one of the times that a record keeps in milliseconds."""
    return moment(mapping(record.get("time")).get(key))


def _ask(parts: list[JsonRecord], at: datetime | None, draft: TranscriptDraft) -> None:
    if any(part.get("type") == "compaction" for part in parts):
        draft.timeline.compact()
        return
    words: list[str] = []
    images = 0
    for part in parts:
        kind, text = part.get("type"), string(part.get("text"))
        if kind == "text" and text.strip() and not (part.get("synthetic") or part.get("ignored")):
            words.append(text)
        elif kind == "file":
            images += string(part.get("mime")).startswith("image/")
        elif kind == "subtask" and string(part.get("command")):
            draft.timeline.intervene("slash_command", f"/{part['command']}", at)
    if words or images:
        draft.timeline.prompt("\n\n".join(words), at, images=images)


def _answer(
    info: JsonRecord,
    parts: list[JsonRecord],
    identity: str,
    at: datetime | None,
    draft: TranscriptDraft,
) -> None:
    timeline = draft.timeline
    if info.get("summary") is True and not timeline.compacting:
        timeline.compact()
    draft.cwd = draft.cwd or string(mapping(info.get("path")).get("cwd"))
    message = timeline.begin_message(identity, string(info.get("modelID")), at)
    steps: list[Usage] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text" and not part.get("synthetic"):
            message.texts.append(string(part.get("text")))
        elif kind == "tool":
            _tool(part, message, draft)
        elif kind == "step-finish" and type(part.get("tokens")) is dict:
            steps.append(_usage(part["tokens"]))
    for usage in steps or [_usage(mapping(info.get("tokens")))]:
        timeline.spend(usage)
    draft.api_calls = (draft.api_calls or 0) + max(1, len(steps))
    completed = time_of(info, "completed")
    timeline.touch(completed)
    if mapping(info.get("error")).get("name") == _ABORTED:
        timeline.interrupt(completed or at)


def _tool(part: JsonRecord, message: MessageDraft, draft: TranscriptDraft) -> None:
    state = mapping(part.get("state"))
    call_id = first_string(part, "callID", "id") or f"{message.id}-{len(message.calls)}"
    name = string(part.get("tool")) or "unknown"
    at = time_of(state, "start") or message.at
    call = draft.timeline.call(message, call_id, name, arguments_text(state.get("input")), at)
    metadata = mapping(state.get("metadata"))
    if name == "task":
        draft.child_calls[string(metadata.get("sessionId"))] = call_id
    ended = time_of(state, "end")
    if state.get("status") == "completed":
        _completed(call, state, metadata, ended, draft)
    elif state.get("status") == "error":
        text = first_string(state, "error", "output")
        draft.timeline.result(call, text, failed=True, at=ended)


def _completed(
    call: CallDraft,
    state: JsonRecord,
    metadata: JsonRecord,
    at: datetime | None,
    draft: TranscriptDraft,
) -> None:
    code = metadata.get("exit")
    exit_code = code if type(code) is int else None
    failed = bool(exit_code)
    edit = None
    if call.name in _EDITING and not failed:
        edit = _edit(mapping(state.get("input")), metadata)
    text = string(state.get("output"))
    draft.timeline.result(call, text, failed=failed, at=at, exit_code=exit_code, edit=edit)


def _edit(given: JsonRecord, metadata: JsonRecord) -> FileEdit | None:
    files = metadata.get("files")
    if type(files) is list and files:
        return joined(
            from_unified(
                first_string(file, "filePath", "relativePath"), first_string(file, "diff", "patch")
            )
            for file in mappings(files)
        )
    path = first_string(given, "filePath") or string(metadata.get("filepath"))
    return edit_of_arguments({**given, "filePath": path}, string(metadata.get("diff")))


def _usage(tokens: JsonRecord) -> Usage:
    """Return a message's tokens; reasoning is output, which some totals include already."""
    cache = mapping(tokens.get("cache"))
    fresh, output = whole_number(tokens.get("input")), whole_number(tokens.get("output"))
    read, write = whole_number(cache.get("read")), whole_number(cache.get("write"))
    if whole_number(tokens.get("total")) != fresh + output + read + write:
        output += whole_number(tokens.get("reasoning"))
    return Usage(fresh, output, write, read)
