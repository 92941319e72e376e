"""Leases: of two runs that want to do the same work, one does it and the other waits.

A lease is a row of the shared state with the time when its holder was last heard of. A thread of
the holder's process says so every few seconds. A holder that was killed is silent; after a while,
or at once where it can be seen that its process is gone, the work is taken over. A holder that was
only slow finds its lease lost and stops.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol
from uuid import uuid4
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import DebriefError
from debrief.state.processes import decoded, this_process
from debrief.state.store import Lease, State
from debrief.state.watch import Watch, watch_of

DEAD = 30.0
"""Seconds of silence after which a holder counts as dead."""
_BEATS = 6
"""Signs of life in that time."""
_PAUSE = 1.0
"""Seconds between two looks at a lease that somebody else has."""


class Status(Protocol):
    """What is known of a run where runs are kept."""

    def __call__(self) -> Ended | None:
        """Return how the run ended; None while it goes on, or while that cannot be found out."""
        ...


class Ended(Struct, frozen=True):
    """The end of a run."""

    reason: str = ""
    """Why it must not go on; empty when it was done."""


class _Held(Struct, frozen=True):
    name: str
    watch: Watch
    status: Status | None = None


class Keeper:
    """Takes leases for this process, and keeps them.

    Args:
        state: where the leases are.
        dead: seconds of silence after which a holder counts as dead; the same for all.
    """

    def __init__(self, state: State, *, dead: float = DEAD) -> None:
        self._state = state
        self.dead = dead
        self._every = dead / _BEATS
        self._process = replace(this_process(), part=uuid4().hex[:8]).encoded()
        self._wanted: set[str] = set()
        self._attended: set[str] = set()
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._beating = threading.Lock()
        self._heard = 0.0
        self._threads: dict[str, threading.Thread] = {}

    @contextmanager
    def hold(self, name: str, run: str, tell: Callable[[str], None]) -> Iterator[Watch]:
        """Work on something alone.

        Waits while another run does, for as long as that takes.

        Args:
            name: of what is to be worked on.
            run: who wants to.
            tell: is told who is waited for, and whose work is taken over.

        Raises:
            RunOverError: the run was over before its turn came.
        """
        watch = watch_of(run)
        token = self._new_token()
        try:
            self._await(name, run, token, watch, tell)
            self._keep(token, _Held(name, watch))
            watch.check()
            yield watch
        finally:
            self._let_go(token)

    def attend(self, run: str, status: Status) -> Watch:
        """Let it be known that this process works for a run, until ``leave`` or the run's end.

        A process that dies before leaves a sign that nobody renews: that is how its death is told.

        Args:
            run: its id.
            status: asked every few seconds how the run ended.
        """
        watch = watch_of(run)
        with self._lock:
            if run in self._attended:
                return watch
            self._attended.add(run)
        token = self._new_token()
        name = f"run {run} in {self._process}"
        try:
            taken = self._take(name, run, token)
        except DebriefError:
            self._wanted.discard(token)
            with self._lock:
                self._attended.discard(run)
            raise
        if taken:
            self._keep(token, _Held(name, watch, status))
        return watch

    def leave(self, run: str) -> None:
        """Work for a run no more: its process may go on elsewhere, or there is nothing to do."""
        for token, held in list(self._held.items()):
            if held.watch.run == run and held.status is not None:
                self._let_go(token)
        with self._lock:
            self._attended.discard(run)

    def is_dead(self, lease: Lease) -> bool:
        """Return whether a holder will not be heard of again."""
        return lease.silence > self.dead or _is_gone(lease)

    def leases_of(self, run: str) -> list[Lease]:
        """Return what a run holds, alive or dead."""
        return self._state.leases_of(run)

    def renew(self) -> None:
        """Say now that this process is alive, and stop the runs whose leases were lost."""
        with self._beating:
            self._beat()

    def _beat(self) -> None:
        before = dict(self._held)
        wanted = set(self._wanted)
        still = self._state.beat(self._process)
        self._heard = _seconds()
        for token, held in before.items():
            if token not in still and self._forget(token):
                held.watch.stop(self._lost(held))
        # What could not be given back when its work was done would be kept alive for ever.
        for token in still - wanted - self._wanted:
            self._state.release(token)

    def _await(
        self, name: str, run: str, token: str, watch: Watch, tell: Callable[[str], None]
    ) -> None:
        told = ""
        dead: Lease | None = None
        while not self._take(name, run, token, dead):
            watch.check()
            dead = None
            lease = self._state.lease(name)
            if lease is None:
                continue
            if self.is_dead(lease):
                dead = lease
                tell(f"takes over {name} from {_who(lease)}, {self._death(lease)}")
                continue
            if lease.token != told:
                told = lease.token
                since = time.strftime("%H:%M:%S", time.gmtime(lease.since))
                tell(f"waits for {_who(lease)}, which has {name} since {since} UTC")
            time.sleep(min(_PAUSE, self._every))

    def _take(self, name: str, run: str, token: str, dead: Lease | None = None) -> bool:
        return self._state.take(name, run=run, token=token, process=self._process, dead=dead)

    def _death(self, lease: Lease) -> str:
        gone = "whose process is gone"
        return gone if _is_gone(lease) else f"not heard of for {lease.silence:.0f} s"

    def _keep(self, token: str, held: _Held) -> None:
        with self._lock:
            if not self._held:
                self._heard = _seconds()
            self._held[token] = held
            # Two, so that a storage of runs that hangs keeps nobody from saying that he is alive.
            self._go_on("leases", self.renew)
            self._go_on("runs", self._look_at_runs)
        held.watch.doubt(self._when_late)

    def _new_token(self) -> str:
        token = uuid4().hex
        self._wanted.add(token)
        return token

    def _let_go(self, token: str) -> None:
        """Give a lease back; when the state is away, that is done with the next sign of life."""
        held = self._forget(token)
        self._wanted.discard(token)
        if held:
            with suppress(DebriefError):
                self._state.release(token)

    def _forget(self, token: str) -> bool:
        with self._lock:
            return self._held.pop(token, None) is not None

    def _when_late(self) -> None:
        """Find out, before more is asked, whether a lease that went unconfirmed is still ours."""
        if self._is_late():
            with self._beating:
                if self._is_late():
                    self._beat()

    def _is_late(self) -> bool:
        return bool(self._held) and _seconds() - self._heard > self.dead - self._every

    def _go_on(self, name: str, do: Callable[[], None]) -> None:
        """See to it that a thread does something now and then."""
        running = self._threads.get(name)
        if running is None or not running.is_alive():
            thread = threading.Thread(
                target=self._again, args=(do,), name=f"debrief {name}", daemon=True
            )
            self._threads[name] = thread
            thread.start()

    def _again(self, do: Callable[[], None]) -> None:
        while True:
            time.sleep(self._every)
            if self._held:
                with suppress(DebriefError):
                    do()

    def _look_at_runs(self) -> None:
        for held in list(self._held.values()):
            ended = held.status() if held.status is not None else None
            if ended is None:
                continue
            if ended.reason:
                held.watch.stop(ended.reason)
            self.leave(held.watch.run)

    def _lost(self, held: _Held) -> str:
        now = self._state.lease(held.name)
        by = f" and {_who(now)} took over" if now is not None else ""
        return f"it was not heard of for {self.dead:g} s while it had {held.name}{by}"


_KEEPERS: dict[tuple[int, int, float], Keeper] = {}
_LOCK = threading.Lock()


def keeper_of(state: State, *, dead: float = DEAD) -> Keeper:
    """Return what keeps this process's leases in a state."""
    with _LOCK:
        key = os.getpid(), id(state), dead
        if key not in _KEEPERS:
            _KEEPERS[key] = Keeper(state, dead=dead)
        return _KEEPERS[key]


_WITH_PARENT: WeakSet[Watch] = WeakSet()


def stop_with_parent(watch: Watch) -> None:
    """Stop a run in this process when the process that started it for the run has died."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is None or watch in _WITH_PARENT:
        return
    _WITH_PARENT.add(watch)
    reason = f"the run's own process ({parent.pid}) died"
    wait = partial(_stop_after, parent.join, watch, reason)
    threading.Thread(target=wait, name="debrief parent", daemon=True).start()


def _stop_after(wait: Callable[[], object], watch: Watch, reason: str) -> None:
    wait()
    watch.stop(reason)


def _is_gone(lease: Lease) -> bool:
    process = decoded(lease.process)
    return process is not None and process.is_gone


def _who(lease: Lease) -> str:
    process = decoded(lease.process)
    where = f" ({process.told})" if process is not None else ""
    return f"run {lease.run[:8]}{where}"


def _seconds() -> float:
    """Return a clock that also runs while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(clock) if clock is not None else time.monotonic()
