"""Records that wait for a server: none is lost, and each is stored once."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from msgspec import Struct, structs
from pydantic import ValidationError

from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.recorder.client import (
    Receipt,
    RecorderAwayError,
    RecorderClient,
    RecorderRefusedError,
    client_of,
)
from debrief.recorder.contracts import NewTask
from debrief.recorder.encoding import decode_record
from debrief.recorder.state import RECORD, RecorderHome, SessionFolder
from debrief.retry import RetryPolicy
from debrief.settings import Settings

UPLOAD = "debrief record upload"


class WaitingError(DebriefError):
    """A session is over, and its record waits to be sent."""


class OutboxResult(Struct, frozen=True, kw_only=True):
    """The outcome of sending a record that waited."""

    session_id: str
    receipt: Receipt | None = None
    error: DebriefError | None = None
    """Why it still waits."""


def send_or_wait(home: RecorderHome, session: SessionFolder, server: RecorderClient) -> Receipt:
    """Send the record of a stopped session; move it to the outbox if the server is away or refuses.

    Raises:
        WaitingError: it waits; says why.
    """
    try:
        return _send(home, session, server)
    except (RecorderAwayError, RecorderRefusedError) as error:
        raise _waiting(home, session, error) from error
    except KeyboardInterrupt:
        if not session.exists:
            raise
        raise _waiting(home, session, DebriefError("sending it", "was interrupted")) from None


def _waiting(home: RecorderHome, session: SessionFolder, error: DebriefError) -> WaitingError:
    waiting = home.move_to_outbox(session, session.started().id)
    reason = f"was not sent and waits: {error.culprit}: {error.reason}"
    move = error.next_move
    if UPLOAD not in move:
        move = f"{move} {'Then' if move else 'Later'} send it with: {UPLOAD}".lstrip()
    return WaitingError(str(waiting.path / RECORD), reason, move)


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
        name = _id(session) or session.path.name
        try:
            with home.lock_session(session, name):
                if create_task is not None:
                    options = structs.replace(session.stop_options(), create_task=create_task)
                    session.write_stop_options(options)
                receipt = _send(home, session, server)
        except RecorderAwayError as error:
            yield OutboxResult(session_id=name, error=error)
            return
        except DebriefError as error:
            yield OutboxResult(session_id=name, error=error)
        else:
            yield OutboxResult(session_id=name, receipt=receipt)


def check_task_name(name: str) -> None:
    """Refuse a name that no task can have.

    Raises:
        InputError: says what is wrong with it.
    """
    try:
        NewTask(id="task", name=name)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise InputError("--create-task", f"is no task's name: {reason}") from error


def forget(home: RecorderHome, name: str) -> bool:
    """Remove a session that waits or is under way; False: there is none.

    Args:
        home: the recorder's folders.
        name: its id, or its folder's name if its files cannot be read.

    Raises:
        InputError: another process is using it.
    """
    for session in (*home.waiting(), *home.opened()):
        if name in (session.path.name, _id(session)):
            with home.lock_session(session, name):
                home.remove(session)
            return True
    return False


def _id(session: SessionFolder) -> str:
    try:
        return session.started().id
    except InputError:
        return ""


def _send(home: RecorderHome, session: SessionFolder, server: RecorderClient) -> Receipt:
    data, options = session.record(), session.stop_options()
    if data is None:
        raise InputError(str(session.path), "holds no record")
    meta = decode_record(data).meta
    if options.create_task is not None:
        server.ensure_task(meta.task_id, options.create_task)
    receipt = server.send(data, meta)
    if options.ready:
        try:
            receipt = server.mark_ready(str(meta.session_id))
        except RecorderRefusedError as error:
            # Being no more than a draft is no reason to send it again.
            reasons = receipt.not_ready or tuple(error.reasons)
            receipt = structs.replace(receipt, not_ready=reasons)
    if options.keep:
        home.keep(str(meta.session_id), data)
    home.remove(session)
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
    next_move = (
        f"Whether task {task_id} is there is not known; a record that cannot be sent at the end "
        "waits here."
    )
    errors: list[DebriefError | None] = []
    # Looking a name up knows no time limit, and the thread is left behind with it.
    asking = threading.Thread(
        target=lambda: errors.append(_check(server, task_id, next_move)), daemon=True
    )
    asking.start()
    asking.join(seconds)
    return (
        errors[0] if errors else RecorderAwayError(server.url, "gave no answer in time", next_move)
    )


def _check(server: RecorderClient, task_id: str, next_move: str) -> DebriefError | None:
    with server:
        try:
            if server.has_task(task_id):
                return None
        except RecorderAwayError as error:
            return RecorderAwayError(server.url, error.reason, next_move)
        except RecorderRefusedError as error:
            return None if error.status == _SCOPE_IS_MISSING else error
    return RecorderRefusedError(
        server.url,
        [f"has no task {task_id} yet"],
        "Make it there at the end: debrief record stop --create-task NAME",
    )
