"""Records that are made and wait for a server: none is lost, and none is there twice."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, structs
from pydantic import ValidationError

from debrief.errors import DebriefError, InputError
from debrief.recorder.client import (
    Receipt,
    RecorderAwayError,
    RecorderClient,
    RecorderRefusedError,
)
from debrief.recorder.contracts import NewTask
from debrief.recorder.encoding import decode_record
from debrief.recorder.state import RECORD, RecorderHome, SessionFolder

UPLOAD = "debrief record upload"


class WaitingError(DebriefError):
    """A session is over, and its record waits to be sent."""


class Sent(Struct, frozen=True, kw_only=True):
    """What became of a record that waited."""

    session_id: str
    receipt: Receipt | None = None
    error: DebriefError | None = None
    """Why it still waits."""


def send_or_wait(home: RecorderHome, session: SessionFolder, server: RecorderClient) -> Receipt:
    """Send the record of a stopped session; put it into the outbox if that cannot be done now.

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
    return WaitingError(
        str(waiting.path / RECORD),
        f"was not sent and waits: {error.culprit}: {error.reason}",
        _next_move(error),
    )


def _next_move(error: DebriefError) -> str:
    if UPLOAD in error.next_move:
        return error.next_move
    when = "Then" if error.next_move else "Later"
    return f"{error.next_move} {when} send it with: {UPLOAD}".lstrip()


def send_waiting(
    home: RecorderHome, server: RecorderClient, create_task: str | None = None
) -> Iterator[Sent]:
    """Send every record that is made and not sent, and yield what became of it.

    A server that is away is not asked again; one that refuses a record may take the next.

    Args:
        home: the recorder's folders.
        server: where they are sent.
        create_task: name for tasks that are not there yet.

    Raises:
        InputError: no task can have that name.
    """
    if create_task is not None:
        check_task_name(create_task)
    for session in home.unsent():
        name = _id(session) or session.path.name
        try:
            with home.lock_session(session) as mine:
                if not mine:
                    raise InputError(name, "another process is sending it", "Wait for its end.")
                if create_task is not None:
                    options = structs.replace(session.stop_options(), create_task=create_task)
                    session.write_stop_options(options)
                receipt = _send(home, session, server)
        except RecorderAwayError as error:
            yield Sent(session_id=name, error=error)
            return
        except DebriefError as error:
            yield Sent(session_id=name, error=error)
        else:
            yield Sent(session_id=name, receipt=receipt)


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
        name: its id, or its folder's name where its files cannot be read.

    Raises:
        InputError: another process is at it.
    """
    for session in (*home.waiting(), *home.opened()):
        if name in (session.path.name, _id(session)):
            with home.lock_session(session) as mine:
                if not mine:
                    raise InputError(name, "another process is at it", "Wait for its end.")
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
        receipt = _marked(server, str(meta.session_id), receipt)
    if options.keep:
        home.keep(str(meta.session_id), data)
    home.remove(session)
    return receipt


def _marked(server: RecorderClient, session_id: str, stored: Receipt) -> Receipt:
    """Mark a stored session ready; its being no more than a draft is no reason to send it again."""
    try:
        return server.mark_ready(session_id)
    except RecorderRefusedError as error:
        return structs.replace(stored, not_ready=stored.not_ready or tuple(error.reasons))
