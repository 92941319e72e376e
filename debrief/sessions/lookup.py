"""Finding one session: in the lake, in a transcript, or among all transcripts of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Session
from debrief.sessions.scanning import Scan
from debrief.sessions.sources import read_week, scan
from debrief.sessions.store import SESSIONS_TABLE

Redact = Callable[[Session], Session]

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
    found = _only(prefix, weeks)
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
    path = path.absolute()
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
    name = _only(prefix, {entry.session_id for entry in found.entries if entry.session_id})
    return None if name is None else _read(found, name, redact)


def sessions_in_folder(folder: Path, redact: Redact) -> Iterator[Session]:
    """Yield all sessions whose transcripts lie below a folder; what cannot be read is left out."""
    found = scan([folder])
    for week in found.weeks():
        for item in read_week(found, week, redact):
            if isinstance(item, Session):
                yield item


def _only(prefix: str, ids: Iterable[str]) -> str | None:
    ids = set(ids)
    if prefix in ids:
        return prefix
    begin = sorted(each for each in ids if each.startswith(prefix))
    if len(prefix) < _SHORTEST or not begin:
        return None
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
