"""Whether a run may still go on, told to all threads that work for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

from debrief.errors import DebriefError


class RunOverError(DebriefError):
    """A run that works on although it is over, or although others do its work now."""


class Watch:
    """Says whether a run may go on.

    Args:
        run: its id.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._reason = ""
        self._doubts: tuple[Callable[[], None], ...] = ()

    def stop(self, reason: str) -> None:
        """Let the run ask and write no more; the first reason given is the one that is told."""
        self._reason = self._reason or reason

    def doubt(self, ask: Callable[[], None]) -> None:
        """Ask ``ask`` too each time before the run goes on; it may stop it."""
        self._doubts = (*(doubt for doubt in self._doubts if doubt != ask), ask)

    @property
    def over(self) -> str:
        """Return why the run may not go on; empty while it may."""
        return self._reason

    def check(self) -> None:
        """Go on, or not.

        Raises:
            RunOverError: the run may not go on.
        """
        for ask in self._doubts:
            ask()
        if self._reason:
            raise RunOverError(
                f"run {self.run[:8]}", self._reason, "What was answered is kept for the next run."
            )


_WATCHES: WeakValueDictionary[str, Watch] = WeakValueDictionary()
_LOCK = threading.Lock()


def watch_of(run: str) -> Watch:
    """Return the watch of a run, the same one for all that work for it in this process."""
    with _LOCK:
        watch = _WATCHES.get(run)
        if watch is None:
            watch = _WATCHES[run] = Watch(run)
        return watch
