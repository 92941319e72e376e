"""Which state the settings of this machine name."""

from __future__ import annotations

import threading
from pathlib import Path

from debrief.settings import Settings
from debrief.state.sqlite import SqliteState
from debrief.state.store import State

_OPENED: dict[str, tuple[tuple[int, int], State]] = {}
_LOCK = threading.Lock()


def state_file(settings: Settings) -> Path:
    """Return where the state is that no other machine shares."""
    return settings.home.absolute() / "cache" / "answers.sqlite"


def open_state(settings: Settings) -> State:
    """Return the shared state: ``DEBRIEF_STATE_URL``'s, else the file in ``DEBRIEF_HOME``.

    It is opened once a process.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    url = settings.get("DEBRIEF_STATE_URL")
    path = state_file(settings)
    with _LOCK:
        known = _OPENED.get(url or str(path))
        if known is not None and known[0] == (_identity(path) if not url else (0, 0)):
            return known[1]
        state: State
        if url:
            from debrief.state.postgres import PostgresState

            state = PostgresState(url)
            _OPENED[url] = (0, 0), state
        else:
            state = SqliteState(path)
            _OPENED[str(path)] = _identity(path), state
        return state


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from another one that took its name."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return -1, -1
    return found.st_dev, found.st_ino
