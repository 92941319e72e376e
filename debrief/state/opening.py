"""Which state the settings of this machine name, and how long it keeps answers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TypedDict

from debrief.settings import Settings
from debrief.state.store import DAY, State

HERE = "here"
"""Given instead of an address: the file of this machine."""
_OPENED: dict[str, tuple[tuple[int, int], State]] = {}
_LOCK = threading.Lock()


class Limits(TypedDict):
    """What ``State.prune`` keeps."""

    days: float
    size: int


def state_file(settings: Settings) -> Path:
    """Return the file of this machine's own state."""
    return settings.home.absolute() / "cache" / "answers.sqlite"


def state_url(settings: Settings) -> str:
    """Return the address of the shared state; empty for the file of this machine.

    Where the runs of a team are kept on a database of its own, they may be carried out on several
    machines, which would each pay for the same question. So the state is there too, unless
    ``DEBRIEF_STATE_URL`` names another one. A database that only one machine's Dagster uses, the
    embedded one, is left alone.
    """
    if settings.state_url:
        return "" if settings.state_url == HERE else settings.state_url
    is_team = settings.database_url or settings.broker
    return settings.dagster_database_url if is_team else ""


def open_state(settings: Settings) -> State:
    """Return the state that ``state_url`` names, else the file in ``DEBRIEF_HOME``; one a process.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    url, path = state_url(settings), state_file(settings)
    key = url or str(path)
    with _LOCK:
        opened = _OPENED.get(key)
        if opened is not None and opened[0] == _identity(None if url else path):
            return opened[1]
        state = State(url or path)
        _OPENED[key] = _identity(None if url else path), state
        return state


def limits(settings: Settings) -> Limits:
    """Return how long and how many answers are kept."""
    return Limits(days=settings.cache_days, size=int(settings.cache_mb * 1e6))


def prune_daily(state: State, settings: Settings) -> None:
    """Delete old and surplus answers, if nobody did today."""
    if state.is_due("prune", DAY):
        state.prune(**limits(settings))


def _identity(path: Path | None) -> tuple[int, int]:
    """Return what distinguishes a file from another one that took its name."""
    if path is None or not path.exists():
        return -1, -1
    status = path.stat()
    return status.st_dev, status.st_ino
