"""Records in files: one as a whole file, or many as lines of one.

A file of lines holds a session a line. Each is a transcript of its own, named by the file and the
byte that its line begins at, so that it can be read without those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers.base import BrokenTranscript, NoSession, Peek, Transcript
from debrief.sessions.readers.files import Walk, head_of
from debrief.sessions.readers.recorder.conversion import SOURCE, session_of
from debrief.sessions.readers.recorder.records import BARE_HEAD, HEAD, identity_of
from debrief.sessions.readers.values import changed_at

_BEGINNING = re.compile(rb'\A\s*\{\s*"(?:messages|meta|tools)"\s*:')
_NAMES = (".record.json", ".record.jsonl")
_MANIFEST = re.compile(rb'\A\s*\{\s*"manifest"\s*:')
_LONGEST = 64_000_000
"""Bytes of a line that is still looked at; a record is never so long."""


class RecordReader:
    """Reads the records that a recorder or an export left in files."""

    source = SOURCE
    tool = SOURCE

    def folders(self, home: Path) -> tuple[Path, ...]:
        """Return nothing: records lie where somebody put them."""
        return ()

    def find(self, walk: Walk) -> Iterator[Transcript]:
        """Yield the records among the files of a folder, in path order."""
        for path in walk.paths((".json", ".jsonl"), SOURCE):
            if not path.endswith(_NAMES) and not _claims(path):
                continue
            if path.endswith(".json"):
                yield Transcript(source=SOURCE, path=path)
                continue
            for offset in _offsets(path):
                yield Transcript(
                    source=SOURCE, path=f"{path}#{offset}", companions=(path,), file=path
                )

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at a record's own words about itself; None when it is none."""
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
            file, _ = _place(transcript.path)
            return session_of(data, transcript.path, written=lambda: changed_at(file))
        except InputError as error:
            raise BrokenTranscript(transcript.path, error.reason) from error


def _claims(path: str) -> bool:
    """Return whether a file begins with a record, which other files with messages do not."""
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
        head = HEAD.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _peek_bare(data)
    return Peek(session_id=head.meta.session_id, started=head.meta.started_at)


def _peek_bare(data: bytes) -> Peek | None:
    try:
        BARE_HEAD.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Peek(session_id=identity_of(data.removesuffix(b"\n")), started=None)


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


def _place(path: str) -> tuple[str, int | None]:
    """Return a transcript's file, and the byte that it begins at where it is a line of it."""
    name, mark, offset = path.rpartition("#")
    if mark and offset.isdigit() and name.endswith(".jsonl"):
        return name, int(offset)
    return path, None


def _data(path: str) -> bytes:
    """Return the bytes of a record, its line end left off.

    Raises:
        OSError: they cannot be read.
    """
    name, offset = _place(path)
    if offset is not None:
        with open(name, "rb") as file:  # noqa: PTH123
            file.seek(offset)
            return file.readline().removesuffix(b"\n")
    return Path(path).read_bytes().removesuffix(b"\n")
