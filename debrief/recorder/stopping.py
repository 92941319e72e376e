"""The end of a session: its record is made once, and then sent, or written to a file.

Before the record is filed, a stop that fails or is killed leaves the session as it was. From then
on it never changes, so that however often it is sent, a server has it once.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from msgspec import Struct

from debrief.errors import InputError
from debrief.recorder.baseline import has_commit
from debrief.recorder.checks import ReadyRule, problems_of, readiness
from debrief.recorder.contracts import Record
from debrief.recorder.durable import write_durably
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.outbox import check_task_name, send_or_wait
from debrief.recorder.record import build_record
from debrief.recorder.sending import Receipt, RecorderServer
from debrief.recorder.session import Clock, OpenSession, check_text, opened, utc_now
from debrief.recorder.session_facts import facts_of
from debrief.recorder.state import RecorderHome, Stop
from debrief.redaction import Redactor


class Wish(Struct, frozen=True, kw_only=True):
    """What a person wants of the record."""

    summary: str | None = None
    """Closing words, instead of those made from the facts."""
    ignore: tuple[str, ...] = ()
    """Globs of what to leave out, beside those of the start."""
    stop: Stop = Stop()
    """What is to become of it on the server."""


AS_IT_IS = Wish()


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
    """What the server said of it; None if it was written to a file."""


class HeldError(InputError):
    """A record was made that is not to leave the machine; its session goes on."""


def stop(
    home: RecorderHome,
    folder: Path,
    to: RecorderServer | Path,
    *,
    redactor: Redactor,
    rule: ReadyRule,
    wish: Wish = AS_IT_IS,
    clock: Clock = utc_now,
) -> Stopped:
    """Stop the session of the worktree that ``folder`` lies in.

    Args:
        home: the recorder's folders.
        folder: anywhere in the worktree.
        to: the server that the record is sent to, or the file that it is written to.
        redactor: replaces secrets.
        rule: what a record needs before it may train a model.
        wish: what the person wants of it.
        clock: tells the moment.

    Raises:
        InputError: no session, nothing happened in it, its record cannot be made, or the file is
            there: the session goes on. ``HeldError`` is one of them.
        WaitingError: it is over, and its record waits to be sent.
    """
    if wish.summary is not None:
        check_text("the summary", wish.summary)
    if wish.stop.create_task is not None:
        check_task_name(wish.stop.create_task)
    with opened(home, folder) as session:
        filed = session.folder.record()
        if isinstance(to, Path):
            _check_file(to, filed)
        data = filed
        if data is None:
            scratch = home.scratch(session.worktree)
            so_far = record_so_far(session, redactor, clock(), wish, scratch)
            data = _filed(session, so_far)
        record = decode_record(data)
        receipt = None
        if isinstance(to, Path):
            write_durably(to, data)
            home.remove(session.folder)
        else:
            session.folder.file_stop(wish.stop)
            receipt = send_or_wait(home, session.folder, to)
    return Stopped(
        record=record,
        size=len(data),
        not_ready=tuple(readiness(record, rule)),
        made_before=filed is not None,
        receipt=receipt,
    )


def record_so_far(
    session: OpenSession,
    redactor: Redactor,
    stopped_at: datetime,
    wish: Wish = AS_IT_IS,
    scratch: Path | None = None,
) -> Record:
    """Return the record of a session as if it were stopped now; nothing is filed.

    Args:
        session: the session.
        redactor: replaces secrets.
        stopped_at: when that is.
        wish: what the person wants of the record.
        scratch: a folder for temporary files; the machine's usual one by default.

    Raises:
        InputError: the commit that it began at is gone, or no record can hold what was done.
    """
    facts = facts_of(session.folder, stopped_at, wish.summary, wish.ignore)
    if not has_commit(session.worktree, facts.base_ref):
        raise InputError(
            str(session.worktree),
            f"no longer has the commit that the session began at, {facts.base_ref}",
            "Fetch it from where it still is (git fetch REMOTE COMMIT), or give the session up: "
            "debrief record discard",
        )
    return build_record(session.worktree, facts, redactor, scratch)


def _filed(session: OpenSession, record: Record) -> bytes:
    """File a session's record; from here on it never changes."""
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
        raise HeldError(
            str(session.folder.file_held(data)),
            f"is held on this machine: {why}",
            "Mend that, or leave a file out with --ignore, and stop again; or give the session "
            "up: debrief record discard",
        )
    if problems := problems_of(decode_record(data)):
        raise InputError("the record", f"would be refused: {'; '.join(problems)}", "Report this.")
    session.folder.file_record(data)
    return data


def _check_file(file: Path, data: bytes | None) -> None:
    if not file.parent.is_dir():
        raise InputError(str(file.parent), "is no folder", "Make it, or name another file.")
    if file.exists() or file.is_symlink():
        if data is not None and file.is_file() and file.read_bytes() == data:
            return
        raise InputError(str(file), "is there already", "Name another file.")
