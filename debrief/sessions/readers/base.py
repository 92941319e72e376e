"""What every reader of a source provides."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers.files import Walk


class NoSession(InputError):  # noqa: N818 - most often it is no error
    """A file that is as its tool left it, and holds no session: empty, or bookkeeping alone."""


class BrokenTranscript(InputError):  # noqa: N818 - the transcript is in error, not the reader
    """A file in which nothing could be read, and the first line where that failed.

    Args:
        culprit: the file's path.
        reason: what is wrong.
        line: from 1; 0 where the whole file is meant.
    """

    def __init__(self, culprit: str, reason: str, line: int = 0) -> None:
        self.line = line
        super().__init__(culprit, reason)

    def __reduce__(self) -> tuple[type[BrokenTranscript], tuple[str, str, int]]:  # type: ignore[override]
        return type(self), (self.culprit, self.reason, self.line)


class Transcript(Struct, frozen=True, kw_only=True):
    """The files that hold one session: the main one, and those that only complete it."""

    source: str
    path: str
    companions: tuple[str, ...] = ()
    """Subagents' transcripts, settings, sidecars: a change in one means reading again."""
    file: str = ""
    """The file that it is a part of, where one holds several; ``path`` then is that file's, with
    something behind it."""


class Peek(Struct, frozen=True, kw_only=True):
    """What the beginning of a transcript says, without reading it whole."""

    session_id: str
    started: datetime | None = None
    """Time of the first record that has one; None when no record has."""
    root: str = ""
    """Identifies the record that the conversation begins with, where records have ids: a copy or a
    resumption under another session id begins with the same."""
    parent: str = ""
    """The session whose subagent this one is; empty for a person's own."""


class ToolNames(Struct, frozen=True):
    """What the tools of a source's agent are called, several names parted by spaces."""

    shell: str = ""
    """Run a command, in the argument ``command`` or ``cmd``."""
    read: str = ""
    """Read a file."""
    search: str = ""
    """Search files, or list them."""


class SessionReader(Protocol):
    """What reads the sessions of a folder or of a server."""

    def read(self, transcript: Transcript) -> Session:
        """Read one transcript whole.

        What cannot be read ends up in ``Session.problems``.

        Raises:
            InputError: the file holds no session, or cannot be read at all.
        """
        ...


class Reader(SessionReader, Protocol):
    """A source of sessions. A new one is a module with such an object in ``READERS``."""

    source: str
    tool: str
    tools: ToolNames

    def folders(self, home: Path) -> tuple[Path, ...]:
        """Return where the tool keeps its transcripts below a user's home."""
        ...

    def find(self, walk: Walk) -> Iterator[Transcript]:
        """Yield this source's transcripts among the files of a folder, in path order.

        Files of other sources are skipped by a look at their first bytes.
        """
        ...

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning; None when the file holds no session."""
        ...
