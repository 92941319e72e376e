"""What a scan remembers of each transcript, and one session out of several transcripts of it.

Copies, resumptions and parts in other folders are of one session. ``sources.scan`` is what searches
the folders.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from debrief.keys import digest_of, week_of
from debrief.sessions.model import (
    Message,
    Name,
    Own,
    Session,
    Subagent,
    Turn,
    UnreadCause,
    Usage,
    messages_of,
)
from debrief.sessions.readers.files import FileStamp
from debrief.sessions.readers.values import time_without_records, unique

UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""An id that its tool made up for one session alone."""

MIRRORED_FILES, ORIGIN = "files", "origin"
"""In the folder of a mirror: the files that were brought here, and the address that they are of."""
_FEWEST_SIGNS, _FEWEST_DIGITS = 4, 3
"""In an id that is no word, as those are with which other tools mask ids."""


class ScanEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One transcript, or a file that is none, as a scan found it."""

    source: Own
    """The reader that claims it; empty when none does."""
    path: Name
    """Of one whose name holds a secret: with a placeholder; see ``Scan.real_paths``."""
    size: int = 0
    """Bytes."""
    mtime_ns: int = 0
    companions: tuple[FileStamp, ...] = ()
    session_id: Name = ""
    """The session that it belongs to, unique over the scan; empty when it holds none."""
    own_id: Name = ""
    """The session's id in the transcript itself."""
    root: Name = ""
    """Identifies the record that the conversation begins with; see ``Peek.root``."""
    own_started: datetime | None = None
    """The time of the transcript's first record that has one."""
    started: datetime
    """When the session began, copies and parts of it considered."""
    week: Own
    """Of ``started``."""
    reason: str = ""
    """Why it holds no session; empty when it does."""
    line: int = 0
    expected: bool = False
    """See ``UnreadTranscript.expected``."""
    cause: UnreadCause = "transcript"
    version: Own = ""
    """Of a session on a server: changes when the session does."""
    looked_for: tuple[Own, ...] = ()
    """Of a file that no reader claims, the sources that were asked."""

    @property
    def is_part(self) -> bool:
        """Whether it is one of several in a file, which is its companion then."""
        return any(self.path.startswith(f"{stamp.path}#") for stamp in self.companions)

    @property
    def is_on_server(self) -> bool:
        """Whether it is a session that a server has, and is read from there."""
        return bool(self.version and self.session_id)

    @property
    def files(self) -> tuple[FileStamp, ...]:
        """The file itself and its companions; a change in any means reading again."""
        own = () if self.is_part else (FileStamp(self.path, self.size, self.mtime_ns),)
        return (*own, *self.companions)


class MirrorOrigin(Struct, frozen=True):
    """Where files of this machine were brought from."""

    here: str
    """What their paths begin with."""
    there: str
    """What the addresses in the store begin with."""


def origins_of(folders: Iterable[Path]) -> tuple[MirrorOrigin, ...]:
    """Return where the folders that are mirrors come from."""
    return tuple(
        MirrorOrigin(f"{folder}/", f"{origin.read_text(encoding='utf-8')}/")
        for folder in folders
        if folder.name == MIRRORED_FILES and (origin := folder.parent / ORIGIN).is_file()
    )


def shared_path(path: str, origins: Iterable[MirrorOrigin]) -> str:
    """Return the address of a file that was brought here, or the path of any other."""
    for origin in origins:
        if path.startswith(origin.here):
            return origin.there + path[len(origin.here) :]
    return path


def shared_entry(entry: ScanEntry, origins: tuple[MirrorOrigin, ...]) -> ScanEntry:
    """Return an entry as all machines know it."""
    if not origins or (path := shared_path(entry.path, origins)) == entry.path:
        return entry
    companions = (replace(each, path=shared_path(each.path, origins)) for each in entry.companions)
    return replace(entry, path=path, companions=tuple(companions))


def local_entry(entry: ScanEntry, origins: tuple[MirrorOrigin, ...]) -> ScanEntry:
    """Return an entry, as all machines know it, with the paths of this machine."""
    return shared_entry(entry, tuple(MirrorOrigin(each.there, each.here) for each in origins))


class Scan(Struct, frozen=True):
    """Every transcript below the folders that were scanned."""

    entries: tuple[ScanEntry, ...] = ()
    """In path order; storable as a table, and what the next scan is to remember."""
    origins: tuple[MirrorOrigin, ...] = ()
    """Of the entries that were brought to this machine."""
    gone: tuple[ScanEntry, ...] = ()
    """Transcripts of these sessions that were here at an earlier scan: they still say what a
    session is called and when it began."""
    real_paths: Mapping[str, str] = {}
    """By path, where the files are whose names hold secrets; never stored."""

    def weeks(self) -> list[str]:
        """Return the weeks that have sessions or unread transcripts, in order."""
        return sorted({entry.week for entry in self.entries if is_reported(entry)})

    def of_week(self, week: str) -> list[ScanEntry]:
        """Return the week's entries, in path order."""
        return [entry for entry in self.entries if entry.week == week and is_reported(entry)]

    def digest(self, week: str) -> str:
        """Return a SHA-256 that changes when a file of the week does, or is added or removed."""
        here = (replace(e, companions=()) if e.is_part else e for e in self.of_week(week))
        return digest_of([shared_entry(entry, self.origins) for entry in here])


def is_reported(entry: ScanEntry) -> bool:
    """Return whether the entry is a transcript or was meant to be one, not just any JSON file."""
    return bool(entry.source or entry.reason)


def identified(
    entries: Iterable[ScanEntry], origins: tuple[MirrorOrigin, ...] = ()
) -> tuple[ScanEntry, ...]:
    """Give every transcript the session that it belongs to, and that session's first time.

    Transcripts are of one session when they tell the same id, or begin with the same record: a
    checkpoint's copy, a resumption, a part in another folder. Ids that no tool would give to one
    session alone (``test``, ``REDACTED``) unite only transcripts that begin alike.
    """
    entries = sorted(entries, key=lambda entry: entry.path)
    held = [entry for entry in entries if entry.own_id]
    groups = _groups(held)
    names = _names(groups, origins)
    settled: dict[str, ScanEntry] = {}
    for group, name in zip(groups, names, strict=True):
        times = [entry.own_started for entry in group if entry.own_started is not None]
        started = min(times or [time_without_records(entry.path) for entry in group])
        week = week_of(started)
        for entry in group:
            settled[entry.path] = replace(entry, session_id=name, started=started, week=week)
    return tuple(settled.get(entry.path, entry) for entry in entries)


def _groups(entries: list[ScanEntry]) -> list[list[ScanEntry]]:
    leaders = list(range(len(entries)))

    def leader(index: int) -> int:
        while leaders[index] != index:
            leaders[index] = leaders[leaders[index]]
            index = leaders[index]
        return index

    first_with: dict[tuple[str, ...], int] = {}
    for index, entry in enumerate(entries):
        for key in identities(entry):
            other = leader(first_with.setdefault(key, index))
            leaders[max(other, leader(index))] = min(other, leader(index))
    groups: dict[int, list[ScanEntry]] = {}
    for index, entry in enumerate(entries):
        groups.setdefault(leader(index), []).append(entry)
    return list(groups.values())


def identities(entry: ScanEntry) -> list[tuple[str, str, str, str]]:
    """Return what a transcript's session is known by; two that share one are of one session."""
    beginning = ""
    if not _is_unique(entry):
        beginning = f"{entry.root} {entry.own_started or entry.path}"
    known = [("id", entry.source, entry.own_id, beginning)]
    if UNIQUE.fullmatch(entry.root) and len(set(entry.root)) >= _FEWEST_SIGNS:
        known.append(("root", entry.source, entry.root, ""))
    return known


def _is_unique(entry: ScanEntry) -> bool:
    """Return whether an entry's id is one that its tool makes up for one session alone."""
    id = entry.own_id
    if len(set(id)) < _FEWEST_SIGNS:
        return False
    if UNIQUE.search(id):
        return True
    return not entry.root and sum(map(str.isdigit, id)) >= _FEWEST_DIGITS


def _names(groups: list[list[ScanEntry]], origins: tuple[MirrorOrigin, ...]) -> list[str]:
    """Return one name a group: its own id, the smallest of several, made unique where needed."""
    names: list[str] = []
    taken: set[str] = set()
    for group in groups:
        name = min(entry.own_id for entry in group)
        if name in taken:
            first = group[0]
            mark = "\n".join((first.source, first.root or shared_path(first.path, origins)))
            name = f"{name}-{hashlib.sha256(mark.encode()).hexdigest()[:8]}"
        taken.add(name)
        names.append(name)
    return names


_Timed = TypeVar("_Timed", Turn, Message)
_Known = TypeVar("_Known", Message, Subagent)


def with_digest(session: Session) -> Session:
    """Return a session with the digest of all that it holds but its status."""
    bare = replace(session, digest="", status=UNSET)
    return replace(session, digest=digest_of(bare))


def united(readings: Sequence[Session]) -> Session:
    """Return one session that holds what any of its readings holds, each message once.

    The most complete reading is taken whole; from the others come the turns, messages and
    subagents that it lacks, with their tokens and growth.
    """
    base, *others = sorted(readings, key=_completeness, reverse=True)
    for other in others:
        base = _with(base, other)
    return base


def completed(session: Session, stored: Session, gone: Collection[str]) -> Session:
    """Return a session with what an earlier reading held besides, of transcripts that are gone.

    Args:
        session: as it is read now, redacted.
        stored: as it was read while all its transcripts were here.
        gone: the paths of those that are not.
    """
    earlier = replace(
        stored,
        transcripts=tuple(ref for ref in stored.transcripts if ref.path in gone),
        problems=tuple(problem for problem in stored.problems if problem.path in gone),
    )
    both = _with(session, earlier)
    if (both.turns, both.subagents) == (session.turns, session.subagents):
        return session
    return replace(
        both,
        redactions=max(session.redactions, stored.redactions),
        unsure_redactions=max(session.unsure_redactions, stored.unsure_redactions),
    )


def _completeness(session: Session) -> tuple[int, int, int, datetime]:
    messages = sum(len(turn.messages) for turn in session.turns)
    records = sum(ref.records for ref in session.transcripts)
    return len(session.turns), messages, records, session.ended


def _with(base: Session, other: Session) -> Session:
    lacks = _lacking(
        messages_of(base), messages_of(other), lambda each: (each.at, each.text, each.usage)
    )
    prompts = {turn.prompt for turn in base.turns if turn.origin == "prompt"}
    added = [rest for turn in other.turns if (rest := _rest(turn, lacks, prompts)) is not None]
    turns, new = _merged(base.turns, added)
    is_new = _lacking(base.subagents, other.subagents, lambda each: (each.prompt, each.messages))
    agents = tuple(filter(is_new, other.subagents))
    new.extend(message for agent in agents for message in agent.messages)
    calls = [call for message in new for call in message.calls]
    usage = sum((message.usage for message in new), base.usage)
    paths = {ref.path for ref in base.transcripts}
    models = dict.fromkeys((*base.models, *(message.model for message in new if message.model)))
    return replace(
        base,
        title=base.title or other.title,
        started=min(base.started, other.started),
        ended=max(base.ended, other.ended),
        turns=turns,
        subagents=base.subagents + agents,
        models=tuple(models),
        usage=usage,
        api_calls=base.api_calls + sum(message.usage != Usage() for message in new),
        slash_commands=sum(deed.kind == "slash_command" for t in turns for deed in t.interventions)
        if added
        else base.slash_commands,
        lines_added=base.lines_added + sum(call.added for call in calls),
        lines_removed=base.lines_removed + sum(call.removed for call in calls),
        compactions=max(base.compactions, other.compactions),
        transcripts=base.transcripts + tuple(r for r in other.transcripts if r.path not in paths),
        problems=(*base.problems, *other.problems),
        declared_tools=unique((base.declared_tools or ()) + (other.declared_tools or ())) or UNSET,
        base_commit=base.base_commit or other.base_commit,
        system_prompt=base.system_prompt or other.system_prompt,
        instructions=base.instructions or other.instructions,
        reported_usage=UNSET if new else base.reported_usage,
    )


def _lacking(
    mine: Iterable[_Known], theirs: Iterable[_Known], parts: Callable[[_Known], object]
) -> Callable[[_Known], bool]:
    """Return what decides whether one of theirs is not among mine: by its id, or by ``parts`` too
    where several have that id, as other tools mask ids with one word."""
    mine = list(mine)
    repeated: set[str] = set()
    for items in (mine, theirs):
        counts = Counter(item.id for item in items)
        repeated.update(id for id, times in counts.items() if times > 1)

    def identity(item: _Known) -> object:
        return (item.id, parts(item)) if item.id in repeated else item.id

    known = {identity(item) for item in mine if item.id}
    return lambda item: identity(item) not in known


def _rest(turn: Turn, lacks: Callable[[Message], bool], prompts: set[str]) -> Turn | None:
    """Return a turn without the messages that are known; None when nothing is left of it.

    A prompt on which nothing else was said is known when its words are, whatever time the copy
    gives it, and whether or not it was still queued there.
    """
    messages = tuple(filter(lacks, turn.messages))
    if messages:
        return replace(turn, messages=messages)
    if turn.prompt in prompts or (turn.number == 0 and not turn.interventions):
        return None
    return replace(turn, messages=messages)


def _merged(base: tuple[Turn, ...], added: list[Turn]) -> tuple[tuple[Turn, ...], list[Message]]:
    """Put turns into others by prompt and time; return all of them and the messages that are new.

    A message without an id is known by its turn alone, so a turn that both have brings none.
    """
    turns = {_key(turn): turn for turn in base}
    new: list[Message] = []
    for turn in added:
        key = _key(turn)
        mine = turns.get(key)
        if mine is None:
            turns[key] = turn
            new.extend(turn.messages)
            continue
        fresh = tuple(message for message in turn.messages if message.id)
        if fresh:
            new.extend(fresh)
            messages = tuple(_in_time(mine.messages + fresh))
            ended = max((at for at in (mine.ended, turn.ended) if at), default=None)
            turns[key] = replace(mine, messages=messages, ended=ended)
    ordered = _in_time(turns.values())
    numbers = accumulate(int(turn.number > 0) for turn in ordered)
    return tuple(
        replace(turn, number=number) if turn.number else turn
        for turn, number in zip(ordered, numbers, strict=True)
    ), new


def _in_time(items: Iterable[_Timed]) -> list[_Timed]:
    """Return turns or messages by time; as they are when one of them has no time."""
    listed = list(items)
    timed = [(item.at, index) for index, item in enumerate(listed) if item.at is not None]
    return [listed[index] for _, index in sorted(timed)] if len(timed) == len(listed) else listed


def _key(turn: Turn) -> tuple[object, ...]:
    return (turn.number if turn.at is None else turn.at, turn.prompt)
