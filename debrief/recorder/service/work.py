"""Blocking work beside the event loop: a few threads, a bounded queue, a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from debrief.recorder.service.problems import RefusedError

P = ParamSpec("P")
R = TypeVar("R")


class Work:
    """Threads that requests take turns with.

    Args:
        name: of the threads.
        threads: how many work at once.
        waiting: how many pieces of work may wait for a thread.
        seconds: how long one may take, waiting included.
    """

    def __init__(self, name: str, threads: int, waiting: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + waiting
        self._seconds = seconds
        self._lock = Lock()
        self._now = 0

    async def do(self, function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Run a function in a thread.

        Raises:
            RefusedError: 503, when too many wait already or the time is over. A function that has
                begun is not stopped, and keeps its thread until it ends.
        """
        with self._lock:
            if self._now >= self._most:
                raise busy("too many requests wait for the database")
            self._now += 1
        running = self._pool.submit(function, *arguments, **options)
        running.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(running), self._seconds)
        except TimeoutError:
            if running.done() and not running.cancelled():
                raise
            raise busy(f"it took longer than {self._seconds:g} seconds") from None

    def _ended(self, _: Future[Any]) -> None:
        with self._lock:
            self._now -= 1

    def later(self, function: Callable[[], None]) -> None:
        """Run a function when a thread is free; nobody waits for it.

        After ``close`` it is not run: the process ends, and what it held with it.
        """
        with suppress(RuntimeError):
            self._pool.submit(function)

    def close(self) -> None:
        """Let go of the threads, once they are done."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def busy(reason: str) -> RefusedError:
    """Return what a client is told that should come again a little later."""
    return RefusedError(503, "service", reason, "Try again in a few seconds.", {"Retry-After": "2"})
