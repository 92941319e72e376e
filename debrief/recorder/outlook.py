"""What would keep a session's record from its server, looked for while nothing depends on it.

A task that is not there, a wrong address or a revoked token is mended most easily before the work
is done. So the server is asked at the start, once and shortly, and nothing fails for its answer.
"""

from __future__ import annotations

import threading

from debrief.errors import ConfigurationError, DebriefError
from debrief.recorder.remote import Patience, ServerAwayError, ServerRefusedError
from debrief.recorder.sending import RecorderServer, server_of
from debrief.settings import Settings

SECONDS = 2.0
"""How long the server has for its answer."""
_SCOPE_IS_MISSING = 403


def hindrance(settings: Settings, task_id: str, seconds: float = SECONDS) -> DebriefError | None:
    """Return what would keep a record of a task from the configured server; None if nothing is
    known to.

    Whether the task is there can be told only with a token that has the scope ``read``.

    Args:
        settings: of this machine.
        task_id: the session's task.
        seconds: after which the question is given up, names of machines included.
    """
    if not settings.recorder_url:
        return None
    patience = Patience(attempts=1, timeout=seconds, in_all=seconds)
    try:
        server = server_of(settings, patience)
    except ConfigurationError as error:
        return error
    silent = ServerAwayError(server.url, "gave no answer in time", _later(task_id))
    found: list[DebriefError | None] = []
    # Looking a name up knows no time limit, and the thread is left behind with it.
    asking = threading.Thread(target=lambda: found.append(_told(server, task_id)), daemon=True)
    asking.start()
    asking.join(seconds)
    return found[0] if found else silent


def _told(server: RecorderServer, task_id: str) -> DebriefError | None:
    with server:
        try:
            there = server.has_task(task_id)
        except ServerAwayError as error:
            return ServerAwayError(server.url, error.reason, _later(task_id))
        except ServerRefusedError as error:
            return None if error.status == _SCOPE_IS_MISSING else error
    if there:
        return None
    return ServerRefusedError(
        server.url,
        [f"has no task {task_id} yet"],
        "Make it there at the end: debrief record stop --create-task NAME",
    )


def _later(task_id: str) -> str:
    return (
        f"Whether task {task_id} is there is not known; a record that cannot be sent at the end "
        "waits here."
    )
