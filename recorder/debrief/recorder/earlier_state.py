"""What an earlier version kept in folders, taken over into the database once.

A session was a folder, ``open/<digest of the worktree's path>/`` or ``outbox/<session id>/``, with
``session.json``, ``commands/00001.{start.json,output,end.json}``, git's ``objects/``, ``stop.json``
and ``record.json``. Beside them were ``sent/<session id>.json`` and ``agreed/<digest>.json``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from sqlite3 import Connection, IntegrityError
from typing import TypeVar

import msgspec
from msgspec import Struct

from debrief.errors import DebriefError, InputError
from debrief.files import locked
from debrief.git import git
from debrief.recorder.local_session import (
    CommandEnd,
    CommandStart,
    SentRecord,
    Started,
    StopOptions,
)

FOLDERS = ("open", "outbox", "sent", "agreed", "scratch", "trash")
"""That an earlier version made, and this one does not."""
_SHA1 = 40

T = TypeVar("T", bound=Struct)


def take_over(folder: Path, state: Connection) -> None:
    """Put what is in the recorder's folder into the tables.

    Raises:
        InputError: a file of it cannot be read, an earlier version is at a session, or began one
            where there is one.
    """
    for kind in ("open", "outbox"):
        for path in sorted((folder / kind).glob("[!.]*/session.json")):
            with locked(folder / "locks" / path.parent.name) as mine:
                if not mine:
                    reason = "an earlier version of the recorder is at this session"
                    error = InputError(str(path.parent), reason, "Wait for its end.")
                    raise error.known_as("busy")
                try:
                    _add_session(state, path.parent, waits=kind == "outbox")
                except (DebriefError, OSError, ValueError, IntegrityError) as error:
                    raise _not_taken(path.parent, error) from error
    for path in (folder / "sent").glob("*.json"):
        sent = _read(path, SentRecord)
        row = (sent.session_id, sent.stopped_at.timestamp(), path.read_text())
        state.execute("INSERT OR REPLACE INTO sent VALUES (?, ?, ?)", row)
    for path in (folder / "agreed").glob("*.json"):
        state.execute("INSERT OR REPLACE INTO agreed VALUES (?, ?)", (path.stem, path.read_text()))


def _not_taken(folder: Path, error: Exception) -> InputError:
    """Name the folder of a session that cannot be taken over; the others wait for that as well."""
    if isinstance(error, InputError) and error.culprit.startswith(str(folder)):
        return error
    reason = f"this session of an earlier version cannot be taken over: {error}"
    if isinstance(error, IntegrityError):
        reason = "is a session of an earlier version, and its worktree or id has another one"
    return InputError(str(folder), reason, "Move that folder away, out of the recorder's.")


def _add_session(state: Connection, folder: Path, *, waits: bool) -> None:
    started = _read(folder / "session.json", Started)
    stop, record = _bytes(folder / "stop.json"), _bytes(folder / "record.json")
    if stop is not None:
        _read(folder / "stop.json", StopOptions)
    row = (
        *(started.id, os.fsencode(started.worktree), msgspec.json.encode(started).decode()),
        *(stop and stop.decode(), record, waits),
    )
    state.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)
    ids = set()
    for path in sorted((folder / "commands").glob("*.start.json")):
        number = path.name.partition(".")[0]
        start, end = _read(path, CommandStart), _bytes(path.with_name(f"{number}.end.json"))
        if end is not None:
            _read(path.with_name(f"{number}.end.json"), CommandEnd)
        command = (started.id, int(number), path.read_text(), end and end.decode())
        state.execute("INSERT INTO commands VALUES (?, ?, ?, ?)", command)
        if (output := path.with_name(f"{number}.output")).is_file():
            piece = (started.id, int(number), output.stat().st_mtime, output.read_bytes())
            state.execute("INSERT INTO output VALUES (?, ?, ?, ?)", piece)
        ids |= {file.after.id for file in (start.state.files if start.state else ()) if file.after}
    if ids and record is None:
        _add_blobs(state, started.id, folder / "objects", ids)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _add_blobs(state: Connection, session: str, store: Path, ids: set[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="debrief-record-") as name:
        kind = "sha1" if all(len(id_) == _SHA1 for id_ in ids) else "sha256"
        git(Path(name), "init", "--quiet", "--bare", f"--object-format={kind}")
        where = {"GIT_OBJECT_DIRECTORY": str(store)}
        for id_ in sorted(ids):
            text = git(Path(name), "cat-file", "blob", id_, environment=where).decode()
            state.execute("INSERT INTO blobs VALUES (?, ?, ?)", (session, id_, text))


def _read(path: Path, kind: type[T]) -> T:
    move = "Move the folder that it lies in away."
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.MsgspecError as error:
        raise InputError(str(path), f"is not what the recorder wrote: {error}", move) from error
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}", move) from error
