"""agentsview's archive: ``~/.agentsview/sessions.db``, sessions of some sixty agents, second-hand.

Taken from it are those of agents that have no reader here: of all others the own files tell more.
The archive has a message's text with its own lines for thoughts and calls in it (since version
0.46 the words alone beside it), and keeps no system prompt, no images, and of some tools no
results. ``debrief push`` carries a session of it as a document, which is read as the archive is.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import orjson

from debrief.errors import InputError
from debrief.sessions.model import TranscriptRef, Usage
from debrief.sessions.readers import READERS
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import (
    Claims,
    Head,
    NoSession,
    Peek,
    Transcript,
    TranscriptReader,
)
from debrief.sessions.readers.databases import LOG, columns_of, read_database
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.files import FileStamp, Walk, reason_of
from debrief.sessions.readers.patches import edit_of_arguments
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

_NAMES = {
    "claude": "claude-code",
    "cowork": "claude-code",
    "factory": "droid",
    "kilocode": "kilo",
    "kiro-ide": "kiro",
    "roocode": "roo",
    "vscode-copilot": "vscode",
}
"""What the archive calls agents that have a reader here under another name."""
_NEEDED = {
    "sessions": {"id", "agent", "started_at", "ended_at"},
    "messages": {"id", "session_id", "ordinal", "role", "content", "timestamp"},
    "tool_calls": {"id", "message_id", "session_id", "tool_name", "tool_use_id", "input_json"},
}
_CHANGING = ("ended_at", "file_mtime", "local_modified_at", "message_count", "transcript_revision")
_BILLED = ANTHROPIC_TOKENS
_FAILED = frozenset({"error", "errored", "failed", "failure"})
_ID = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_STARTED = re.compile(rb'(?<!\\)"started_at"\s*:\s*"([^"\\]{1,40})"')


class AgentsViewReader(TranscriptReader):
    """Sessions of the archive; the tool of each is the agent that the archive names."""

    source = "agentsview"
    tool = "agentsview"
    drops = (
        "system prompts, tools, images, results of the tools that its settings name, how most "
        "calls ended, and who wrote what a program put into a prompt"
    )
    home_folders = (".agentsview",)
    moved_by = ("AGENTSVIEW_DATA_DIR", ".agentsview")
    suffixes = (".json",)
    start = re.compile(rb'\A\s*\{\s*"agentsview"\s*:\s*\{')
    message_mark = re.compile(rb'(?<!\\)"role"\s*:\s*"')

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning of a carried session says."""
        return Peek(session_id=head.text(_ID) or Path(path).stem, started=head.first_time(_STARTED))

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield carried sessions, and then those of archives."""
        yield from super().transcripts(walk, claims)
        here = {file.path for file in walk.files}
        for path in walk.paths(".db", self.source):
            if any("agentsview" in name for name in Path(path).parts[-2:]):
                yield from _sessions_in(path, (path + LOG,) if path + LOG in here else ())

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning.

        Raises:
            InputError: it is an archive that cannot be read, or holds no such session.
        """
        if transcript.peek is None and transcript.on_disk.endswith(".db"):
            raise _refusal(transcript.on_disk)
        return super().peek(transcript)

    def read_main(self, transcript: Transcript) -> TranscriptDraft:
        """Read a session of an archive, or a carried one."""
        if not transcript.on_disk.endswith(".db"):
            return self.read_file(transcript.path)
        draft = TranscriptDraft(transcript.path)
        data = _document(transcript)
        digest = hashlib.sha256(data).hexdigest()
        draft.references.append(
            TranscriptRef(path=transcript.path, digest=digest, size=len(data), records=1)
        )
        _convert(orjson.loads(data), draft)
        return draft

    def read_file(self, path: str) -> TranscriptDraft:
        """Read a carried session."""
        draft = TranscriptDraft(path)
        _convert(draft.load(path), draft)
        draft.id = draft.id or Path(path).stem
        return draft

    def documents(self, transcript: Transcript) -> list[bytes]:
        """Return a session of an archive as a document."""
        return [_document(transcript)] if transcript.on_disk.endswith(".db") else []


READER = AgentsViewReader()


def _has_reader(agent: str) -> bool:
    return _NAMES.get(agent, agent) in READERS


def _sessions_in(path: str, log: tuple[str, ...]) -> Iterator[Transcript]:
    """Yield the sessions of an archive, or the archive itself where it cannot be read."""
    archive = Transcript(source=READER.source, path=path, companions=log)
    try:
        rows = read_database(path, _listed)
    except (InputError, OSError):  # a look at it says why
        yield archive
        return
    inner = {row["id"] for row in rows}
    for row in rows:
        if row.get("relationship_type") == "subagent" and row.get("parent_session_id") in inner:
            continue
        changing = orjson.dumps([row.get(name) for name in _CHANGING])
        place = f"{path}#{row['id']}"
        yield Transcript(
            source=READER.source,
            path=place,
            companions=(path, *log),
            file=path,
            stamp=FileStamp(place, row.get("message_count") or 0, zlib.crc32(changing)),
            peek=Peek(session_id=row["id"], started=moment(row.get("started_at"))),
        )
    if not rows:
        yield archive


def _refusal(path: str) -> InputError:
    try:
        read_database(path, _listed)
    except InputError as error:
        return error
    except OSError as error:
        return InputError(path, reason_of(error))
    return NoSession(path, "holds no session of an agent that has no reader of its own")


def _rows(connection: Connection, query: str, *given: object) -> list[JsonRecord]:
    cursor = connection.execute(query, given)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _listed(connection: Connection) -> list[JsonRecord]:
    """Return the rows of sessions that are taken, in the order of their ids.

    Raises:
        InputError: the tables are not the archive's.
    """
    tables = columns_of(connection)
    for table, needed in _NEEDED.items():
        if missing := sorted(needed - tables.get(table, frozenset())):
            name = connection.execute("PRAGMA database_list").fetchone()[2]
            raise InputError(str(name), f"its table {table} has no column {missing[0]}")
    rows = _rows(connection, "SELECT * FROM sessions ORDER BY id")
    kept = (row for row in rows if not row.get("deleted_at") and type(row["id"]) is str)
    return [row for row in kept if not _has_reader(string(row["agent"]))]


def _document(transcript: Transcript) -> bytes:
    """Return a session with its subagents' as JSON; what is no text, number or null is left out.

    Raises:
        InputError: it is there no more, or cannot be read.
        OSError: the archive cannot be opened.
    """
    path = transcript.on_disk
    id = transcript.path.removeprefix(f"{path}#")

    def work(connection: Connection) -> JsonRecord:
        rows = {row["id"]: row for row in _listed(connection)}
        if id not in rows:
            raise NoSession(transcript.path, "is in its archive no more")
        children = [
            row
            for row in rows.values()
            if row.get("relationship_type") == "subagent" and row.get("parent_session_id") == id
        ]
        document = _filled(connection, rows[id])
        document["subagents"] = [_filled(connection, row) for row in children]
        return document

    return orjson.dumps(read_database(path, work), default=lambda _: None)


def _filled(connection: Connection, row: JsonRecord) -> JsonRecord:
    tables, id = columns_of(connection), row["id"]
    query = "SELECT * FROM {} WHERE session_id = ? ORDER BY {}"
    document: JsonRecord = {"agentsview": row}
    document["messages"] = _rows(connection, query.format("messages", "ordinal"), id)
    document["tool_calls"] = _rows(connection, query.format("tool_calls", "id"), id)
    for table in ("tool_result_events", "usage_events"):
        if "session_id" in tables.get(table, ()):
            document[table] = _rows(connection, query.format(table, "id"), id)
    return document


def _convert(document: JsonRecord, draft: TranscriptDraft) -> None:
    row = mapping(document.get("agentsview"))
    draft.take(row, id="id", tool="agent", cwd="cwd", branch="git_branch", version="source_version")
    draft.title = first_string(row, "display_name", "session_name")
    draft.see(moment(row.get("started_at")))
    calls: dict[Any, list[JsonRecord]] = {}
    for call in mappings(document.get("tool_calls")):
        calls.setdefault(str(call.get("message_id")), []).append(call)
    ends = {
        string(each.get("tool_use_id")): each
        for each in mappings(document.get("tool_result_events"))
    }
    messages = list(draft.objects_in(document.get("messages")))
    ends_at = {answer: index for index, each in messages if (answer := _answer_of(each))}
    knows_words = any(each.get("dialogue_text") for _, each in messages)
    for index, message in messages:
        if knows_words and (message.get("has_tool_use") or message.get("has_thinking")):
            message = {**message, "content": message.get("dialogue_text")}
        if ends_at.get(_answer_of(message), index) != index:
            message = {**message, "token_usage": ""}
        _add(f"message-{index + 1}", message, calls.get(str(message.get("id")), []), ends, draft)
    draft.see(moment(row.get("ended_at")))
    counted = draft.timeline.usage != Usage()
    for event in () if counted else mappings(document.get("usage_events")):
        draft.timeline.message = None
        draft.timeline.spend(_BILLED.usage(event))
    for child in mappings(document.get("subagents")):
        inner = mapping(child.get("agentsview"))
        agent = draft.agent(string(inner.get("id")) or f"subagent-{len(draft.agents)}")
        _convert({**child, "subagents": []}, agent)
        agent.parent_call = draft.child_calls.get(agent.id, "")


def _answer_of(message: JsonRecord) -> str:
    """Return which answer of Claude's a row is a part of; empty where the archive does not tell.

    The archive has the answer's tokens on each of its rows, and counts them as often.
    """
    id = string(message.get("claude_message_id"))
    return f"{id} {string(message.get('claude_request_id'))}" if id else ""


def _add(
    identity: str,
    message: JsonRecord,
    calls: list[JsonRecord],
    ends: dict[str, JsonRecord],
    draft: TranscriptDraft,
) -> None:
    timeline, at = draft.timeline, moment(message.get("timestamp"))
    draft.see(at)
    text, role = string(message.get("content")), message.get("role")
    if message.get("is_compact_boundary"):
        timeline.compact(text)
    elif message.get("is_system"):
        if text.strip():
            timeline.add_context("program", text, at)
    elif role == "user":
        if text.strip():
            timeline.prompt(text, at)
    elif role == "assistant":
        answer = timeline.begin_message(identity, message.get("model"), at)
        thoughts = string(message.get("thinking_text"))
        answer.thoughts.append(thoughts)
        answer.texts.append(_without_lines(text, thoughts, calls))
        timeline.spend(_usage(message.get("token_usage")))
        for each in calls:
            given = decoded_arguments(string(each.get("input_json")))
            call = timeline.call(answer, each.get("tool_use_id"), each.get("tool_name"), given, at)
            if subagent := string(each.get("subagent_session_id")):
                draft.child_calls[subagent] = call.id
            _end(call, each, ends.get(string(each.get("tool_use_id")), {}), draft)


def _end(call: CallDraft, row: JsonRecord, event: JsonRecord, draft: TranscriptDraft) -> None:
    """Take how a call ended; one of whose result nothing is kept is unanswered."""
    length, status = row.get("result_content_length"), string(event.get("status"))
    if type(length) is not int and not event:
        return
    text = first_string(row, "result_content") or string(event.get("content"))
    is_kept = bool(text) or length == 0
    draft.timeline.result(
        call,
        text if is_kept else None,
        failed=status in _FAILED,
        at=moment(event.get("timestamp")),
        edit=edit_of_arguments(call.arguments)
        if row.get("category") in ("Edit", "Write")
        else None,
    )


def _usage(text: Any) -> Usage:
    return _BILLED.usage(decoded_arguments(string(text)))


def _without_lines(text: str, thoughts: str, calls: list[JsonRecord]) -> str:
    """Return an answer's text without the archive's own lines, as far as they are known."""
    if thoughts:
        text = text.replace(f"[Thinking]\n{thoughts}\n[/Thinking]", "", 1)
    for call in calls:
        given = decoded_arguments(string(call.get("input_json")))
        name, command = string(call.get("tool_name")), first_string(given, "command", "cmd")
        path = first_string(given, "file_path", "path")
        note = string(given.get("description"))
        lines = [f"[Tool: {name}]"]
        lines += [f"[Bash: {note}]\n$ {command}", f"[Bash]\n$ {command}"] if command else []
        lines += [f"[{verb}: {path}]" for verb in ("Read", "Edit", "Write") if path]
        for line in lines:
            if f"\n{line}\n" in f"\n{text}\n":
                text = f"\n{text}\n".replace(f"\n{line}\n", "\n", 1).strip("\n")
                break
    return text
