"""Which state the settings of this machine name."""

from __future__ import annotations

import threading
from pathlib import Path

from debrief.settings import Settings
from debrief.state.sqlite import SqliteState
from debrief.state.store import State

HERE = "here"
"""Told instead of an address: the file of this machine."""
_OPENED: dict[str, tuple[tuple[int, int], State]] = {}
_LOCK = threading.Lock()


def state_file(settings: Settings) -> Path:
    """Return where the state is that no other machine shares."""
    return settings.home.absolute() / "cache" / "answers.sqlite"


def state_url(settings: Settings) -> str:
    """Return the address of the shared state; empty for the file of this machine.

    Where the runs of a team are kept on a database of its own, they may be carried out on several
    machines, and two that do not see each other's leases would both pay for one question. So the
    state is there too, unless it is told to be elsewhere. A database that only one machine's
    Dagster uses, the embedded one, is left alone.
    """
    if settings.state_url:
        return "" if settings.state_url == HERE else settings.state_url
    of_a_team = settings.database_url or settings.broker
    return settings.dagster_database_url if of_a_team else ""


def open_state(settings: Settings) -> State:
    """Return the shared state, as ``state_url`` says, else the file in ``DEBRIEF_HOME``.

    It is opened once a process.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    url = state_url(settings)
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
