"""Remember what was seen of each transcript, so that the next scan reads only what changed.

Copies, resumptions and parts in other folders are of one session, and a fork is one of its own; see
``readers.forks``. ``sources.scan`` is what searches the folders.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import UNSET, Struct
from msgspec.structs import replace

from debrief.keys import digest_of, week_of
from debrief.sessions.model import Message, Name, Own, Session, UnreadCause, calls_of
from debrief.sessions.readers.files import FileStamp
from debrief.sessions.readers.forks import Branch, leaves_of
from debrief.sessions.readers.values import UNIQUE, is_made_up, time_without_records

MIRRORED_FILES, ORIGIN = "files", "origin"
"""In the folder of a mirror: the files that were brought here, and the address that they are of."""
_NO_TIME = datetime.max.replace(tzinfo=UTC)
_TWIN = "its session's own file is here, which says more"


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
    relative_of: Name = ""
    """The session that its session was forked from; empty when it was not."""
    own_from: Own = ""
    """Of a fork's; see ``Leaf.own_from``."""
    is_copy: bool = False
    """See ``Branch.is_copy``; known of those that others begin like."""
    is_placed: bool = False
    """It was compared with the others that begin alike or tell the same id."""
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
    companions = (
        replace(companion, path=shared_path(companion.path, origins))
        for companion in entry.companions
    )
    return replace(entry, path=path, companions=tuple(companions))


def local_entry(entry: ScanEntry, origins: tuple[MirrorOrigin, ...]) -> ScanEntry:
    """Return an entry, as all machines know it, with the paths of this machine."""
    return shared_entry(entry, tuple(MirrorOrigin(origin.there, origin.here) for origin in origins))


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


def without_twins(
    entries: Iterable[ScanEntry], second_hand: Mapping[str, str]
) -> Iterator[ScanEntry]:
    """Yield entries, those of second-hand sources as no sessions where their own files are here.

    A session's own file tells its id, or lies beside what is kept of it; it may be a subagent's,
    read with its parent. What is kept of that session in other folders is none either.

    Args:
        entries: of all transcripts that are here.
        second_hand: the sources that keep what other programs' files hold; see ``Reader.original``.
    """
    entries = list(entries)
    firsthand = [
        entry
        for entry in entries
        if entry.own_id and not entry.reason and entry.source not in second_hand
    ]
    own = {entry.own_id for entry in firsthand if _is_unique(entry)}
    own.update(id for e in firsthand for stamp in e.companions for id in _ids_in(stamp.path))
    read = {file.path for entry in firsthand for file in entry.files}
    kept = [e for e in entries if e.source in second_hand and e.reason in ("", _TWIN)]
    twins = {
        identity
        for entry in kept
        if entry.own_id in own or _beside(entry.path, second_hand[entry.source]) in read
        for identity in identities(entry)
    }
    kept_paths = {entry.path for entry in kept}
    for entry in entries:
        if entry.path not in kept_paths:
            yield entry
        elif twins.isdisjoint(identities(entry)):
            yield replace(entry, reason="", expected=False)
        else:
            at = entry.own_started or entry.started
            none = replace(entry, session_id="", reason=_TWIN, expected=True)
            yield replace(none, started=at, week=week_of(at))


def _beside(path: str, name: str) -> str:
    """Return the path of a file with that name in the same folder; empty without a name."""
    return str(Path(path).with_name(name)) if name else ""


def _ids_in(path: str) -> list[str]:
    """Return the ids that a file's name has, as those of subagents' own files do."""
    return UNIQUE.findall(Path(path).name)


def identified(
    entries: Iterable[ScanEntry],
    origins: tuple[MirrorOrigin, ...] = (),
    *,
    branch: Callable[[ScanEntry], Branch | None] = lambda entry: None,
    former: Mapping[str, ScanEntry] | None = None,
) -> tuple[ScanEntry, ...]:
    """Give every transcript the session that it belongs to, and that session's first time.

    Transcripts are of one family when they tell the same id, or begin with the same record: a
    checkpoint's copy, a resumption, a part in another folder, a fork. Ids that no tool would give
    to one session alone (``test``, ``REDACTED``) unite only transcripts that begin alike. A family
    is one session, and one more for each fork in it.

    Args:
        entries: of all transcripts, those that are gone too.
        origins: of those that were brought to this machine.
        branch: reads the branch of a transcript; None where it cannot be read. Asked only of
            families in which something changed.
        former: the entries of the last scan, by path: what was a fork then stays one.
    """
    entries = sorted(entries, key=lambda entry: entry.path)
    families = _groups([entry for entry in entries if entry.own_id and not entry.reason])
    settled: dict[str, ScanEntry] = {}
    names: set[str] = set()
    for family in families:
        original = ""
        for session in _sessions_of(family, branch, former or {}):
            name = _name(session, names, origins)
            names.add(name)
            relatives = {entry.relative_of for entry in session}
            own_from = "" if name in relatives else session[0].own_from  # no fork of itself
            original = original or ("" if own_from else name)
            times = [entry.own_started for entry in session if entry.own_started is not None]
            started = min(times or [time_without_records(entry.path) for entry in session])
            for entry in session:
                settled[entry.path] = replace(
                    entry,
                    session_id=name,
                    own_from=own_from,
                    relative_of=(original or entry.relative_of) if own_from else "",
                    started=started,
                    week=week_of(started),
                    is_placed=True,
                )
    return tuple(settled.get(entry.path, entry) for entry in entries)


def _sessions_of(
    family: list[ScanEntry],
    branch: Callable[[ScanEntry], Branch | None],
    former: Mapping[str, ScanEntry],
) -> list[list[ScanEntry]]:
    """Return the transcripts of each session in a family, the original's first."""
    family = [_as_it_was(entry, former.get(entry.path)) for entry in family]
    sessions: list[list[ScanEntry]] = []
    if len(family) == 1 or all(entry.is_placed for entry in family):
        left = family
    else:
        family.sort(key=lambda entry: (entry.own_started or _NO_TIME, entry.path))
        found = {entry.path: branch(entry) for entry in family}
        read = [
            (replace(entry, is_copy=at.is_copy), at)
            for entry in family
            if (at := found[entry.path]) is not None
        ]
        read.sort(key=lambda pair: pair[0].is_copy)
        ids = [entry.own_id if _is_unique(entry) else "" for entry, _ in read]
        for leaf in leaves_of([at for _, at in read], ids):
            members = [read[number][0] for number in leaf.members]
            own_from = leaf.own_from or next((e.own_from for e in members if e.own_from), "")
            sessions.append([replace(entry, own_from=own_from) for entry in members])
        left = [entry for entry in family if found[entry.path] is None]
    for entry in left:
        same = (
            session
            for session in sessions
            if any(_were_one(entry, scan_entry) for scan_entry in session)
        )
        session = next(same, None)
        if session is None:
            sessions.append([entry])
        else:
            session.append(replace(entry, own_from=session[0].own_from))
    return sorted(sessions, key=lambda session: bool(session[0].own_from))


def _as_it_was(entry: ScanEntry, before: ScanEntry | None) -> ScanEntry:
    """Return an entry with what is known of its session; one that was read anew has lost that."""
    if before is None or (before.own_id, before.root) != (entry.own_id, entry.root):
        return entry
    known = (before.session_id, before.relative_of, before.own_from)
    return replace(entry, session_id=known[0], relative_of=known[1], own_from=known[2])


def _were_one(entry: ScanEntry, other: ScanEntry) -> bool:
    """Return whether two transcripts were of one session, as far as is known."""
    if entry.session_id and other.session_id:
        return entry.session_id == other.session_id
    return not (entry.own_from or other.own_from)


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
    if UNIQUE.fullmatch(entry.root) and is_made_up(entry.root):
        known.append(("root", entry.source, entry.root, ""))
    return known


def _is_unique(entry: ScanEntry) -> bool:
    """Return whether an entry's id is one that its tool makes up for one session alone."""
    return is_made_up(entry.own_id) and (not entry.root or bool(UNIQUE.search(entry.own_id)))


def _name(
    session: list[ScanEntry], taken: Collection[str], origins: tuple[MirrorOrigin, ...]
) -> str:
    """Return a session's name: its own id, its original's of several, made unique where needed."""

    def begun(entry: ScanEntry) -> tuple[bool, datetime, str]:
        return entry.is_copy, entry.own_started or _NO_TIME, entry.own_id

    name = min(session, key=begun).own_id
    if name in taken:
        first = min(session, key=lambda entry: entry.path)
        begins = first.own_from or first.root or shared_path(first.path, origins)
        mark = f"{first.source}\n{begins}"
        name = f"{name}-{hashlib.sha256(mark.encode()).hexdigest()[:8]}"
    return name


def with_unique_calls(session: Session) -> Session:
    """Return a session in which no two calls have one id, whatever its transcripts say.

    Threads of one session may use the same ids, as may parts of it that were read apart. What is
    about a call has its new id.
    """
    calls = Counter(call.id for call in calls_of(session))
    if all(count == 1 for count in calls.values()):
        return session
    taken: set[str] = set()

    def unique(messages: tuple[Message, ...], now: dict[str, str]) -> tuple[Message, ...]:
        """Rename calls; ``now`` has what the latest call with an id is named in this thread."""
        renamed = []
        for message in messages:
            context = tuple(
                replace(text, call_id=now.get(text.call_id, text.call_id))
                for text in message.context
            )
            named = []
            for call in message.calls:
                name = call.id
                while name in taken:
                    calls[call.id] += 1
                    name = f"{call.id}-{calls[call.id]}"
                taken.add(name)
                now[call.id] = name
                named.append(replace(call, id=name))
            renamed.append(replace(message, context=context, calls=tuple(named)))
        return tuple(renamed)

    main: dict[str, str] = {}
    turns = tuple(replace(turn, messages=unique(turn.messages, main)) for turn in session.turns)
    agents = tuple(
        replace(agent, messages=unique(agent.messages, {})) for agent in session.subagents
    )
    return replace(session, turns=turns, subagents=agents)


def with_digest(session: Session) -> Session:
    """Return a session with the digest of all that it holds but its status."""
    bare = replace(session, digest="", status=UNSET)
    return replace(session, digest=digest_of(bare))
