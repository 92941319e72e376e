"""Claude Code's files: where they lie, how to tell them, and how to read one session of them."""

from __future__ import annotations

import gc
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from debrief.errors import InputError
from debrief.sessions.model import Problem, Session
from debrief.sessions.readers.base import BrokenTranscript, NoSession, Peek, Transcript
from debrief.sessions.readers.claude_code.assembly import SOURCE, TOOL, session_of
from debrief.sessions.readers.claude_code.conversion import Conversation
from debrief.sessions.readers.finding import files_below, head_of, source_of
from debrief.sessions.readers.jsonl import JsonLines, Record, string
from debrief.sessions.readers.moments import moment

_MARKS = re.compile(
    rb'"(?:parentUuid|isSidechain|leafUuid)"\s*:'
    rb'|"type"\s*:\s*"(?:file-history-snapshot|queue-operation|last-prompt|permission-mode'
    rb'|ai-title|custom-title|agent-name|bridge-session|pr-link)"'
)
_TURN = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
_MESSAGE = re.compile(rb'"message"\s*:\s*\{')
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')
_OTHERS = re.compile(rb'"session_id"\s*:|"payload"\s*:|"type"\s*:\s*"session_start"')
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGENT = "agent-"
_SUBAGENTS = "subagents"


class ClaudeCodeReader:
    """Claude Code's sessions: ``~/.claude/projects/<folder>/<session>.jsonl`` and subagents'."""

    source = SOURCE
    tool = TOOL

    def folders(self, home: Path) -> tuple[Path, ...]:
        """Return where Claude Code keeps its transcripts, in its old and its new place."""
        return (home / ".claude" / "projects", home / ".config" / "claude" / "projects")

    def find(self, folder: Path) -> Iterator[Transcript]:
        """Yield the sessions below ``folder``, each with its subagents' files, in path order.

        A subagent's file goes with the session beside it or above it; when there is none, the
        files of one session's subagents are a transcript of their own.
        """
        paths = files_below(folder, ".jsonl", SOURCE)
        known = set(paths)
        mains: list[str] = []
        companions: dict[str, list[str]] = {}
        orphans: dict[tuple[str, str], list[str]] = {}
        for path in paths:
            name = path.rsplit("/", 1)[-1]
            if not name.startswith(_AGENT):
                mains.append(path)
                continue
            parent = _parent_by_place(path)
            if parent is None or parent not in known:
                key, parent = _parent_by_id(path)
                if parent not in known:
                    if self._claims(path):
                        orphans.setdefault(key, []).append(path)
                    continue
            companions.setdefault(parent, []).append(path)
        found = [
            Transcript(source=SOURCE, path=path, companions=tuple(companions.get(path, ())))
            for path in mains
            if self._claims(path)
        ]
        for first, *rest in orphans.values():
            found.append(Transcript(source=SOURCE, path=first, companions=tuple(rest)))
        yield from sorted(found, key=lambda transcript: transcript.path)

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look until the session's id, its first time and a word of its conversation are found.

        Raises:
            OSError: the file cannot be read.
        """
        file = JsonLines(transcript.path)
        id, root, started, spoken, first = "", "", None, False, None
        for record in file:
            first = first or record
            id = id or string(record.get("sessionId"))
            root = root or string(record.get("uuid"))
            if started is None:
                started = moment(record.get("timestamp"))
            spoken = spoken or _speaks(record)
            if id and spoken and started is not None:
                break
        if not spoken or first is None:
            return None
        id = id or _session_id_without(transcript.path)
        return Peek(session_id=id, started=started, root=root)

    def read(self, transcript: Transcript) -> Session:
        """Read a session with its subagents; memory is bounded by what the session keeps.

        Raises:
            NoSession: the file is whole, and no prompt and no answer is in it.
            InputError: it cannot be opened, or nothing in it can be read.
        """
        with _no_collection():
            return self._read(transcript)

    def _read(self, transcript: Transcript) -> Session:
        conversations: list[Conversation] = []
        problems: list[Problem] = []
        for index, path in enumerate((transcript.path, *transcript.companions)):
            agent = _agent_id(path) if index or _is_agent(path) else ""
            conversation = Conversation(path, agent if index else "", agent)
            try:
                conversation.read()
            except OSError as error:
                reason = error.strerror or str(error)
                if index == 0:
                    raise InputError(path, reason) from error
                problems.append(Problem(path=path, line=0, reason=f"cannot be read: {reason}"))
                continue
            conversations.append(conversation)
        if not any(each.conversational for each in conversations):
            raise _no_session(conversations[0])
        main = conversations[0]
        if _is_agent(main.file.path):
            for thread in main.agents.values():
                thread.place = "file"
        id = main.session_id or _session_id_without(main.file.path)
        return session_of(id, conversations, problems)

    def _claims(self, path: str) -> bool:
        if source_of(path) is not None:
            return True
        head = head_of(path)
        if _MARKS.search(head):
            return True
        if not _TURN.search(head) or not _MESSAGE.search(head):
            return False
        return _SESSION_ID.search(head) is not None or not _OTHERS.search(head)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector of cycles off: a reading makes none, and would be searched for them
    again and again while it grows, which costs a third of the time of a long transcript.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _no_session(main: Conversation) -> InputError:
    path = main.file.path
    problems = main.file.problems
    if problems:
        reason = f"no prompt and no answer in it; {problems[0].reason}"
        return BrokenTranscript(path, reason, problems[0].line)
    if main.file.size == 0:
        return NoSession(path, "the file is empty")
    return NoSession(path, "no prompt and no answer in it, bookkeeping alone")


def _speaks(record: Record) -> bool:
    kind = record.get("type")
    if kind == "user" or kind == "assistant":
        return type(record.get("message")) is dict
    if kind == "attachment":
        attachment = record.get("attachment")
        return type(attachment) is dict and (
            attachment.get("type") == "queued_command" and attachment.get("commandMode") == "prompt"
        )
    return False


def _session_id_without(path: str) -> str:
    """Name a session whose records do not: by its file, and by how it begins.

    File names such as ``transcript.jsonl`` repeat from folder to folder, and a copy must get the
    id of its original.
    """
    stem = Path(path).stem
    if _UUID.fullmatch(stem):
        return stem
    first, _, _ = head_of(path).partition(b"\n")
    return f"{stem}-{hashlib.sha256(first).hexdigest()[:8]}"


def _is_agent(path: str) -> bool:
    return path.rsplit("/", 1)[-1].startswith(_AGENT)


def _agent_id(path: str) -> str:
    return Path(path).stem.removeprefix(_AGENT)


def _parent_by_place(path: str) -> str | None:
    """Return the session's file of a subagent's in ``<session>/subagents/…``."""
    folder, found, _ = path.rpartition(f"/{_SUBAGENTS}/")
    return f"{folder}.jsonl" if found else None


def _parent_by_id(path: str) -> tuple[tuple[str, str], str]:
    """Return (folder, session id) of a subagent's file, and the path its session would have."""
    folder = path.rsplit("/", 1)[0]
    match = _SESSION_ID.search(head_of(path))
    id = match[1].decode(errors="replace") if match else path
    return (folder, id), f"{folder}/{id}.jsonl"
