"""The end of a session: its record is made once, and then sent, written to a file, or waits.

Before the record is stored, a stop that fails or is killed leaves the session as it was. From then
on it never changes, so that however often it is sent, a server has it once, and none is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

from msgspec import Struct, structs
from pydantic import ValidationError

from debrief.errors import ConfigurationError, DebriefError, InputError, first_problem
from debrief.files import write_durably
from debrief.recorder.assembly import build_record
from debrief.recorder.checks import ReadyRule, problems_of, readiness
from debrief.recorder.client import (
    MAKE_TASK,
    Receipt,
    RecorderAwayError,
    RecorderClient,
    RecorderRefusedError,
    client_of,
)
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.local_session import SentRecord, SessionFacts, StopOptions
from debrief.recorder.messages import calls_of
from debrief.recorder.repository import base_of
from debrief.recorder.session import check_text, opened, utc_now
from debrief.recorder.state import LocalSession, RecorderHome
from debrief.recorder.storage.rows import NewTask
from debrief.redaction import Redactor
from debrief.retry import RetryPolicy
from debrief.settings import Settings

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
        earlier = session.record()
        if isinstance(to, Path):
            _check_file(to, earlier)
        data = earlier
        if data is None:
            data = _stored(session, record_so_far(session, redactor, clock(), options))
        receipt = None
        if isinstance(to, Path):
            write_durably(to, data)
            home.remove(session)
        else:
            session.set_stop_options(options)
            receipt = send_or_wait(session, to)
    record = decode_record(data)
    return Stopped(
        record=record,
        size=len(data),
        not_ready=receipt.not_ready if receipt else tuple(readiness(record, rule)),
        made_before=earlier is not None,
        receipt=receipt,
    )


def record_so_far(
    session: LocalSession,
    redactor: Redactor,
    stopped_at: datetime,
    options: StopOptions = _DEFAULT,
) -> Record:
    """Return the record of a session as if it were stopped now; nothing is stored.

    Args:
        session: the session.
        redactor: replaces secrets.
        stopped_at: when that is.
        options: how the record is made.

    Raises:
        InputError: the commit that it began at is gone, or no record can hold what was done.
    """
    started = session.started
    facts = SessionFacts(
        **{
            **structs.asdict(started),
            "ignore": (*started.ignore, *options.ignore),
            "stopped_at": max(stopped_at, started.started_at),
            "commands": tuple(session.commands()),
            "summary": options.summary,
            "accept_skipped": options.accept_skipped,
        }
    )
    base = base_of(session.worktree, facts.base_ref, started.reflog_size)
    facts = structs.replace(facts, base_ref=base.commit, others=base.others)
    return build_record(session.worktree, facts, redactor, session.blobs())


def _stored(session: LocalSession, record: Record) -> bytes:
    """Store a session's record; from here on it never changes."""
    meta = record.meta
    if not (meta.changes or any(calls_of(record))):
        left_out = f"; {len(meta.skipped):,} changed paths are left out" if meta.skipped else ""
        raise InputError(
            str(session.worktree),
            f"nothing was changed and no command was run since the session began{left_out}",
            "Go on, or give it up: debrief record discard",
        ).known_as("nothing-recorded")
    data = encode_record(record)
    if not meta.verified:
        why = "; ".join(meta.warnings) or "it does not rebuild the changes"
        raise HeldError(
            "the record",
            f"is held on this machine: {why}",
            "Mend that, or leave a file out with --ignore, and stop again; or give the session "
            "up: debrief record discard",
        ).known_as("held", reasons=meta.warnings)
    if problems := problems_of(decode_record(data)):
        raise InputError("the record", f"would be refused: {'; '.join(problems)}", "Report this.")
    session.set_record(data)
    return data


def _check_file(file: Path, data: bytes | None) -> None:
    if not file.parent.is_dir():
        raise InputError(str(file.parent), "is no folder", "Make it, or name another file.")
    if file.exists() or file.is_symlink():
        if data is not None and file.is_file() and file.read_bytes() == data:
            return
        error = InputError(str(file), "is there already", "Name another file.")
        raise error.known_as("file-exists")


UPLOAD = "debrief record upload"


class WaitingError(DebriefError):
    """A session is over, and its record waits to be sent."""


class OutboxResult(Struct, frozen=True, kw_only=True):
    """The outcome of sending a record that waited."""

    session_id: str
    receipt: Receipt = Receipt(status="")
    error: DebriefError | None = None
    """Why it still waits."""


def send_or_wait(session: LocalSession, server: RecorderClient) -> Receipt:
    """Send the record of a stopped session; have it wait if the server is away or refuses.

    Raises:
        WaitingError: it waits; says why.
    """
    try:
        return _send(session, server)
    except (RecorderAwayError, RecorderRefusedError) as error:
        raise _waiting(session, error) from error
    except KeyboardInterrupt:
        if session.record() is None:
            raise
        raise _waiting(session, DebriefError("sending it", "was interrupted")) from None


def _waiting(session: LocalSession, error: DebriefError) -> WaitingError:
    session.wait_for_server()
    reason = f"was not sent and waits: {error.culprit}: {error.reason}"
    move = error.next_move
    if UPLOAD not in move:
        move = f"{move} {'Then' if move else 'Later'} send it with: {UPLOAD}".lstrip()
    kept = WaitingError(f"record {session.id}", reason, move)
    return kept.known_as(error.code, **{**error.facts, "sessionId": session.id, "kept": True})


def send_waiting(
    home: RecorderHome, server: RecorderClient, create_task: str | None = None
) -> Iterator[OutboxResult]:
    """Send every record that was not sent yet, and yield the outcome.

    A server that is away is not asked again; one that refuses a record may take the next one.

    Args:
        home: the recorder's folders.
        server: that they are sent to.
        create_task: name for tasks that are not there yet.

    Raises:
        InputError: no task can have that name.
    """
    if create_task is not None:
        check_task_name(create_task)
    for session in home.unsent():
        try:
            is_under_way = home.session(session.worktree) == session
            with home.lock_worktree(session.worktree) if is_under_way else nullcontext():
                if create_task is not None and (options := session.stop_options()):
                    session.set_stop_options(structs.replace(options, create_task=create_task))
                receipt = _send(session, server)
        except RecorderAwayError as error:
            yield OutboxResult(session_id=session.id, error=error)
            return
        except DebriefError as error:
            yield OutboxResult(session_id=session.id, error=error)
        else:
            yield OutboxResult(session_id=session.id, receipt=receipt)


def check_task_name(name: str) -> None:
    """Refuse a name that no task can have.

    Raises:
        InputError: says what is wrong with it.
    """
    try:
        NewTask(id="task", name=name)
    except ValidationError as error:
        _, reason = first_problem(error)
        raise InputError("--create-task", f"is no task's name: {reason}") from error


def forget(home: RecorderHome, session_id: str) -> bool:
    """Remove a session that waits or is under way; False: there is none.

    Raises:
        InputError: another process is using it.
    """
    for session in home.opened():
        if session.id == session_id:
            with home.lock_worktree(session.worktree):
                home.remove(session)
            return True
    waiting = [session for session in home.waiting() if session.id == session_id]
    for session in waiting:
        with home.lock_record(session_id):
            if session.record() is None:
                raise _sent_meanwhile(session_id)
            home.remove(session)
    return bool(waiting)


def _sent_meanwhile(session_id: str) -> InputError:
    return InputError(session_id, "was sent by another process just now").known_as("busy")


def _send(session: LocalSession, server: RecorderClient) -> Receipt:
    """Send a record that nobody removes meanwhile, and remember that."""
    with session.home.lock_record(session.id):
        return _sent(session, server)


def _sent(session: LocalSession, server: RecorderClient) -> Receipt:
    data, options = session.record(), session.stop_options()
    if data is None or options is None:
        raise _sent_meanwhile(session.id)
    meta = decode_record(data).meta
    if options.create_task is not None:
        server.ensure_task(meta.task_id, options.create_task)
    receipt = server.send(data, meta)
    if options.ready:
        try:
            receipt = server.mark(str(meta.session_id))
        except RecorderRefusedError as error:
            # Being no more than a draft is no reason to send it again.
            reasons = receipt.not_ready or tuple(error.reasons)
            receipt = structs.replace(receipt, not_ready=reasons)
    if options.keep:
        session.home.keep(session.id, data)
    sent = SentRecord.of(meta, len(data))
    sent = structs.replace(sent, status=receipt.status, not_ready=receipt.not_ready)
    session.home.remove(session, structs.replace(sent, server=server.url))
    return receipt


SECONDS = 2.0
"""How long the server has for its answer."""
_SCOPE_IS_MISSING = 403


def preflight_check(
    settings: Settings, task_id: str, seconds: float = SECONDS
) -> DebriefError | None:
    """Ask the server whether an upload would be accepted; return the error, or None.

    Whether the task exists can be asked only with a token that has the scope ``read``.

    Args:
        settings: of this machine.
        task_id: the session's task.
        seconds: after which the question is given up, the look-up of names included.
    """
    if not settings.recorder_url:
        return None
    try:
        server = client_of(settings, "write", RetryPolicy(attempts=1), timeout=seconds)
    except ConfigurationError as error:
        return error
    errors: list[DebriefError] = [RecorderAwayError(server.url, "gave no answer in time")]

    def ask() -> None:
        with server:
            try:
                server.check_task(task_id)
                errors.clear()
            except DebriefError as error:
                errors[:] = [error]

    # Looking a name up knows no time limit, and the thread is left behind with it.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    found = errors[0] if errors else None
    if isinstance(found, RecorderAwayError):
        unknown = f"Whether task {task_id} is there is not known; a record that cannot be sent"
        return RecorderAwayError(server.url, found.reason, f"{unknown} at the end waits here.")
    if isinstance(found, RecorderRefusedError) and found.next_move == MAKE_TASK:
        move = "Make it there at the end: debrief record stop --create-task NAME"
        return RecorderRefusedError(server.url, [f"has no task {task_id} yet"], move)
    is_unable = isinstance(found, RecorderRefusedError) and found.status == _SCOPE_IS_MISSING
    return None if is_unable else found
