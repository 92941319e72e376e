"""The sessions stage, from the folders that are searched to the tables of the lake.

Also finds one session: in the lake, in a transcript, or among all transcripts of the machine.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import UNSET
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.sessions.actions import with_actions
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import Session, SessionHead, UnreadTranscript
from debrief.sessions.readers.base import SessionReader
from debrief.sessions.readers.forks import with_turns_of
from debrief.sessions.redaction import redact_rows, redact_session
from debrief.sessions.scanning import (
    Scan,
    ScanEntry,
    is_reported,
    local_entry,
    origins_of,
    shared_entry,
    shared_path,
    with_digest,
)
from debrief.sessions.sources import Redact, read_week, scan
from debrief.sessions.transfer import leave_out_of_mirror

SESSIONS_TABLE, UNREAD_TABLE = "raw_sessions", "unread_transcripts"
SCAN_TABLE, SCAN_PARTITION, GONE_PARTITION = "scan", "transcripts", "gone"
NORMAL_FORM = "15"
"""Raised when readers or redaction give other rows for the same transcripts: all are read again."""
_OWN_TRANSCRIPT = "the session is read from its own transcript"
_ON_THE_SERVER = "the session is read from its source's server"


PlanOf = Callable[[Session | SessionHead], str]
"""Returns the plan that a session's capture holds; empty where it holds none."""


def no_plan(session: Session | SessionHead) -> str:
    """Return no plan: for a source of sessions that has no captures."""
    return ""


def sessions_of(lake: Lake) -> str:
    """Return the name by which ``only_writer`` keeps the tables of a lake's sessions, alone.

    Reading asks no model, so it may go on while a run has the lake. Who forgets takes both.
    """
    return f"{lake.url}/{SESSIONS_TABLE}"


class SessionServer(Protocol):
    """A source of sessions that is no folder."""

    source: str

    def scan(self, lake: Lake, redactor: Redactor) -> Sequence[ScanEntry]:
        """Return what it has; of one that is away, what it had and why there is no more."""
        ...

    def reader(self, lake: Lake, entries: Sequence[ScanEntry], redactor: Redactor) -> SessionReader:
        """Bring the sessions of ``entries`` here, and return what reads them."""
        ...


def scan_into(
    lake: Lake, folders: Sequence[Path], redactor: Redactor, servers: Iterable[SessionServer] = ()
) -> Scan:
    """Search ``folders``, opening only what changed since the lake's last scan, and file it.

    No name and no id in it holds a secret.

    A server's session of which there is a transcript is read from the transcript, which has
    more: the server's entry says so. But a file of the server's own kind is a copy of what the
    server has, and the copy's entry says so.

    What was forgotten is not in it, nor are other copies of it.
    """
    origins, forgotten = origins_of(folders), Forgotten.of(lake, redactor)
    remembered = [
        replace(entry, reason="", expected=False) if entry.reason == _ON_THE_SERVER else entry
        for partition in (SCAN_PARTITION, GONE_PARTITION)
        for row in lake.read(SCAN_TABLE, partition, ScanEntry)
        for entry in [local_entry(row, origins)]
    ]
    clean = partial(redact_rows, redactor=redactor)
    found = scan(folders, remembered, origins=origins, redact_rows=clean)
    if forgotten:
        found = _without(found, forgotten)
    for server in servers:
        there = redact_rows(server.scan(lake, redactor), redactor)
        there = [entry for entry in there if not forgotten.has(entry)]
        ids = {entry.session_id for entry in there if entry.session_id}
        here = [
            _elsewhere(entry, _ON_THE_SERVER)
            if entry.source == server.source and entry.session_id in ids
            else entry
            for entry in found.entries
        ]
        ids = {entry.session_id for entry in here if entry.session_id}
        for entry in there:
            own = entry.session_id in ids
            here.append(_elsewhere(entry, _OWN_TRANSCRIPT) if own else entry)
        found = replace(found, entries=tuple(here))
    if found.gone or lake.stamp(SCAN_TABLE, GONE_PARTITION) is not None:
        gone = [shared_entry(entry, origins) for entry in found.gone]
        lake.write(SCAN_TABLE, GONE_PARTITION, gone, ScanEntry)
    shared = [shared_entry(entry, origins) for entry in found.entries]
    lake.write(SCAN_TABLE, SCAN_PARTITION, shared, ScanEntry)
    return found


def _without(found: Scan, forgotten: Forgotten) -> Scan:
    """Return a scan without the sessions that were forgotten, whole with all of their copies.

    A copy of one that was brought here from a store is removed, and not brought here again.
    """

    def is_forgotten(entry: ScanEntry) -> bool:
        return forgotten.has(shared_entry(entry, found.origins))

    gone = {e.session_id for e in (*found.entries, *found.gone) if e.session_id and is_forgotten(e)}

    def stays(entry: ScanEntry) -> bool:
        return not (entry.session_id in gone or is_forgotten(entry))

    needed = {file.path for entry in filter(stays, found.entries) for file in entry.files}
    left_out = (file.path for entry in found.entries if not stays(entry) for file in entry.files)
    for path in (path for path in left_out if path not in needed):
        leave_out_of_mirror(found.origins, found.real_paths.get(path, path))
    return replace(
        found,
        entries=tuple(filter(stays, found.entries)),
        gone=tuple(filter(stays, found.gone)),
    )


def _elsewhere(entry: ScanEntry, reason: str) -> ScanEntry:
    """Return the entry of a session that is not read from it."""
    return replace(entry, session_id="", version="", reason=reason, expected=True)


def store_week(
    lake: Lake,
    found: Scan,
    week: str,
    redactor: Redactor,
    servers: Iterable[SessionServer] = (),
    *,
    plan_of: PlanOf = no_plan,
    again: bool = False,
) -> bool:
    """Read a week's transcripts into the lake; True when nothing had to be read.

    Sessions stream through: memory is bounded by the largest, not by the week. What was read of
    transcripts that are gone since then stays.

    Args:
        lake: where the tables are.
        found: what there is to read.
        week: the week to read.
        redactor: takes the secrets out.
        servers: bring the sessions that are in no folder.
        plan_of: finds the plan of a session.
        again: read what has not changed too.
    """
    made_from = read_from(found, week, redactor)
    stamp = lake.stamp(SESSIONS_TABLE, week)
    heads = {head.id: head for head in lake.read(SESSIONS_TABLE, week, SessionHead)}
    if not again and stamp is not None and stamp.inputs == made_from:
        plans = ((head, plan_of(head)) for head in heads.values())
        if all(not plan or digest_of(plan) == head.plan_digest for head, plan in plans):
            return True
    readers: dict[str, SessionReader] = {}
    for server in servers:
        entries = [e for e in found.of_week(week) if e.source == server.source and e.is_on_server]
        readers[server.source] = server.reader(lake, entries, redactor)
    unread: list[UnreadTranscript] = []
    paths = _paths(found)

    def kept(session: Session) -> Session:
        refs = session.transcripts
        shared = tuple(replace(ref, path=shared_path(ref.path, found.origins)) for ref in refs)
        now = with_plan(replace(session, transcripts=shared), plan_of)
        now = redact_session(now, redactor)
        head = heads.get(now.id)
        if head is None:
            return now
        return redact_session(_whole(lake, week, now, head, paths), redactor)

    def read() -> Iterator[Session]:
        for item in read_week(found, week, kept, servers=readers):
            if isinstance(item, Session):
                yield item
            else:
                unread.append(replace(item, path=shared_path(item.path, found.origins)))

    def sessions() -> Iterator[Session]:
        lasting = _outlasting(lake, found, week, heads, redactor, plan_of)
        yield from heapq.merge(read(), lasting, key=lambda row: (row.started, row.id))

    def final() -> str:
        lake.write(UNREAD_TABLE, week, redact_rows(unread, redactor), UnreadTranscript)
        return made_from if all(row.expected for row in unread) else ""

    lake.write(SESSIONS_TABLE, week, sessions(), Session, final)
    return False


def _outlasting(
    lake: Lake,
    found: Scan,
    week: str,
    heads: Mapping[str, SessionHead],
    redactor: Redactor,
    plan_of: PlanOf,
) -> Iterator[Session]:
    """Yield the stored sessions of a week whose transcripts are gone, by today's redaction.

    Agents delete their transcripts after some weeks, and a server may be away or no longer asked;
    what was read once stays. It goes with its file in the lake, and not before.
    """
    ids = {entry.session_id for entry in found.entries}
    paths = {shared_path(entry.path, found.origins) for entry in found.entries}
    kept = {
        head.id
        for head in heads.values()
        if head.id not in ids and not any(ref.path in paths for ref in head.transcripts)
    }
    for stored in lake.read(SESSIONS_TABLE, week, Session, ("id", kept)) if kept else ():
        planned = with_plan(stored, plan_of)
        yield with_digest(with_actions(redact_session(planned, redactor)))


def with_plan(session: Session, plan_of: PlanOf) -> Session:
    """Return a session with the plan that its capture holds; without one it stays as it is."""
    plan = plan_of(session)
    return replace(session, plan=plan, plan_digest=digest_of(plan)) if plan else session


def _whole(
    lake: Lake, week: str, session: Session, head: SessionHead, paths: frozenset[str]
) -> Session:
    """Return a session with what was read of those of its transcripts that are gone.

    What was read of it from another source is not mixed with this reading. A plan stays when its
    capture is gone.

    Args:
        lake: has it as it was read before.
        week: of the session.
        session: as it is read now.
        head: of what the lake has.
        paths: of all files that are here.
    """
    now = {(ref.path, ref.digest) for ref in session.transcripts}
    digests = {digest for _, digest in now}
    gone = {
        ref.path for ref in head.transcripts if ref.path not in paths and ref.digest not in digests
    }
    lost_plan = head.plan_digest is not UNSET and session.plan_digest is UNSET
    if head.source != session.source or not (gone or lost_plan):
        return session
    stored = next(lake.read(SESSIONS_TABLE, week, Session, ("id", {head.id})), None)
    if stored is None:  # its row is damaged
        return session
    if lost_plan:
        session = replace(session, plan=stored.plan, plan_digest=stored.plan_digest)
    if not gone:
        return session
    if now <= {(ref.path, ref.digest) for ref in stored.transcripts}:
        return replace(stored, plan=session.plan, plan_digest=session.plan_digest, digest="")
    earlier = replace(
        stored,
        transcripts=tuple(ref for ref in stored.transcripts if ref.path in gone),
        problems=tuple(problem for problem in stored.problems if problem.path in gone),
    )
    both = with_turns_of(session, earlier)
    if (both.turns, both.subagents) == (session.turns, session.subagents):
        return session
    return replace(
        both,
        redactions=max(session.redactions, stored.redactions),
        unsure_redactions=max(session.unsure_redactions, stored.unsure_redactions),
    )


def _paths(found: Scan) -> frozenset[str]:
    return frozenset(
        shared_path(path, found.origins)
        for entry in found.entries
        for path in (entry.path, *(stamp.path for stamp in entry.companions))
    )


def read_from(found: Scan, week: str, redactor: Redactor) -> str:
    """Return a digest of all that a week's stored sessions are made from."""
    stand = redactor.placeholder("key", "") if redactor.people is None else redactor.identity
    return digest_of(NORMAL_FORM, stand, found.digest(week))


def weeks_in(lake: Lake) -> set[str]:
    """Return the weeks of a lake's sessions, and of the transcripts that were found so far."""
    found = lake.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry)
    return {entry.week for entry in found if is_reported(entry)} | {
        *lake.partitions(SESSIONS_TABLE)
    }


def weeks_of_sessions(lake: Lake, sessions: Collection[str]) -> list[str]:
    """Return the weeks in which sessions of a lake are."""
    return [
        week
        for week in lake.partitions(SESSIONS_TABLE)
        if any(lake.read(SESSIONS_TABLE, week, SessionHead, ("id", sessions)))
    ]


def transcripts_of(lake: Lake, week: str) -> set[str]:
    """Return the paths that a week's stored sessions were read from."""
    heads = lake.read(SESSIONS_TABLE, week, SessionHead)
    return {transcript.path for head in heads for transcript in head.transcripts}


_SHORTEST = 6
_MOST_SHOWN = 5


def session_in_lake(lake: Lake, prefix: str) -> Session | None:
    """Return the session with that id, or with the only id that begins so; None without one.

    Args:
        lake: with a ``raw_sessions`` table.
        prefix: an id, or at least six characters of its beginning.

    Raises:
        InputError: several ids begin so.
    """
    weeks: dict[str, str] = {}
    for week in lake.partitions(SESSIONS_TABLE):
        for head in lake.read(SESSIONS_TABLE, week, SessionHead):
            weeks[head.id] = week
    found = only_one(prefix, weeks)
    if found is None:
        return None
    return next(lake.read(SESSIONS_TABLE, weeks[found], Session, ("id", {found})), None)


def sessions_of_lake(lake: Lake) -> Iterator[Session]:
    """Yield all sessions of a lake, week by week."""
    for week in lake.partitions(SESSIONS_TABLE):
        yield from lake.read(SESSIONS_TABLE, week, Session)


def session_in_file(path: Path, redact: Redact) -> Session:
    """Return the session that a transcript belongs to, its other files beside it included.

    Raises:
        InputError: it holds no session, and why.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  (takes `..` away, follows no link)
    found = scan([path.parent])
    owners = (e for e in found.entries if str(path) in {file.path for file in e.files})
    entry = next(owners, None)
    if entry is None:
        raise InputError(str(path), "is no transcript of a tool that is known")
    if not entry.session_id:
        raise InputError(str(path), entry.reason)
    return _read(found, entry.session_id, redact)


def session_in_folders(folders: Iterable[Path], prefix: str, redact: Redact) -> Session | None:
    """Return the session with that id, or with the only one that begins so; None without one.

    Raises:
        InputError: several ids begin so, or it cannot be read.
    """
    found = scan(folders)
    name = only_one(prefix, {entry.session_id for entry in found.entries if entry.session_id})
    return None if name is None else _read(found, name, redact)


def sessions_in_folder(folder: Path, redact: Redact) -> Iterator[Session]:
    """Yield all sessions whose transcripts lie below a folder; what cannot be read is left out."""
    found = scan([folder])
    for week in found.weeks():
        for item in read_week(found, week, redact):
            if isinstance(item, Session):
                yield item


def only_one(prefix: str, ids: Iterable[str]) -> str | None:
    """Return the id that is ``prefix``, or the only one that begins so; None without one.

    Raises:
        InputError: several begin so, or it is too short for the one that does.
    """
    ids = set(ids)
    if prefix in ids:
        return prefix
    begin = sorted(each for each in ids if each.startswith(prefix))
    if not begin:
        return None
    if len(prefix) < _SHORTEST:
        reason = f"is too short: {_SHORTEST} characters of a session's id are needed"
        raise InputError(prefix, reason, "Write more of it.")
    if len(begin) > 1:
        shown = ", ".join(begin[:_MOST_SHOWN])
        reason = f"begins {len(begin)} sessions' ids: {shown}"
        raise InputError(prefix, reason, "Write more of it.")
    return begin[0]


def _read(found: Scan, session_id: str, redact: Redact) -> Session:
    group = tuple(entry for entry in found.entries if entry.session_id == session_id)
    reason = ""
    for item in read_week(Scan(group), group[0].week, redact):
        if isinstance(item, Session):
            return item
        reason = reason or item.reason
    raise InputError(session_id, reason or "cannot be read")
