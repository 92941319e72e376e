"""Sessions in Cursor's database, ``globalStorage/state.vscdb``, in its table ``cursorDiskKV``.

``composerData:<session>`` lists the session's bubbles in order; ``bubbleId:<session>:<bubble>`` is
one of them: a prompt, a text, a thought, or a call with its result. Results are Cursor's own
objects, and not what the model was shown, but for commands' output, files and errors. Nothing
parts the model's messages: thoughts and texts begin one, and so does a call that Cursor says is of
another request.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from sqlite3 import Connection
from typing import Any

import orjson

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.documents import JsonRecord, decoded
from debrief.sessions.readers.edit_arguments import PATHS
from debrief.sessions.readers.patches import (
    FileEdit,
    Hunk,
    edit_of_arguments,
    from_hunks,
    lines_of,
    replaced,
)
from debrief.sessions.readers.tables import SessionInDatabase
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import (
    TokenNames,
    decoded_arguments,
    first_string,
    mapping,
    mappings,
    moment,
    string,
    whole_numbers,
)

_SESSION, _BUBBLE, _CONTENT = "composerData:", "bubbleId:", "composer.content."
_PERSON, _MODEL = 1, 2
_CHOSEN_BY_CURSOR = "default"
"""In place of a model's name."""
_BILLED = TokenNames("inputTokens", "outputTokens")
_ENDED = frozenset({"completed", "error", "cancelled", "rejected", "skipped"})
_SKIPPED = "User chose to skip"
_EDITING = frozenset(
    {"edit_file", "edit_file_v2", "search_replace", "multi_str_replace", "write", "apply_patch"}
)


def listed(connection: Connection) -> list[SessionInDatabase]:
    """Return the sessions of a database, those without a bubble left out."""
    found: dict[str, SessionInDatabase] = {}
    parents: dict[str, str] = {}
    for key, value in _rows(connection, _SESSION):
        about = _object(value)
        found[key] = _session(key, about, len(value))
        for child in _children(about):
            parents.setdefault(child, key)
    return [
        SessionInDatabase(
            database.id,
            parents.get(database.id, ""),
            database.started,
            database.rows,
            database.changed,
        )
        for database in found.values()
    ]


def family(connection: Connection, id: str) -> list[SessionInDatabase]:
    """Return a session with its subagents', and theirs; empty where it is there no more."""
    found: dict[str, SessionInDatabase] = {}
    waiting = [(id, "")]
    for key, parent in waiting:
        value = _value(connection, _SESSION + key)
        if value and key not in found:
            about = _object(value)
            each = _session(key, about, len(value))
            found[key] = SessionInDatabase(key, parent, each.started, each.rows, each.changed)
            waiting += [(child, key) for child in _children(about)]
    return [database for database in found.values() if database.rows]


def read(connection: Connection, id: str, draft: TranscriptDraft) -> None:
    """Read one session."""
    about = _object(_value(connection, _SESSION + id))
    place = mapping(mapping(about.get("workspaceIdentifier")).get("uri"))
    draft.take(about, title="name")
    draft.take(place, cwd="fsPath")
    draft.branch = _branch(about)
    model = string(mapping(about.get("modelConfig")).get("modelName"))
    draft.model = "" if model == _CHOSEN_BY_CURSOR else model
    draft.see(moment(about.get("createdAt")))
    _Talk(connection, draft).add(list(_bubbles(connection, id, about, draft)))


def _rows(connection: Connection, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the values of keys of one kind, each with what is behind the prefix."""
    query = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key"
    for key, value in connection.execute(query, (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))):
        if type(key) is str and value:
            yield key.removeprefix(prefix), _bytes(value)


def _value(connection: Connection, key: str) -> bytes:
    row = connection.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()
    return _bytes(row[0]) if row else b""


def _bytes(value: Any) -> bytes:
    return value.encode() if type(value) is str else value if type(value) is bytes else b""


def _object(value: bytes) -> JsonRecord:
    try:
        return mapping(orjson.loads(value))
    except orjson.JSONDecodeError:
        return {}


def _session(id: str, about: JsonRecord, size: int) -> SessionInDatabase:
    changed = f"{about.get('lastUpdatedAt')} {size}"
    return SessionInDatabase(id, "", moment(about.get("createdAt")), len(_heads(about)), changed)


def _heads(about: JsonRecord) -> list[JsonRecord]:
    """Return what a session says of its bubbles: before 2025, the whole bubbles."""
    return mappings(about.get("fullConversationHeadersOnly")) or mappings(about.get("conversation"))


def _children(about: JsonRecord) -> list[str]:
    ids = about.get("subagentComposerIds")
    return [id for id in ids if type(id) is str] if type(ids) is list else []


def _branch(about: JsonRecord) -> str:
    """Return the branch of a session that was on one branch of one repository."""
    repositories = mappings(about.get("trackedGitRepos"))
    branches = [each for repo in repositories for each in mappings(repo.get("branches"))]
    return string(branches[0].get("branchName")) if len(branches) == 1 else ""


def _bubbles(
    connection: Connection, id: str, about: JsonRecord, draft: TranscriptDraft
) -> Iterator[JsonRecord]:
    """Yield a session's bubbles in its order, with what its list says of each."""
    stored = dict(_rows(connection, f"{_BUBBLE}{id}:"))
    for head in _heads(about):
        bubble = stored.get(string(head.get("bubbleId")))
        if bubble is None:  # a bubble without a row was a place to draw another one in
            yield head
            continue
        try:
            value, mended = decoded(bubble)
        except ValueError as error:
            draft.report(0, f"the bubble {head.get('bubbleId')} cannot be read: {error}")
            continue
        if mended:
            draft.report(0, f"in the bubble {head.get('bubbleId')}, {mended}")
        yield head | mapping(value)


def _time(bubble: JsonRecord) -> datetime | None:
    """Return when a bubble was begun; before autumn 2025 only when its request was sent."""
    sent = mapping(bubble.get("timingInfo")).get("clientRpcSendTime")
    return moment(bubble.get("createdAt")) or moment(sent)


class _Talk:
    """A session's bubbles on their way to its timeline."""

    def __init__(self, connection: Connection, draft: TranscriptDraft) -> None:
        self._connection = connection
        self._draft = draft
        self._request = ""
        """The model's request that the last call was of, where Cursor says it."""
        self._has_calls = False

    def add(self, bubbles: list[JsonRecord]) -> None:
        for number, bubble in enumerate(bubbles):
            at = _time(bubble)
            if bubble.get("type") == _PERSON:
                following = bubbles[number + 1 : number + 2]
                self._ask(bubble, at or (_time(following[0]) if following else None))
            elif bubble.get("type") == _MODEL:
                self._answer(bubble, at)
                self._draft.see(moment(mapping(bubble.get("timingInfo")).get("clientEndTime")))
                self._draft.see(moment(bubble.get("completedAtMs")))

    def _ask(self, bubble: JsonRecord, at: datetime | None) -> None:
        self._draft.see(at)
        text, images = string(bubble.get("text")), len(mappings(bubble.get("images")))
        if text.strip() or images:
            self._draft.timeline.prompt(text, at, images)

    def _answer(self, bubble: JsonRecord, at: datetime | None) -> None:
        draft, timeline = self._draft, self._draft.timeline
        draft.see(at)
        text = string(bubble.get("text"))
        thought = string(mapping(bubble.get("thinking")).get("text"))
        tool = mapping(bubble.get("toolFormerData"))
        is_call = bool(tool.get("name") or tool.get("toolCallId"))
        request = string(tool.get("modelCallId"))
        is_next = bool((text.strip() or thought) and self._has_calls)
        is_next |= bool(request and self._request and request != self._request)
        message = timeline.message
        if message is None or is_next:
            if not (text.strip() or thought or is_call):
                return
            model = string(mapping(bubble.get("modelInfo")).get("modelName"))
            model = draft.model if model in ("", _CHOSEN_BY_CURSOR) else model
            message = timeline.begin_message(bubble.get("bubbleId"), model, at)
            self._request, self._has_calls = "", False
        message.texts.append(text)
        message.thoughts.append(thought)
        timeline.spend(_BILLED.usage(bubble.get("tokenCount")))
        if is_call:
            self._has_calls, self._request = True, request or self._request
            given = decoded_arguments(string(tool.get("rawArgs")))
            given = given or decoded_arguments(string(tool.get("params")))
            name = string(tool.get("name")) or f"tool_{tool.get('tool')}"
            call = timeline.call(message, tool.get("toolCallId"), name, given, at)
            self._end(call, tool, at)

    def _end(self, call: CallDraft, tool: JsonRecord, at: datetime | None) -> None:
        """Take how a call ended: what runs still, or what nobody decided on, is unanswered."""
        timeline, status = self._draft.timeline, string(tool.get("status"))
        about = mapping(tool.get("additionalData"))
        result = decoded_arguments(string(tool.get("result")))
        error = first_string(
            decoded_arguments(string(tool.get("error"))),
            "modelVisibleErrorMessage",
            "clientVisibleErrorMessage",
        )
        child = string(about.get("subagentComposerId"))
        if child:
            self._draft.child_calls[child] = call.id
        if status not in _ENDED:
            return
        text = error or _result_text(call.name, result, string(tool.get("result")))
        refusals = (tool.get("userDecision"), about.get("status"), status)
        if "rejected" in refusals or result.get("rejected") is True or _SKIPPED in error:
            timeline.reject(call, text or "", at)
            return
        codes = (result.get("exitCodeV2"), result.get("exitCode"))
        timeline.result(
            call,
            text,
            failed=status != "completed" or about.get("status") == "error",
            at=at,
            exit_code=next((code for code in codes if type(code) is int), None),
            edit=self._edit(call, tool, result),
        )

    def _edit(self, call: CallDraft, tool: JsonRecord, result: JsonRecord) -> FileEdit | None:
        if call.name not in _EDITING:
            return None
        given = decoded_arguments(string(tool.get("params"))) | call.arguments
        path = first_string(given, *PATHS)
        after, before = (string(result.get(name)) for name in ("afterContentId", "beforeContentId"))
        if after.startswith(_CONTENT) and (new := self._content(after)) is not None:
            old = self._content(before) if before.startswith(_CONTENT) else ""
            if old is not None:
                return replaced(path, old, new)
        chunks = mappings(mapping(result.get("diff")).get("chunks"))
        if chunks:
            return from_hunks(path, [_hunk(chunk) for chunk in chunks])
        return edit_of_arguments(given)

    def _content(self, key: str) -> str | None:
        """Return a file's content that the database keeps under a key; None where it does not."""
        row = self._connection.execute(
            "SELECT value FROM cursorDiskKV WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else _bytes(row[0]).decode(errors="replace")


def _result_text(name: str, result: JsonRecord, text: str) -> str | None:
    """Return what a call brought, as far as it is kept: of newer reads it is the length alone."""
    for field in ("output", "contents"):
        if type(result.get(field)) is str:
            return string(result[field])
    return None if name.startswith("read_file") else text or None


def _hunk(chunk: JsonRecord) -> Hunk:
    """Return a piece of a diff, whose lines have two signs before them, as a hunk."""
    marked = lines_of(string(chunk.get("diffString")).replace("\r\n", "\n"))
    lines = [f"{line[:1] or ' '}{line[2:]}" for line in marked]
    old, new = (sum(line[0] != mark for line in lines) for mark in "+-")
    starts = whole_numbers(chunk, "oldStart", "newStart")
    return f"@@ -{starts[0]},{old} +{starts[1]},{new} @@", lines
