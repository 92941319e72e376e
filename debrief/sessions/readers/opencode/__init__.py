"""OpenCode: exported sessions, and the store under ``~/.local/share/opencode/storage``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from debrief.errors import InputError
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.base import Peek, Transcript
from debrief.sessions.readers.finding import files_below, head_of
from debrief.sessions.readers.folders import Head, grouped
from debrief.sessions.readers.kit import TranscriptReader
from debrief.sessions.readers.opencode.reading import (
    StoredSession,
    describe_export,
    is_export,
    read_export,
    read_stored,
    stored_sessions,
)

_SUFFIXES = (".json", ".jsonl")


class _OpenCodeReader(TranscriptReader):
    """Exports are one file a session, as the kit has them; a store's are many."""

    def find(self, folder: Path) -> Iterator[Transcript]:
        heads: list[tuple[str, Head]] = []
        paths = files_below(folder, _SUFFIXES, self.source)
        stored = {each.path: each for each in stored_sessions(paths)}
        for path in paths:
            head = head_of(path)
            if path in stored:
                heads.append((path, stored[path].head))
            elif is_export(head):
                heads.append((path, describe_export(head, path) or Head(id="")))

        def beside(path: str) -> tuple[str, ...]:
            return stored[path].files if path in stored else ()

        yield from grouped(self.source, heads, beside)

    def peek(self, transcript: Transcript) -> Peek | None:
        own = _own(transcript)
        if own is None:
            return super().peek(transcript)
        if not own.files and "/message/" not in own.path:
            return None
        return Peek(session_id=own.head.id, started=own.head.started)

    def _reading(self, transcript: Transcript) -> Reading:
        own = _own(transcript)
        if own is None:
            return read_export(transcript.path)
        return read_stored(own.path, own.files)

    def _children(self, transcript: Transcript, reading: Reading) -> Iterator[Reading]:
        yield from super()._children(transcript, reading)
        for child in stored_sessions((transcript.path, *transcript.companions)):
            if child.path == transcript.path:
                continue
            try:
                yield read_stored(child.path, child.files)
            except (OSError, ValueError, InputError) as error:
                reading.report(0, f"its subagent's record {child.path} cannot be read: {error}")


def _own(transcript: Transcript) -> StoredSession | None:
    stored = stored_sessions((transcript.path, *transcript.companions))
    return next((each for each in stored if each.path == transcript.path), None)


READER = _OpenCodeReader(
    source="opencode",
    tool="opencode",
    folders=(".local/share/opencode/storage",),
    suffixes=_SUFFIXES,
    claims=is_export,
    describe=describe_export,
    read=read_export,
)
"""A session with a ``parentID`` is the work of a subagent of that session."""
