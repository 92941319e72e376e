"""What every reader of a source provides, and the base of most of them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Protocol

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from debrief.errors import InputError
from debrief.opening import MARK
from debrief.sessions.model import Action, Problem, Session
from debrief.sessions.readers.assembly import AGENT_TYPES, TranscriptDraft, assemble
from debrief.sessions.readers.documents import TOO_DEEP, JsonRecord
from debrief.sessions.readers.files import HEAD, FileStamp, Walk, head_of
from debrief.sessions.readers.forks import Branch, branch_of, joined
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import first_string, is_made_up, moment

_LOOKED_AT = 1 << 20
_OUR_MARK = MARK.encode()


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


class Beginning(Struct, frozen=True, kw_only=True):
    """A file that a reader claims, by its beginning."""

    peek: Peek | None = None
    """None when the file holds no session, or did not change and was not opened again."""
    may_be_ours: bool = False
    """It holds the mark of the questions that Debrief asks of programs."""
    failure: Exception | None = None
    """What the reader failed with; such a file is no transcript."""


Claims = Mapping[str, Mapping[str, Beginning]]
"""By source and path, in path order, the files that their readers claim."""


class Transcript(Struct, frozen=True, kw_only=True):
    """The files that hold one session: the main one, and those that only complete it."""

    source: str
    path: str
    companions: tuple[str, ...] = ()
    """Subagents' transcripts, settings, sidecars: a change in one means reading again."""
    file: str = ""
    """The file that it is a part of, where one holds several; ``path`` then is that file's, with
    ``#`` and something behind it."""
    stamp: FileStamp | None = None
    """Of a part whose own changes are known: what is the same as long as it is. Without one, every
    change of the file is one of the part."""
    peek: Peek | None = None
    """What a look at its beginning would say, where finding it has shown that already."""

    @property
    def on_disk(self) -> str:
        """The file that it is, or is a part of."""
        if self.file:
            return self.file
        parts = (
            companion for companion in self.companions if self.path.startswith(f"{companion}#")
        )
        return next(parts, self.path)


class ToolNames(Struct, frozen=True):
    """What the tools of a source's agent are called, by what they do; see ``Action``.

    Several names are parted by spaces. Upper case is as lower.
    """

    run: str = ""
    """Run a command, in the argument ``command`` or ``cmd``."""
    read: str = ""
    search: str = ""
    edit: str = ""
    wait: str = ""
    plan: str = ""
    delegate: str = ""
    ask: str = ""
    web: str = ""


def actions_by_name(tools: ToolNames) -> dict[str, Action]:
    """Return what each tool does, by its name in lower case."""
    listed: dict[Action, str] = asdict(tools)  # type: ignore[assignment]
    return {name: action for action, names in listed.items() for name in names.lower().split()}


class SessionReader(Protocol):
    """What reads the sessions of a folder or of a server."""

    def read(self, transcript: Transcript) -> Session:
        """Read one transcript whole.

        What cannot be read ends up in ``Session.problems``.

        Raises:
            InputError: the file holds no session, or cannot be read at all.
        """
        ...


class Reader(ABC):
    """A source of sessions. A new one is a module with such an object in ``READER``."""

    source: str
    tool: str
    tools = ToolNames()
    home_folders: tuple[str, ...] = ()
    """Where the tool keeps its transcripts, below a user's home."""
    moved_by: tuple[str, str] = ("", "")
    """The variable with which a user moves them, and the folder that it stands for."""
    suffixes: tuple[str, ...] = (".jsonl",)
    """Of the names of its transcripts."""
    drops = ""
    """Of a second-hand source: what of a session it does not keep, though the agent did."""
    original = ""
    """Of a second-hand source: the name of a session's own file, where that lies beside."""
    opens_unchanged = False
    """Which files are of one session is seen by their beginnings: a changed one needs the others'
    too."""

    def folders(self, home: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
        """Return where the tool keeps a user's transcripts, or kept them before they were moved.

        Args:
            home: the user's.
            environ: the environment's variables, of which the tool's own may name another place.
        """
        usual = tuple(home / folder for folder in self.home_folders)
        variable, top = self.moved_by
        if not (moved := environ.get(variable, "")):
            return usual
        inner = (
            Path(home_folder)
            for home_folder in self.home_folders
            if Path(home_folder).is_relative_to(top)
        )
        return (*(Path(moved).expanduser() / path.relative_to(top) for path in inner), *usual)

    @abstractmethod
    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a file with this beginning is the source's."""

    def look(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning of a claimed file says; None where that is not enough."""
        return None

    @abstractmethod
    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield this source's transcripts among the files of a folder, in path order."""

    def find(self, walk: Walk) -> Iterator[Transcript]:
        """Yield this source's transcripts where no other source is looked for."""
        return self.transcripts(walk, claims_of(walk, (self,)))

    @abstractmethod
    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning; None when the file holds no session."""

    @abstractmethod
    def read(self, transcript: Transcript) -> Session:
        """Read one transcript whole; see ``SessionReader``."""

    def branch(self, transcript: Transcript) -> Branch:
        """Return the way that a transcript tells, to be compared with those that begin alike.

        Raises:
            InputError: as ``read`` does.
        """
        return branch_of(self.read(transcript))

    def read_all(
        self, transcripts: Sequence[Transcript], failed: Callable[[Transcript, Exception], None]
    ) -> Session | None:
        """Read all transcripts of one session: copies, earlier states and parts of it.

        Args:
            transcripts: of one session.
            failed: called for each that cannot be read, with what went wrong.

        Returns:
            None when none can be read.
        """
        readings = []
        for transcript in transcripts:
            try:
                readings.append(self.read(transcript))
            except Exception as error:  # one transcript must never cost the others
                failed(transcript, error)
        return joined(readings) if readings else None

    def documents(self, transcript: Transcript) -> list[bytes]:
        """Return files that hold what a part of a database does, to be carried elsewhere."""
        return []


_TIME = re.compile(rb'(?<!\\)"timestamp"\s*:\s*"([^"\\]{1,40})"')


class Head(bytes):
    """A file's beginning, whose last record may be cut off."""

    @classmethod
    def of(cls, path: str) -> Head:
        """Return the beginning of a file; see ``head_of``."""
        return cls(head_of(path))

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole file."""
        return len(self) < HEAD

    def text(self, pattern: re.Pattern[bytes]) -> str:
        """Return the first group of a pattern's first match; empty for none."""
        match = pattern.search(self)
        return match[1].decode(errors="replace") if match else ""

    def first_time(self, *patterns: re.Pattern[bytes]) -> datetime | None:
        """Return the first ``timestamp``, or the first time that ``patterns`` find."""
        found = (match for pattern in patterns or (_TIME,) for match in pattern.finditer(self))
        moments = (moment(match[1].decode(errors="replace")) for match in found)
        return next((at for at in moments if at is not None), None)

    def records(self) -> list[JsonRecord]:
        """Return its records, those left out that cannot be decoded."""
        records = []
        for line in self.split(b"\n"):
            with suppress(orjson.JSONDecodeError):
                records.append(orjson.loads(line))
        return [record for record in records if type(record) is dict]


def claims_of(walk: Walk, readers: Iterable[Reader]) -> dict[str, dict[str, Beginning]]:
    """Open each new file of a folder once, and return which reader claims it: the first that does.

    A reader that fails costs the file alone.
    """
    asked = tuple(readers)
    claims: dict[str, dict[str, Beginning]] = {reader.source: {} for reader in asked}
    for path in (file.path for file in walk.files):
        known = walk.sources.get(path)
        able = [reader for reader in asked if known in (None, reader.source)]
        able = [reader for reader in able if path.endswith(reader.suffixes)]
        if known and not any(reader.opens_unchanged for reader in able):
            for reader in able:
                claims[reader.source][path] = Beginning()
            continue
        head = Head.of(path) if able else Head()
        for reader in able:
            beginning = _claimed(reader, head, path)
            if beginning is not None:
                claims[reader.source][path] = beginning
                break
    return claims


def _claimed(reader: Reader, head: Head, path: str) -> Beginning | None:
    try:
        if not reader.claims(head, path):
            return None
        return Beginning(peek=reader.look(head, path), may_be_ours=head.find(_OUR_MARK) >= 0)
    except Exception as error:  # one file must never cost the scan
        return Beginning(failure=error)


class TranscriptReader(Reader):
    """Reads a source whose sessions are one file each, subagents being files of their own.

    A source defines the class variables, ``describe`` and ``read_file``.
    """

    opens_unchanged = True
    start: re.Pattern[bytes]
    """Matches the beginning of each of them."""
    marks: tuple[re.Pattern[bytes], ...] = ()
    """Are all found in the beginning too."""
    message_mark: re.Pattern[bytes] = re.compile(b"")
    """Is found in a file in which anybody says something."""
    asking: tuple[str, ...] = ()
    """Arguments in which calls hold what a subagent is asked, where its file names no call."""

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a file with this beginning is the source's."""
        return bool(self.start.match(head)) and all(mark.search(head) for mark in self.marks)

    @abstractmethod
    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning of a file says; None when it holds no session."""

    @abstractmethod
    def read_file(self, path: str) -> TranscriptDraft:
        """Read one file.

        Raises:
            OSError: it cannot be read.
            ValueError: it holds nothing that can be read.
        """

    def beside(self, path: str) -> tuple[str, ...]:
        """Return the files that belong to a path, such as its settings."""
        return ()

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield this source's transcripts, in path order: a child at hand completes its parent."""
        own = claims[self.source].items()
        return self.grouped(
            {path: beginning.peek for path, beginning in own if beginning.failure is None}
        )

    def grouped(self, peeks: Mapping[str, Peek | None]) -> Iterator[Transcript]:
        """Yield one transcript a session, given each file of the source in path order.

        An id that several files have as their own, and that is not one session's alone, such as
        the word that ids were masked with, is nobody's parent.
        """
        files = {path: peek or Peek(session_id="") for path, peek in peeks.items()}
        ids = Counter(peek.session_id for peek in files.values() if peek.session_id)
        own = {
            peek.session_id: path
            for path, peek in reversed(files.items())
            if ids[peek.session_id] == 1 or is_made_up(peek.session_id)
        }
        parents = {peek.session_id: peek.parent for peek in files.values() if peek.parent}
        children: dict[str, list[str]] = {}
        for path, peek in files.items():
            root = _topmost(peek, parents, own)
            if root:
                children.setdefault(own[root], []).append(path)
        attached = {path for paths in children.values() for path in paths}
        for path in files:
            if path not in attached:
                companions = list(self.beside(path))
                for child in children.get(path, ()):
                    companions += (child, *self.beside(child))
                yield Transcript(
                    source=self.source, path=path, companions=tuple(companions), peek=peeks[path]
                )

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning; None when the file holds no session."""
        if transcript.peek is not None:
            return transcript.peek
        return self.look(Head.of(transcript.path), transcript.path)

    def look(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning of a file says; None where nobody says anything in it."""
        is_silent = head.is_whole and not self.message_mark.search(head)
        return None if is_silent else self.describe(head, path)

    def read(self, transcript: Transcript) -> Session:
        """Read one transcript with its subagents'.

        Raises:
            NoSession: the file is whole, and no prompt and no answer is in it.
            InputError: nothing in it can be read.
        """
        path = transcript.path
        try:
            draft = self.read_main(transcript)
        except OSError as error:
            raise InputError(path, f"cannot be read ({error.strerror or error})") from error
        except ValueError as error:
            raise BrokenTranscript(path, str(error)) from error
        except RecursionError as error:
            raise BrokenTranscript(path, TOO_DEEP) from error
        if not any(part.timeline.turns for part in (draft, *draft.agents.values())):
            raise nothing_in(path, draft.problems, "holds no session: no prompt and no answer")
        children = [*draft.agents.values(), *self.read_children(transcript, draft)]
        return assemble(draft, source=self.source, tool=self.tool, children=children)

    def read_main(self, transcript: Transcript) -> TranscriptDraft:
        """Read a transcript's own file or files; raises as ``read_file`` does."""
        return self.read_file(transcript.path)

    def read_children(
        self, transcript: Transcript, draft: TranscriptDraft
    ) -> Iterator[TranscriptDraft]:
        """Read the transcripts of subagents; those that cannot be read are reported."""
        messages = (message for turn in draft.timeline.turns for message in turn.messages)
        calls = [call for message in messages for call in message.calls] if self.asking else []
        for path in transcript.companions:
            if path.endswith(self.suffixes) and self.claims(head_of(path), path):
                try:
                    child = self.read_file(path)
                except (OSError, ValueError, RecursionError) as error:
                    draft.report(0, f"its subagent's transcript {path} cannot be read: {error}")
                    continue
                self._link(child, calls)
                yield child

    def _link(self, child: TranscriptDraft, calls: list[CallDraft]) -> None:
        """Link a subagent to the call whose words it was asked with; take that out of ``calls``."""
        prompt = child.timeline.turns[0].prompt if calls and child.timeline.turns else ""
        asked = [first_string(call.arguments, *self.asking).strip() for call in calls]
        fitting = [n for n, words in enumerate(asked) if words and words in prompt]
        if fitting:
            call = calls.pop(max(fitting, key=lambda number: len(asked[number])))
            child.call = call
            child.agent_type = child.agent_type or first_string(call.arguments, *AGENT_TYPES)


_ANSWER = re.compile(
    rb'"role"\s*:\s*"(?:assistant|model|agent)"|"type"\s*:\s*"(?:assistant|gemini|agent)"'
)
"""A speaker's role may be ``model``; where a type is, it is that of something else: Codex says of
its instructions that they come from a model."""


def nothing_in(path: str, problems: Sequence[Problem], otherwise: str) -> InputError:
    """Return the error for a file without a session: its first problem, if it has any.

    Records that name the model as their speaker are no bookkeeping: they were not understood.
    """
    if not problems:
        with suppress(OSError, ValueError), open(path, "rb") as file:  # noqa: PTH123
            if _ANSWER.search(file.read(_LOOKED_AT)):
                return BrokenTranscript(
                    path, "holds answers of a model in a form that is not known"
                )
        return NoSession(path, otherwise)
    reason = f"no prompt and no answer in it; {problems[0].reason}"
    return BrokenTranscript(path, reason, problems[0].line)


def _topmost(peek: Peek, parents: dict[str, str], own: dict[str, str]) -> str:
    """Return the topmost session at hand above a file's; empty for none, and for a circle."""
    root, seen = "", {peek.session_id}
    parent = peek.parent
    while parent and parent in own:
        if parent in seen:
            return ""
        root = parent
        seen.add(parent)
        parent = parents.get(parent, "")
    return root
