"""Records in files: one as a whole file, or many as lines of one.

A file of lines holds a session a line. Each is a transcript of its own, named by the file and the
byte that its line begins at, so that it can be read without those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers.base import BrokenTranscript, NoSession, Peek, ToolNames, Transcript
from debrief.sessions.readers.files import Walk, head_of
from debrief.sessions.readers.recorder.conversion import SOURCE, session_of
from debrief.sessions.readers.recorder.records import NOT_A_RECORD, decode_meta
from debrief.sessions.readers.values import changed_at

_BEGINNING = re.compile(rb'\A\s*\{\s*"(?:messages|meta|tools)"\s*:')
_NAMES = (".record.json", ".record.jsonl")
_MANIFEST = re.compile(rb'\A\s*\{\s*"manifest"\s*:')
_UNKNOWN = datetime.min
_LONGEST = 64_000_000
"""Bytes of a line that is still read; a record is never so long."""


class RecordReader:
    """Reads the records that a recorder or an export left in files."""

    source = SOURCE
    tool = SOURCE
    tools = ToolNames(shell="run_cmd", read="repo.readFile")

    def folders(self, home: Path) -> tuple[Path, ...]:
        """Return nothing: records are wherever somebody put them."""
        return ()

    def find(self, walk: Walk) -> Iterator[Transcript]:
        """Yield the records among the files of a folder, in path order."""
        for path in walk.paths((".json", ".jsonl"), SOURCE):
            if not path.endswith(_NAMES) and not _is_records_file(path):
                continue
            if path.endswith(".json"):
                yield Transcript(source=SOURCE, path=path)
                continue
            for offset in _offsets(path):
                yield Transcript(
                    source=SOURCE, path=f"{path}#{offset}", companions=(path,), file=path
                )

    def peek(self, transcript: Transcript) -> Peek | None:
        """Read only a record's ``meta``; None if the file is not a record."""
        return _peek(_data(transcript.path))

    def read(self, transcript: Transcript) -> Session:
        """Read one record.

        Raises:
            NoSession: it is the last line of an export, which counts the others.
            InputError: it is no record, or cannot be read.
        """
        try:
            data = _data(transcript.path)
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error})"
            raise InputError(transcript.path, reason) from error
        if _MANIFEST.match(data):
            raise NoSession(transcript.path, "the last line of an export, which counts the others")
        try:
            file, _ = _split_path(transcript.path)
            return session_of(data, transcript.path, written=lambda: changed_at(file))
        except InputError as error:
            raise BrokenTranscript(transcript.path, error.reason) from error


def _is_records_file(path: str) -> bool:
    """Return whether a file begins with a record, as other files with messages do not."""
    head = head_of(path)
    if not _BEGINNING.match(head):
        return False
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            line = file.read(_LONGEST) if path.endswith(".json") else file.readline(_LONGEST)
    except OSError:
        return False
    return _peek(line) is not None


def _peek(data: bytes) -> Peek | None:
    try:
        meta = decode_meta(data.removesuffix(b"\n"), lambda: _UNKNOWN)
    except NOT_A_RECORD:
        return None
    started = None if meta.started_at is _UNKNOWN else meta.started_at
    return Peek(session_id=meta.session_id, started=started)


def _offsets(path: str) -> Iterator[int]:
    """Yield where the lines of a file begin, blank ones apart."""
    at = 0
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            for line in file:
                if not line.isspace():
                    yield at
                at += len(line)
    except OSError:
        return


def _split_path(path: str) -> tuple[str, int | None]:
    """Return a transcript's file, and where its line begins if it is a line of it."""
    name, sign, offset = path.rpartition("#")
    if sign and offset.isdigit() and name.endswith(".jsonl"):
        return name, int(offset)
    return path, None


def _data(path: str) -> bytes:
    """Return the bytes of a record, its line end left off.

    Raises:
        OSError: they cannot be read.
    """
    name, offset = _split_path(path)
    if offset is not None:
        with open(name, "rb") as file:  # noqa: PTH123
            file.seek(offset)
            return file.readline().removesuffix(b"\n")
    return Path(path).read_bytes().removesuffix(b"\n")
