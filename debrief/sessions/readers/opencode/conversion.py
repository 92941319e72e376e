"""Messages and parts of OpenCode as events of a session."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.jsonl import Record, string, whole_number
from debrief.sessions.readers.moments import moment
from debrief.sessions.readers.patches import (
    Edit,
    created,
    from_apply_patch,
    from_unified,
    joined,
    replaced,
)
from debrief.sessions.readers.timeline import CallDraft, MessageDraft, arguments_text

_ABORTED = "MessageAbortedError"
_EDITING = frozenset({"edit", "write", "multiedit", "patch", "apply_patch"})


def take_info(info: Record, reading: Reading) -> None:
    """Take the facts that a session's own record tells."""
    facts = reading.facts
    facts.id = string(info.get("id"))
    facts.title = string(info.get("title"))
    facts.cwd = string(info.get("directory"))
    facts.version = string(info.get("version"))
    facts.parent = string(info.get("parentID"))
    facts.see(time_of(info, "created"))


def convert(messages: list[tuple[Record, list[Any]]], reading: Reading) -> None:
    """Tell ``reading``'s timeline what the messages, each with its parts, say in their order."""
    seen: set[str] = set()
    for place, (info, parts) in enumerate(messages, 1):
        identity = string(info.get("id")) or f"message-{place}"
        if identity in seen:
            reading.report(0, f"message {place} repeats an earlier one and was counted once")
            continue
        seen.add(identity)
        at = time_of(info, "created")
        reading.facts.see(at)
        reading.facts.see(time_of(info, "completed"))
        parts = [part for part in parts if type(part) is dict]
        if info.get("role") == "user":
            _ask(parts, at, reading)
        elif info.get("role") == "assistant":
            _answer(info, parts, identity, at, reading)


def time_of(record: Record, key: str) -> datetime | None:
    """Return one of the times that a record keeps in milliseconds."""
    times = record.get("time")
    return moment(times.get(key)) if type(times) is dict else None


def _ask(parts: list[Record], at: datetime | None, reading: Reading) -> None:
    if any(part.get("type") == "compaction" for part in parts):
        reading.timeline.compact()
        return
    words: list[str] = []
    images = 0
    for part in parts:
        if part.get("type") == "text" and not (part.get("synthetic") or part.get("ignored")):
            text = string(part.get("text"))
            if text.strip():
                words.append(text)
        elif part.get("type") == "file":
            images += string(part.get("mime")).startswith("image/")
        elif part.get("type") == "subtask" and string(part.get("command")):
            reading.timeline.intervene("slash_command", f"/{part['command']}", at)
    if words or images:
        reading.timeline.prompt("\n\n".join(words), at, images=images)


def _answer(
    info: Record, parts: list[Record], identity: str, at: datetime | None, reading: Reading
) -> None:
    timeline = reading.timeline
    if info.get("summary") is True and not timeline.compacting:
        timeline.compact()
    facts = reading.facts
    path = info.get("path")
    if not facts.cwd and type(path) is dict:
        facts.cwd = string(path.get("cwd"))
    model = string(info.get("modelID"))
    draft = timeline.begin_message(identity, model, at)
    steps: list[Usage] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text" and not part.get("synthetic"):
            text = string(part.get("text"))
            if text.strip():
                draft.texts.append(text)
        elif kind == "tool":
            _tool(part, draft, reading)
        elif kind == "step-finish" and type(part.get("tokens")) is dict:
            steps.append(usage_of(part["tokens"]))
    tokens = info.get("tokens")
    if not steps and type(tokens) is dict:
        steps.append(usage_of(tokens))
    for usage in steps:
        timeline.spend(usage)
    reading.api_calls = (reading.api_calls or 0) + max(1, len(steps))
    timeline.touch(time_of(info, "completed"))
    error = info.get("error")
    if type(error) is dict and error.get("name") == _ABORTED:
        timeline.intervene("interruption", "", time_of(info, "completed") or at)


def _tool(part: Record, draft: MessageDraft, reading: Reading) -> None:
    state = part.get("state")
    state = state if type(state) is dict else {}
    given = state.get("input")
    call_id = string(part.get("callID")) or string(part.get("id"))
    call_id = call_id or f"{draft.id}-{len(draft.calls)}"
    name = string(part.get("tool")) or "unknown"
    at = time_of(state, "start") or draft.at
    call = reading.timeline.call(draft, call_id, name, arguments_text(given), at)
    metadata = state.get("metadata")
    metadata = metadata if type(metadata) is dict else {}
    if name == "task":
        reading.child_calls[string(metadata.get("sessionId"))] = call_id
    status = state.get("status")
    if status == "completed":
        _completed(call, state, metadata, reading)
    elif status == "error":
        text = string(state.get("error")) or string(state.get("output"))
        reading.timeline.result(call, text, failed=True, at=time_of(state, "end"))


def _completed(call: CallDraft, state: Record, metadata: Record, reading: Reading) -> None:
    code = metadata.get("exit")
    exit_code = code if type(code) is int else None
    failed = bool(exit_code)
    given = state.get("input")
    edit = None
    if call.name in _EDITING and not failed:
        edit = _edit(call.name, given if type(given) is dict else {}, metadata)
    reading.timeline.result(
        call,
        string(state.get("output")),
        failed=failed,
        at=time_of(state, "end"),
        exit_code=exit_code,
        edit=edit,
    )


def _edit(name: str, given: Record, metadata: Record) -> Edit | None:
    path = string(given.get("filePath")) or string(metadata.get("filepath"))
    files = metadata.get("files")
    if type(files) is list and files:
        return joined(_of_file(file) for file in files if type(file) is dict)
    diff = string(metadata.get("diff"))
    if name in ("patch", "apply_patch"):
        edits = from_apply_patch(string(given.get("patchText")) or string(given.get("patch")))
        if diff and len(edits) == 1:
            told = from_unified(edits[0].path, diff)
            return told if told.patch else edits[0]
        return joined(edits)
    if diff:
        return from_unified(path, diff)
    if not path:
        return None
    if name == "write" or "oldString" not in given:
        if name == "multiedit" and type(given.get("edits")) is list:
            return joined(_replacement(path, each) for each in given["edits"])
        content = string(given.get("content"))
        return created(path, content, estimated=True) if content else None
    return _replacement(path, given)


def _of_file(file: Record) -> Edit:
    path = string(file.get("filePath")) or string(file.get("relativePath"))
    return from_unified(path, string(file.get("diff")) or string(file.get("patch")))


def _replacement(path: str, given: Any) -> Edit:
    if type(given) is not dict:
        return Edit(path)
    old, new = string(given.get("oldString")), string(given.get("newString"))
    return replaced(path, old, new, estimated=True)


def usage_of(tokens: Record) -> Usage:
    """Return a message's tokens; reasoning is output, which some totals hold already."""
    cache = tokens.get("cache")
    cache = cache if type(cache) is dict else {}
    fresh, output = whole_number(tokens.get("input")), whole_number(tokens.get("output"))
    reasoning = whole_number(tokens.get("reasoning"))
    read, write = whole_number(cache.get("read")), whole_number(cache.get("write"))
    total = whole_number(tokens.get("total"))
    if total != fresh + output + read + write:
        output += reasoning
    return Usage(fresh, output, write, read)
