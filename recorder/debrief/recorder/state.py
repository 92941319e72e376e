"""The sessions of this machine, on disk so that nothing is lost when a process dies.

Nothing of it is in the repository that is recorded. Below ``<DEBRIEF_HOME>/recorder``::

    open/<digest of the worktree's path>/   a session under way, one a worktree
        session.json                        what it was started with; never changed
        commands/00001.start.json           filed before the command is run, with the changed files
        objects/                            their contents, as git stores them
        commands/00001.output               grows while it runs
        commands/00001.end.json             filed after it ended
        stop.json                           how it is to be stopped
        held.json                           a record that was made and must not leave the machine
        record.json                         the record; from here on it is sent as it is
    outbox/<session id>/                    the same folder, waiting for a server
    kept/<session id>.json                  records that were sent, where that was asked for
    sent/<session id>.json                  what became of each record that was sent
    agreed/<digest>.json                    rules of repositories that the person agreed to
    locks/  scratch/  trash/

Every step between these states is one rename, so that a session is always in exactly one of them.
Texts are as they were typed and printed, secrets included, until the record is made: files can be
read by their owner alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from debrief.errors import InputError
from debrief.files import locked, make_folder, move_folder, sweep, write_durably
from debrief.recorder.contracts import OUTPUT_LIMIT, CommandRules
from debrief.recorder.session_facts import (
    STATE_VERSION,
    CommandEnd,
    CommandStart,
    RanCommand,
    SentRecord,
    Started,
    StopOptions,
)

RECORD, HELD, SESSION, STOP = "record.json", "held.json", "session.json", "stop.json"
OUTPUT_KEPT = 8 * OUTPUT_LIMIT
"""Bytes of a command's output that are kept: more characters than a record takes, in any script,
and room for a secret where the output is cut."""
_SHORT_WAIT = 0.3
"""Seconds in which a process that only reads a session is done with it."""
_INTERRUPTED = "(the recorder was ended while this ran)"

T = TypeVar("T", bound=Struct)


class SessionFolder:
    """The files of one session, wherever the folder is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def objects(self) -> Path:
        """The object store of what files were when commands were started."""
        return self.path / "objects"

    @property
    def exists(self) -> bool:
        """Whether there is a session."""
        return (self.path / SESSION).is_file()

    def started(self) -> Started:
        """Return what the session was started with.

        Raises:
            InputError: the file cannot be read, or a newer version wrote it.
        """
        return _read(self.path / SESSION, Started)

    def stop_options(self) -> StopOptions:
        """Return what was requested at the stop; errors as for ``started``."""
        path = self.path / STOP
        return _read(path, StopOptions) if path.is_file() else StopOptions()

    def write_stop_options(self, options: StopOptions) -> None:
        """Store how the session is to be stopped."""
        write_durably(self.path / STOP, _encode(options))

    def record(self) -> bytes | None:
        """Return the record's exact bytes; None before the session was stopped."""
        path = self.path / RECORD
        return path.read_bytes() if path.is_file() else None

    @property
    def is_to_be_sent(self) -> bool:
        """Whether its record is made, and meant for a server."""
        return (self.path / RECORD).is_file() and (self.path / STOP).is_file()

    def commands(self) -> list[RanCommand]:
        """Return all commands by start; errors as for ``started``."""
        return [self._command(path) for path in self._starts()]

    def add_command(self, start: CommandStart) -> int:
        """Store a command that is about to be run and return its number."""
        earlier = self._starts()
        number = int(earlier[-1].name.partition(".")[0]) + 1 if earlier else 1
        write_durably(self.command_file(number, "start.json"), _encode(start))
        return number

    def command_file(self, number: int, kind: str) -> Path:
        """Return one of a command's files: ``start.json``, ``output`` or ``end.json``."""
        return self.path / "commands" / f"{number:05}.{kind}"

    def end_command(self, number: int, end: CommandEnd) -> None:
        """Store how a command ended."""
        write_durably(self.command_file(number, "end.json"), _encode(end))

    def remove_command(self, number: int) -> None:
        """Remove a command that could not be started."""
        self.command_file(number, "output").unlink(missing_ok=True)
        self.command_file(number, "start.json").unlink(missing_ok=True)

    def _starts(self) -> list[Path]:
        return sorted((self.path / "commands").glob("[0-9]*.start.json"))

    def _command(self, path: Path) -> RanCommand:
        start = _read(path, CommandStart)
        number = int(path.name.partition(".")[0])
        output, last_output = b"", start.started_at
        if (file := self.command_file(number, "output")).is_file():
            output = file.read_bytes()
            modified = datetime.fromtimestamp(file.stat().st_mtime, start.started_at.tzinfo)
            last_output = max(modified, start.started_at)
        end_file = self.command_file(number, "end.json")
        is_over = end_file.is_file()
        unseen = CommandEnd(
            exit_code=None,
            ending=_INTERRUPTED,
            duration_ms=round((last_output - start.started_at).total_seconds() * 1000),
            cut=len(output) >= OUTPUT_KEPT,
        )
        end = _read(end_file, CommandEnd) if is_over else unseen
        return RanCommand(
            cmd=start.cmd,
            args=start.args,
            cwd=start.cwd,
            output=output.decode("utf-8", "replace").replace("\0", "\ufffd"),
            is_over=is_over,
            state=start.state,
            **structs.asdict(end),
        )


class RecorderHome:
    """The recorder's folders on this machine.

    Args:
        home: ``DEBRIEF_HOME``.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / "recorder"

    def session(self, worktree: Path) -> SessionFolder:
        """Return the folder of a worktree's session, whether or not there is one."""
        return SessionFolder(self.path / "open" / _digest(worktree))

    @contextmanager
    def lock_worktree(self, worktree: Path) -> Iterator[None]:
        """Be the only process that changes a worktree's session.

        Raises:
            InputError: another one is at it.
        """
        with locked(self.path / "locks" / _digest(worktree), _SHORT_WAIT) as mine:
            if not mine:
                raise InputError(
                    str(worktree),
                    "another process is at this worktree's session, such as a running command",
                    "Wait for its end, or interrupt it.",
                ).known_as("busy")
            sweep(self.path / "trash")
            sweep(self.scratch(worktree))
            yield

    @contextmanager
    def lock_session(self, session: SessionFolder, name: str) -> Iterator[None]:
        """Be the only process that changes a session, wherever it is; errors call it ``name``.

        Raises:
            InputError: another one is using it, or has just sent it.
        """
        with locked(self.path / "locks" / session.path.name) as mine:
            if not (mine and session.exists):
                error = InputError(name, "another process is using it", "Wait for its end.")
                raise error.known_as("busy")
            yield

    def scratch(self, worktree: Path) -> Path:
        """Return a folder for temporary files, which the next ``lock_worktree`` empties."""
        folder = self.path / "scratch" / _digest(worktree)
        make_folder(folder)
        return folder

    def is_busy(self, worktree: Path) -> bool:
        """Return whether a process is changing the session, as a running command is."""
        with locked(self.path / "locks" / _digest(worktree)) as mine:
            return not mine

    def open(self, worktree: Path, started: Started) -> SessionFolder:
        """Store a new session.

        Raises:
            FileExistsError: the worktree has one.
        """
        folder = self.session(worktree)
        unfinished = folder.path.with_name(f".{folder.path.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        make_folder(unfinished / "commands")
        write_durably(unfinished / SESSION, _encode(started))
        move_folder(unfinished, folder.path)
        return folder

    def opened(self) -> list[SessionFolder]:
        """Return the sessions under way, of all worktrees."""
        return _sessions(self.path / "open")

    def waiting(self) -> list[SessionFolder]:
        """Return the sessions whose records wait for a server."""
        return _sessions(self.path / "outbox")

    def unsent(self) -> list[SessionFolder]:
        """Return those that wait, and those that a stop was ended with while it sent them."""
        return [*self.waiting(), *(each for each in self.opened() if each.is_to_be_sent)]

    def move_to_outbox(self, session: SessionFolder, session_id: str) -> SessionFolder:
        """Move a session with a record into the outbox, unless it is there."""
        target = self.path / "outbox" / session_id
        if session.path != target:
            move_folder(session.path, target)
        return SessionFolder(target)

    def keep(self, session_id: str, record: bytes) -> None:
        """Keep a record's file."""
        self._write("kept", session_id, record)

    def add_sent(self, sent: SentRecord) -> None:
        """Remember a record that a server took."""
        self._write("sent", sent.session_id, _encode(sent))

    def sent(self, most: int) -> list[SentRecord]:
        """Return the records that were sent, the latest first; errors as for ``started``."""
        records = [_read(path, SentRecord) for path in (self.path / "sent").glob("*.json")]
        return sorted(records, key=lambda sent: sent.stopped_at, reverse=True)[:most]

    def has_agreed(self, digest: str) -> bool:
        """Return whether the person agreed to a repository's rules."""
        return (self.path / "agreed" / f"{digest}.json").is_file()

    def agree(self, rules: CommandRules) -> None:
        """Remember that the person saw rules and agreed to them."""
        data = rules.model_dump_json(by_alias=True).encode() + b"\n"
        self._write("agreed", rules.digest, data)

    def _write(self, kind: str, name: str, data: bytes) -> None:
        make_folder(self.path / kind)
        write_durably(self.path / kind / f"{name}.json", data)

    def remove(self, folder: SessionFolder) -> None:
        """End a session: its folder is gone in one step."""
        trash = self.path / "trash" / uuid4().hex
        move_folder(folder.path, trash)
        shutil.rmtree(trash, ignore_errors=True)


def _sessions(folder: Path) -> list[SessionFolder]:
    sessions = [SessionFolder(path) for path in sorted(folder.glob("[!.]*"))]
    return [each for each in sessions if each.exists]


def _digest(worktree: Path) -> str:
    return hashlib.sha256(os.fsencode(worktree)).hexdigest()[:32]


def _encode(value: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"


def _read(path: Path, kind: type[T]) -> T:
    move = "Move the folder away, or discard the session with: debrief record discard"
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=dict[str, object]).get("version", STATE_VERSION)
        if version != STATE_VERSION:
            raise InputError(str(path), f"has version {version}", "Update debrief.")
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise InputError(str(path), f"is not what the recorder wrote: {error}", move) from error
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}", move) from error
