"""The messages of an OpenCode session, wherever they are kept, as the timeline's events.

Exports, the files of a store and the tables of 1.2 and later hold the same JSON: a message says who
speaks, its parts what. The messages of 2.0, which are one JSON each, are turned into these first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, from_unified, joined
from debrief.sessions.readers.timeline import MessageDraft
from debrief.sessions.readers.values import (
    first_string,
    mapping,
    mappings,
    moment,
    string,
    whole_numbers,
)

Said = tuple[JsonRecord, list[Any]]
"""A message and its parts."""
_ABORTED = "MessageAbortedError"
_EDITING = frozenset({"edit", "write", "multiedit", "patch", "apply_patch"})
_BY_PERSON = "The following tool was executed by the user"
"""What the program says before a command that the person ran, which it keeps as a call."""
_HANDING_ON = frozenset({"task", "subagent"})


def take_info(info: JsonRecord, draft: TranscriptDraft) -> None:
    """Take over what a session's own record says of it."""
    names = {"title": "title", "cwd": "directory", "version": "version", "parent": "parentID"}
    draft.take(info, id="id", **names)
    draft.began = time_of(info, "created")


def convert(messages: list[Said], draft: TranscriptDraft) -> None:
    """Report the messages, each with its parts, to the draft's timeline in their order.

    Messages that share an id and differ are different ones: other tools mask ids to one word.
    """
    seen: dict[str, list[Said]] = {}
    is_persons = False
    for number, (info, parts) in enumerate(messages, 1):
        identity = string(info.get("id")) or f"message-{number}"
        same = seen.setdefault(identity, [])
        if (info, parts) in same:
            draft.report(0, f"message {number} repeats an earlier one and was counted once")
            continue
        same.append((info, parts))
        identity = identity if len(same) == 1 else f"{identity}-{number}"
        at = time_of(info, "created")
        draft.see(at)
        draft.see(time_of(info, "completed"))
        if info.get("role") == "user":
            is_persons = any(_is_by_person(part) for part in mappings(parts))
            _ask(mappings(parts), at, draft)
        elif info.get("role") == "assistant" and is_persons:
            _add_command(mappings(parts), at, draft)
            is_persons = False
        elif info.get("role") == "assistant":
            _answer(info, mappings(parts), identity, at, draft)
        elif info.get("role") == "interruption":
            draft.timeline.interrupt(at)


def time_of(record: JsonRecord, key: str) -> datetime | None:
    """Return one of the times that a record keeps in milliseconds."""
    return moment(mapping(record.get("time")).get(key))


def _is_by_person(part: JsonRecord) -> bool:
    return part.get("synthetic") is True and part.get("text") == _BY_PERSON


def _add_command(parts: list[JsonRecord], at: datetime | None, draft: TranscriptDraft) -> None:
    """Take what a person ran beside the conversation, which is no call of the model's."""
    for part in parts:
        if part.get("type") == "tool":
            state = mapping(part.get("state"))
            command = string(mapping(state.get("input")).get("command"))
            lines = (_BY_PERSON, command, first_string(state, "output", "error"))
            draft.timeline.add_context("command", "\n".join(lines), at)


def _ask(parts: list[JsonRecord], at: datetime | None, draft: TranscriptDraft) -> None:
    for part in parts:
        if part.get("type") == "compaction":
            draft.timeline.compact(string(part.get("summary")))
            return
    words: list[str] = []
    images = 0
    for part in parts:
        kind, text = part.get("type"), string(part.get("text"))
        if kind == "text" and text.strip() and not part.get("ignored"):
            if _is_by_person(part):
                continue
            if part.get("synthetic"):
                draft.timeline.add_context("program", text, at)
            else:
                words.append(text)
        elif kind == "file":
            images += string(part.get("mime")).startswith("image/")
        elif kind == "subtask" and string(part.get("command")):
            asked = string(part.get("prompt"))
            draft.timeline.intervene("slash_command", f"/{part['command']}", at, expansion=asked)
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
    summarizes = info.get("summary") is True
    if summarizes and not timeline.compacting:
        timeline.compact()
    draft.cwd = draft.cwd or string(mapping(info.get("path")).get("cwd"))
    message = timeline.begin_message(identity, info.get("modelID"), at)
    steps: list[Usage] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text" and not part.get("synthetic"):
            message.texts.append(string(part.get("text")))
        elif kind == "reasoning":
            message.thoughts.append(string(part.get("text")))
        elif kind == "tool":
            _tool(part, message, draft)
        elif kind == "step-finish" and type(part.get("tokens")) is dict:
            steps.append(usage_of(part["tokens"]))
    for usage in steps or [usage_of(mapping(info.get("tokens")))]:
        timeline.spend(usage)
    draft.api_calls = (draft.api_calls or 0) + max(1, len(steps))
    completed = time_of(info, "completed")
    timeline.touch(completed)
    if mapping(info.get("error")).get("name") == _ABORTED:
        timeline.interrupt(completed or at)
    elif summarizes and not info.get("error"):
        timeline.summary = "\n\n".join(message.texts)


def _tool(part: JsonRecord, message: MessageDraft, draft: TranscriptDraft) -> None:
    state = mapping(part.get("state"))
    id, name = first_string(part, "callID", "id"), part.get("tool")
    at = time_of(state, "start") or message.at
    call = draft.timeline.call(message, id, name, state.get("input"), at)
    metadata = mapping(state.get("metadata"))
    if call.name in _HANDING_ON:
        draft.child_calls[first_string(metadata, "sessionId", "sessionID")] = call.id
    ended = time_of(state, "end")
    if state.get("status") == "completed":
        given, code = mapping(state.get("input")), metadata.get("exit")
        draft.timeline.result(
            call,
            string(state.get("output")),
            failed=False,
            at=ended,
            exit_code=code if type(code) is int else None,
            edit=_edit(given, metadata) if call.name in _EDITING else None,
        )
    elif state.get("status") == "error":
        text = first_string(state, "error", "output")
        draft.timeline.result(call, text, failed=True, at=ended)


def _edit(given: JsonRecord, metadata: JsonRecord) -> FileEdit | None:
    files = metadata.get("files")
    if type(files) is list and files:
        return joined(
            from_unified(
                first_string(file, "filePath", "relativePath", "file"),
                first_string(file, "diff", "patch"),
            )
            for file in mappings(files)
        )
    path = first_string(given, "filePath", "path") or string(metadata.get("filepath"))
    return edit_of_arguments({**given, "filePath": path}, string(metadata.get("diff")))


def usage_of(tokens: JsonRecord) -> Usage:
    """Return a message's tokens; reasoning is output, which some totals include already."""
    write, read = whole_numbers(tokens.get("cache"), "write", "read")
    counts = whole_numbers(tokens, "input", "output", "reasoning", "total")
    fresh, output, reasoning, total = counts
    if total != fresh + output + read + write:
        output += reasoning
    return Usage(fresh, output, write, read)


_STOPPED = {"name": "MessageAbortedError"}


def as_said(id: str, kind: str, record: JsonRecord) -> list[Said]:
    """Return what a row of ``session_message`` says; nothing where neither side says anything.

    Args:
        id: the row's.
        kind: the row's ``type``.
        record: the row's ``data``.
    """
    time = mapping(record.get("time"))
    message: JsonRecord = {"id": id, "role": "user", "time": time}
    parts: list[Any] = []
    match kind:
        case "user":
            parts = [{"type": "text", "text": string(record.get("text"))}]
            parts += [{**file, "type": "file"} for file in mappings(record.get("files"))]
        case "assistant":
            message |= {
                name: record[name] for name in ("tokens", "error", "agent") if name in record
            }
            message |= {
                "role": "assistant",
                "modelID": string(mapping(record.get("model")).get("id")),
            }
            if mapping(record.get("error")).get("type") == "aborted":
                message["error"] = _STOPPED
            parts = [_part(part) for part in mappings(record.get("content"))]
        case "compaction" if record.get("status") in ("completed", "failed"):
            return _compaction(message, record)
        case "idle" if record.get("outcome") == "interrupted":
            message["role"] = "interruption"
        case _:
            return []
    return [(message, parts)]


def _compaction(message: JsonRecord, record: JsonRecord) -> list[Said]:
    """Return that the conversation was summed up, and the answer that did it, if it is known."""
    text, done = string(record.get("summary")), record.get("status") == "completed"
    said: list[Said] = [(message, [{"type": "compaction", "summary": text}])] if done else []
    if "tokens" in record:
        answer = {**message, "id": f"{message['id']}-summary", "role": "assistant", "summary": done}
        answer["modelID"] = string(mapping(record.get("model")).get("id"))
        said.append((answer | {"tokens": record["tokens"]}, [{"type": "text", "text": text}]))
    return said


def _part(part: JsonRecord) -> JsonRecord:
    if part.get("type") != "tool":
        return part
    state, time = mapping(part.get("state")), mapping(part.get("time"))
    content = [first_string(each, "text", "uri") for each in mappings(state.get("content"))]
    return {
        "type": "tool",
        "tool": part.get("name"),
        "callID": part.get("id"),
        "state": {
            **state,
            "output": "\n".join(content),
            "error": first_string(mapping(state.get("error")), "message"),
            "time": {"start": time.get("ran") or time.get("created"), "end": time.get("completed")},
        },
    }
