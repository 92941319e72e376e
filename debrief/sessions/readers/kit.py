"""A reader made of a source's own parts: which files are its, and what one of them says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers.assembly import Reading, assemble
from debrief.sessions.readers.base import BrokenTranscript, NoSession, Peek, Transcript
from debrief.sessions.readers.finding import files_below, head_of
from debrief.sessions.readers.folders import Head, grouped
from debrief.sessions.readers.moments import changed_at


class TranscriptReader:
    """Reads a source whose sessions are one file each, subagents being files of their own.

    Args:
        folders: where the tool keeps its transcripts, below a user's home.
        suffixes: of the names of its transcripts.
        claims: tells from a file's first bytes whether it is the source's.
        describe: reads id, start and parent from the first bytes; None when the file holds no
            session.
        read: reads one file; raises OSError or ValueError when that cannot be done.
        beside: the files that belong to a path, such as its settings.
    """

    def __init__(
        self,
        *,
        source: str,
        tool: str,
        folders: tuple[str, ...],
        suffixes: tuple[str, ...],
        claims: Callable[[bytes], bool],
        describe: Callable[[bytes, str], Head | None],
        read: Callable[[str], Reading],
        beside: Callable[[str], tuple[str, ...]] = lambda path: (),
    ) -> None:
        self.source = source
        self.tool = tool
        self._folders = folders
        self._suffixes = suffixes
        self._claims = claims
        self._describe = describe
        self._read = read
        self._beside = beside

    def folders(self, home: Path) -> tuple[Path, ...]:
        """Return where the tool keeps its transcripts below a user's home."""
        return tuple(home / folder for folder in self._folders)

    def find(self, folder: Path) -> Iterator[Transcript]:
        """Yield this source's transcripts below ``folder``, in path order."""
        heads: list[tuple[str, Head]] = []
        for path in files_below(folder, self._suffixes, self.source):
            head = head_of(path)
            if self._claims(head):
                heads.append((path, self._describe(head, path) or Head(id="")))
        yield from grouped(self.source, heads, self._beside)

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning; None when the file holds no session."""
        head = self._describe(head_of(transcript.path), transcript.path)
        if head is None:
            return None
        return Peek(session_id=head.id, started=head.started, root=head.root)

    def read(self, transcript: Transcript) -> Session:
        """Read one transcript with its subagents'.

        Raises:
            NoSession: the file is whole, and no prompt and no answer is in it.
            InputError: nothing in it can be read.
        """
        try:
            reading = self._reading(transcript)
            fallback = changed_at(transcript.path)
        except OSError as error:
            raise InputError(
                transcript.path, f"cannot be read ({error.strerror or error})"
            ) from error
        except ValueError as error:
            raise BrokenTranscript(transcript.path, str(error)) from error
        if reading.timeline.empty:
            if reading.problems:
                raise _broken(reading)
            raise NoSession(transcript.path, "holds no session: no prompt and no answer")
        children = [*reading.agents.values(), *self._children(transcript, reading)]
        return assemble(
            reading, source=self.source, tool=self.tool, fallback=fallback, children=children
        )

    def _reading(self, transcript: Transcript) -> Reading:
        return self._read(transcript.path)

    def _children(self, transcript: Transcript, reading: Reading) -> Iterator[Reading]:
        for path in transcript.companions:
            if not (path.endswith(self._suffixes) and self._claims(head_of(path))):
                continue
            try:
                yield self._read(path)
            except (OSError, ValueError) as error:
                reading.report(0, f"its subagent's transcript {path} cannot be read: {error}")


def _broken(reading: Reading) -> BrokenTranscript:
    problem = reading.problems[0]
    reason = f"no prompt and no answer in it; {problem.reason}"
    return BrokenTranscript(reading.path, reason, problem.line)
