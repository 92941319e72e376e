"""Whether a server would take a session's record, asked while nothing depends on it yet.

A missing task, a wrong address or a revoked token is corrected most easily before the work is
done. So the server is asked at the start, once and shortly, and nothing fails for its answer.
"""

from __future__ import annotations

import threading

from debrief.errors import ConfigurationError, DebriefError
from debrief.recorder.client import (
    RecorderAwayError,
    RecorderClient,
    RecorderRefusedError,
    client_of,
)
from debrief.retry import RetryPolicy
from debrief.settings import Settings

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
