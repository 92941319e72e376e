"""OpenCode: exported sessions, and the store under ``~/.local/share/opencode/storage``.

An export is one document a session; a store has one file a session, message and part. A session
with a ``parentID`` is the work of a subagent of that session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.sessions.model import Problem, Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, Transcript, TranscriptReader
from debrief.sessions.readers.files import JsonRecord, Walk, mend
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

_EXPORT = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{')
_SESSION_IN_EXPORT = re.compile(rb'(?<!\\)"(?:directory|projectID|version)"\s*:\s*"')
_MESSAGE = re.compile(rb'(?<!\\)"sessionID"\s*:\s*"([^"\\]+)"')
_ROLE = re.compile(rb'(?<!\\)"role"\s*:\s*"(?:user|assistant)"')
_SESSION = re.compile(rb'(?<!\\)"(?:projectID|directory)"\s*:\s*"')
_ID = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'(?<!\\)"parentID"\s*:\s*"([^"\\]+)"')
_CREATED = re.compile(rb'(?<!\\)"created"\s*:\s*(\d{10,16})')
_EMPTY_LIST = re.compile(rb'"messages"\s*:\s*\[\s*\]')


class _Stored(Struct, frozen=True):
    """One session of a store."""

    path: str
    """The session's own record, or its first message where that is missing."""
    peek: Peek
    files: tuple[str, ...] = ()
    """Messages and parts."""


class OpenCodeReader(TranscriptReader):
    """Exports are one file a session, as the kit has them; a store's are many."""

    source = "opencode"
    tool = "opencode"
    tools = ToolNames(shell="bash", read="read", search="grep glob list")
    home_folders = (".local/share/opencode/storage",)
    suffixes = (".json", ".jsonl")

    def claims(self, head: bytes) -> bool:
        """Return whether a file with this beginning is an exported session."""
        return bool(_EXPORT.match(head) and _SESSION_IN_EXPORT.search(head))

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning of an export says; None when it holds no message."""
        if head.is_whole and _EMPTY_LIST.search(head):
            return None
        text = head.decode(errors="replace")
        try:
            info = json.JSONDecoder(strict=False).raw_decode(text, text.index("{", 1))[0]
        except (ValueError, RecursionError):
            return _roughly(head, path)
        info = mapping(mend(info))
        return Peek(
            session_id=string(info.get("id")) or Path(path).stem,
            started=time_of(info, "created"),
            parent=string(info.get("parentID")),
        )

    def find(self, walk: Walk) -> Iterator[Transcript]:
        """Yield exports and stored sessions, in path order."""
        paths = walk.paths(self.suffixes, self.source)
        stored = _stored_sessions(paths)
        heads = ((path, Head.of(path)) for path in paths)
        for transcript in self.grouped(
            (path, stored[path].peek if path in stored else self.describe(head, path))
            for path, head in heads
            if path in stored or self.claims(head)
        ):
            files: list[str] = []
            for path in (transcript.path, *transcript.companions):
                files += (path, *(stored[path].files if path in stored else ()))
            yield Transcript(source=self.source, path=files[0], companions=tuple(files[1:]))

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning; None when there is no message."""
        own = _stored_in(transcript).get(transcript.path)
        if own is None:
            return super().peek(transcript)
        return own.peek if own.files or "/message/" in own.path else None

    def read_main(self, transcript: Transcript) -> TranscriptDraft:
        """Read an export, or a stored session's files."""
        own = _stored_in(transcript).get(transcript.path)
        return self.read_file(transcript.path) if own is None else _read_stored(own)

    def read_children(
        self, transcript: Transcript, draft: TranscriptDraft
    ) -> Iterator[TranscriptDraft]:
        """Read the sessions of subagents, exported or stored."""
        yield from super().read_children(transcript, draft)
        for path, child in _stored_in(transcript).items():
            if path != transcript.path:
                try:
                    yield _read_stored(child)
                except (OSError, ValueError) as error:
                    draft.report(0, f"its subagent's record {path} cannot be read: {error}")

    def read_file(self, path: str) -> TranscriptDraft:
        """Read an exported session."""
        draft = TranscriptDraft(path)
        document = draft.load(path)
        take_info(mapping(document.get("info")), draft)
        draft.id = draft.id or Path(path).stem
        listed = document.get("messages")
        messages: list[tuple[JsonRecord, list[Any]]] = []
        for number, message in enumerate(listed if type(listed) is list else (), 1):
            inner = mapping(message).get("info")
            if type(inner) is dict:
                parts = message.get("parts")
                messages.append((inner, parts if type(parts) is list else []))
            else:
                draft.report(0, f"message {number} tells nothing about itself")
        convert(messages, draft)
        return draft


READER = OpenCodeReader()


def _roughly(head: Head, path: str) -> Peek:
    created = head.text(_CREATED)
    return Peek(
        session_id=head.text(_ID) or Path(path).stem,
        started=moment(int(created)) if created else None,
        parent=head.text(_PARENT),
    )


def _stored_in(transcript: Transcript) -> dict[str, _Stored]:
    return _stored_sessions((transcript.path, *transcript.companions))


def _stored_sessions(paths: Iterable[str]) -> dict[str, _Stored]:
    """Return the sessions of the stores that ``paths`` belong to, by their records' paths."""
    stored: dict[str, _Stored] = {}
    files: dict[str, dict[tuple[str, str], list[str]]] = {"session": {}, "message": {}, "part": {}}
    for path in sorted(paths):
        pieces = path.rsplit("/", 3)
        if len(pieces) == 4 and pieces[1] in files:
            store, kind, owner, name = pieces
            key = (store, name.removesuffix(".json") if kind == "session" else owner)
            files[kind].setdefault(key, []).append(path)
    for key in sorted({*files["session"], *files["message"]}):
        store, session = key
        heads = ((path, Head.of(path)) for path in files["message"].get(key, ()))
        own = [path for path, head in heads if _MESSAGE.search(head) and _ROLE.search(head)]
        parts = [part for path in own for part in files["part"].get((store, Path(path).stem), ())]
        record = files["session"].get(key, [""])[-1]
        head = Head.of(record) if record else Head()
        if _SESSION.search(head):
            stored[record] = _Stored(record, _roughly(head, record), (*own, *parts))
        elif own:
            owner = Head.of(own[0]).text(_MESSAGE) or session
            stored[own[0]] = _Stored(own[0], Peek(session_id=owner), (*own[1:], *parts))
    return stored


def _read_stored(stored: _Stored) -> TranscriptDraft:
    """Read a session of a store from its own record and the files of its messages and parts.

    Raises:
        OSError: its own record cannot be read.
        ValueError: that holds nothing.
    """
    draft = TranscriptDraft(stored.path)
    messages: list[JsonRecord] = []
    parts: dict[str, list[JsonRecord]] = {}
    for path in (stored.path, *stored.files):
        try:
            record = draft.load(path)
        except (OSError, ValueError) as error:
            if path == stored.path:
                raise
            draft.problems.append(Problem(path=path, line=0, reason=f"cannot be read: {error}"))
            continue
        if "role" in record:
            messages.append(record)
        elif path == stored.path:
            take_info(record, draft)
        else:
            owner = string(record.get("messageID")) or Path(path).parent.name
            parts.setdefault(owner, []).append(record)
    messages.sort(key=lambda m: (time_of(m, "created") or _LONG_AGO, string(m.get("id"))))
    if messages and not draft.id:
        draft.id = string(messages[0].get("sessionID"))
        draft.report(0, "the session's own record is missing: folder and title are not known")
    convert([(record, parts.get(string(record.get("id")), [])) for record in messages], draft)
    return draft


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_ABORTED = "MessageAbortedError"
_EDITING = frozenset({"edit", "write", "multiedit", "patch", "apply_patch"})


def take_info(info: JsonRecord, draft: TranscriptDraft) -> None:
    """Take over what a session's own record says of it."""
    names = {"title": "title", "cwd": "directory", "version": "version", "parent": "parentID"}
    draft.take(info, id="id", **names)
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
    call_id, name = first_string(part, "callID", "id"), string(part.get("tool"))
    at = time_of(state, "start") or message.at
    call = draft.timeline.call(message, call_id, name, state.get("input"), at)
    metadata = mapping(state.get("metadata"))
    if name == "task":
        draft.child_calls[string(metadata.get("sessionId"))] = call.id
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
                first_string(file, "filePath", "relativePath"), first_string(file, "diff", "patch")
            )
            for file in mappings(files)
        )
    path = first_string(given, "filePath") or string(metadata.get("filepath"))
    return edit_of_arguments({**given, "filePath": path}, string(metadata.get("diff")))


def _usage(tokens: JsonRecord) -> Usage:
    """Return a message's tokens; reasoning is output, which some totals include already."""
    write, read = whole_numbers(tokens.get("cache"), "write", "read")
    counts = whole_numbers(tokens, "input", "output", "reasoning", "total")
    fresh, output, reasoning, total = counts
    if total != fresh + output + read + write:
        output += reasoning
    return Usage(fresh, output, write, read)
