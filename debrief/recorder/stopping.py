"""The end of a session: its record is made once, and then sent, or written to a file.

Before the record is stored, a stop that fails or is killed leaves the session as it was. From then
on it never changes, so that however often it is sent, a server has it once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from msgspec import Struct, structs

from debrief.errors import InputError
from debrief.files import write_durably
from debrief.git import find_commit
from debrief.recorder.assembly import build_record
from debrief.recorder.checks import ReadyRule, problems_of, readiness
from debrief.recorder.client import Receipt, RecorderClient
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.repository import QUIET
from debrief.recorder.sending import check_task_name, send_or_wait
from debrief.recorder.session import OpenSession, check_text, opened, utc_now
from debrief.recorder.state import HELD, RECORD, RecorderHome, SessionFacts, StopOptions
from debrief.redaction import Redactor

_DEFAULT = StopOptions()


class Stopped(Struct, frozen=True, kw_only=True):
    """A session that is over."""

    record: Record
    size: int
    """Bytes of the record."""
    not_ready: tuple[str, ...]
    """Why the record may not train a model; empty when it may."""
    made_before: bool
    """An earlier stop made the record, and it is as it was then."""
    receipt: Receipt | None
    """The server's answer; None if it was written to a file."""


class HeldError(InputError):
    """A record was made that is not to leave the machine; its session goes on."""


def stop(
    home: RecorderHome,
    folder: Path,
    to: RecorderClient | Path,
    *,
    redactor: Redactor,
    rule: ReadyRule,
    options: StopOptions = _DEFAULT,
    clock: Callable[[], datetime] = utc_now,
) -> Stopped:
    """Stop the session of the worktree that ``folder`` lies in.

    Args:
        home: the recorder's folders.
        folder: anywhere in the worktree.
        to: the server that the record is sent to, or the file that it is written to.
        redactor: replaces secrets.
        rule: what a record needs before it may train a model.
        options: how the record is made, and what becomes of it.
        clock: returns the time.

    Raises:
        InputError: no session, nothing happened in it, its record cannot be made, or the file is
            there: the session goes on. ``HeldError`` is one of them.
        WaitingError: it is over, and its record waits to be sent.
    """
    if options.summary is not None:
        check_text("the summary", options.summary)
    if options.create_task is not None:
        check_task_name(options.create_task)
    with opened(home, folder) as session:
        earlier = session.folder.record()
        if isinstance(to, Path):
            _check_file(to, earlier)
        data = earlier
        if data is None:
            scratch = home.scratch(session.worktree)
            data = _stored(session, record_so_far(session, redactor, clock(), options, scratch))
        receipt = None
        if isinstance(to, Path):
            write_durably(to, data)
            home.remove(session.folder)
        else:
            session.folder.write_stop_options(options)
            receipt = send_or_wait(home, session.folder, to)
    record = decode_record(data)
    return Stopped(
        record=record,
        size=len(data),
        not_ready=tuple(readiness(record, rule)),
        made_before=earlier is not None,
        receipt=receipt,
    )


def record_so_far(
    session: OpenSession,
    redactor: Redactor,
    stopped_at: datetime,
    options: StopOptions = _DEFAULT,
    scratch: Path | None = None,
) -> Record:
    """Return the record of a session as if it were stopped now; nothing is stored.

    Args:
        session: the session.
        redactor: replaces secrets.
        stopped_at: when that is.
        options: how the record is made.
        scratch: a folder for temporary files; the machine's usual one by default.

    Raises:
        InputError: the commit that it began at is gone, or no record can hold what was done.
    """
    started = session.folder.started()
    facts = SessionFacts(
        **{
            **structs.asdict(started),
            "ignore": (*started.ignore, *options.ignore),
            "stopped_at": max(stopped_at, started.started_at),
            "commands": tuple(session.folder.commands()),
            "summary": options.summary,
        }
    )
    if find_commit(session.worktree, facts.base_ref, QUIET) is None:
        raise InputError(
            str(session.worktree),
            f"no longer has the commit that the session began at, {facts.base_ref}",
            "Fetch it from where it still is (git fetch REMOTE COMMIT), or give the session up: "
            "debrief record discard",
        )
    return build_record(session.worktree, facts, redactor, scratch)


def _stored(session: OpenSession, record: Record) -> bytes:
    """Store a session's record; from here on it never changes."""
    meta = record.meta
    if not (meta.changes or meta.commands):
        left_out = f"; {len(meta.skipped):,} changed paths are left out" if meta.skipped else ""
        raise InputError(
            str(session.worktree),
            f"nothing was changed and no command was run since the session began{left_out}",
            "Go on, or give it up: debrief record discard",
        )
    data = encode_record(record)
    if not meta.verified:
        why = "; ".join(meta.warnings) or "it does not rebuild the changes"
        held = session.folder.path / HELD
        write_durably(held, data)
        raise HeldError(
            str(held),
            f"is held on this machine: {why}",
            "Mend that, or leave a file out with --ignore, and stop again; or give the session "
            "up: debrief record discard",
        )
    if problems := problems_of(decode_record(data)):
        raise InputError("the record", f"would be refused: {'; '.join(problems)}", "Report this.")
    write_durably(session.folder.path / RECORD, data)
    return data


def _check_file(file: Path, data: bytes | None) -> None:
    if not file.parent.is_dir():
        raise InputError(str(file.parent), "is no folder", "Make it, or name another file.")
    if file.exists() or file.is_symlink():
        if data is not None and file.is_file() and file.read_bytes() == data:
            return
        raise InputError(str(file), "is there already", "Name another file.")
