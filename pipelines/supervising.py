"""Several programs kept running as one: started in order, restarted, and ended together."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from logging import LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType

from msgspec import Struct

from debrief.errors import DebriefError

_LOG_SIZE = 5_000_000
_LOG_COPIES = 3
_LAST_WORDS = 12
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_LINE = 100_000
_TICK = 0.2
_READY_EVERY = 0.5
_WATCHED_EVERY = 2.0


class Part(Struct, frozen=True, kw_only=True):
    """One program of several."""

    name: str
    """Also the name of its log."""
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """Laid over this process's own."""
    after: tuple[str, ...] = ()
    """Parts that must be ready before this one is started."""
    ready: Callable[[], bool] = lambda: True
    """Asked until it is true for the first time; takes a second at most."""
    patience: float = 180.0
    """Seconds that it may take to be ready."""
    grace: float = 20.0
    """Seconds that it may take to end before it is killed."""
    once: bool = False
    """It does its work and ends, and is ready then."""
    again_before: str = ""
    """A part of ``once`` does its work again before this other part is started again."""


class Watched(Struct, frozen=True, kw_only=True):
    """Something that this process itself holds, looked at now and then."""

    name: str
    alive: Callable[[], bool]
    revive: Callable[[], None]


class Restarts(Struct, frozen=True, kw_only=True):
    """When a part that ended is started again."""

    first_wait: float = 1.0
    """Seconds; doubled with each end."""
    longest_wait: float = 30.0
    most: int = 5
    """Ends within ``within`` seconds; one more, and everything is stopped."""
    within: float = 300.0


class GaveUpError(DebriefError):
    """A part would not stay up."""


class Supervisor:
    """Runs parts until it is told to stop, or one of them cannot be kept up.

    Args:
        parts: in the order in which they are started; they are ended in the opposite one.
        logs: a folder for what they print, rotated.
        watched: what this process holds for them.
        restarts: how often one is started again.
        tell: takes a line for the person who looks on.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        logs: Path,
        *,
        watched: Sequence[Watched] = (),
        restarts: Restarts | None = None,
        tell: Callable[[str], None] = print,
    ) -> None:
        logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._tell = tell
        self._restarts = restarts or Restarts()
        self._selector = selectors.DefaultSelector()
        self._running = {part.name: _Running(part, logs, self._selector) for part in parts}
        self._watched = watched
        self._stops = 0
        self._watch_at = 0.0

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Start everything, keep it up, and end it at SIGINT, SIGTERM or SIGHUP.

        Args:
            started: called once, when all parts are ready for the first time.

        Raises:
            GaveUpError: a part would not stay up; all others were ended.
        """
        former = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            told = False
            while not self._stops:
                self._step()
                if not told and all(running.ready for running in self._running.values()):
                    told = True
                    started()
        finally:
            self._end()
            for number, handler in former.items():
                signal.signal(number, handler)

    def pid(self, name: str) -> int | None:
        """Return the process of a part; None while it does not run."""
        process = self._running[name].process
        return process.pid if process is not None else None

    def stop(self) -> None:
        """Have ``run`` end everything and return."""
        self._stops += 1

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1

    def _step(self) -> None:
        now = time.monotonic()
        if now >= self._watch_at:
            self._watch_at = now + _WATCHED_EVERY
            self._look()
        for running in self._running.values():
            ended = running.ended()
            if ended is not None:
                self._after_end(running, ended)
            elif running.process is None and not running.done and now >= running.not_before:
                if all(other.ready for other in self._before(running)):
                    running.start()
            elif running.process is not None and not running.ready:
                self._ask(running, now)
        self._pump(_TICK)

    def _before(self, running: _Running) -> list[_Running]:
        """Return what must be ready before a part is started, or started again."""
        named = [self._running[name] for name in running.part.after]
        return named + (self._carers(running) if running.starts else [])

    def _carers(self, running: _Running) -> list[_Running]:
        return [r for r in self._running.values() if r.part.again_before == running.part.name]

    def _ask(self, running: _Running, now: float) -> None:
        if running.part.once or now < running.ask_at:
            return
        running.ready = running.part.ready()
        running.ask_at = time.monotonic() + _READY_EVERY
        if not running.ready and now - running.started_at > running.part.patience:
            self._tell(f"{running.part.name} is not ready after {running.part.patience:.0f} s")
            running.kill()

    def _after_end(self, running: _Running, code: int) -> None:
        if running.part.once and code == 0:
            running.done = running.ready = True
            return
        running.ready = False
        for carer in self._carers(running):
            carer.done = carer.ready = False
        now = time.monotonic()
        within = self._restarts.within
        running.ends = [moment for moment in running.ends if now - moment < within] + [now]
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        if len(running.ends) > self._restarts.most:
            said = "".join(f"\n  {line}" for line in running.last_words)
            raise GaveUpError(
                running.part.name,
                f"ended {how}, {len(running.ends)} times within {within:.0f} s; it said last:{said}"
                f"\nEverything was stopped",
                f"All it said is in {running.log}",
            )
        wait = self._restarts.first_wait * 2.0 ** (len(running.ends) - 1)
        wait = min(wait, self._restarts.longest_wait)
        running.not_before = now + wait
        self._tell(f"{running.part.name} ended {how}; starting it again in {wait:.0f} s")

    def _look(self) -> None:
        for watched in self._watched:
            if not watched.alive():
                self._tell(f"{watched.name} is gone; starting it again")
                watched.revive()

    def _pump(self, patience: float) -> None:
        for key, _ in self._selector.select(patience):
            key.data()

    def _end(self) -> None:
        calm = self._stops
        order = list(self._running.values())[::-1]
        for running in order:
            running.ask_to_end()
            limit = time.monotonic() + running.part.grace
            while running.alive() and time.monotonic() < limit and self._stops <= max(calm, 1):
                self._pump(0.05)
            running.kill()
            self._pump(0)
            running.close()
        self._selector.close()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Running:
    """A part, and the process that it is at the moment, leader of a group of its own."""

    def __init__(self, part: Part, logs: Path, selector: selectors.BaseSelector) -> None:
        self.part = part
        self.log = logs / f"{part.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = self.done = False
        self.starts = 0
        self.started_at = self.not_before = self.ask_at = 0.0
        self.ends: list[float] = []
        self.last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._selector = selector
        self._rest = b""
        self._file = RotatingFileHandler(
            self.log, maxBytes=_LOG_SIZE, backupCount=_LOG_COPIES, encoding="utf-8"
        )

    def start(self) -> None:
        """Start the process."""
        self.ready = False
        self.starts += 1
        self.started_at = time.monotonic()
        self._write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} starting {self.part.name}")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pipelines.leash", *self.part.command],
            env={**os.environ, **self.part.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self._selector.register(self.process.stdout, selectors.EVENT_READ, self._read)

    def ended(self) -> int | None:
        """Return the exit code of a process that has ended, once; what it left is killed."""
        if self.process is None or self.alive():
            return None
        process = self.process
        self.kill()
        self._forget()
        return process.returncode

    def alive(self) -> bool:
        """Return whether the process runs; one that has ended keeps its number until ``kill``."""
        if self.process is None or self.process.returncode is not None:
            return False
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.process.pid, look) is None

    def ask_to_end(self) -> None:
        """Ask the process to end; its children are its own affair."""
        if self.process is not None and self.alive():
            self.process.terminate()

    def kill(self) -> None:
        """End the process and all that it started."""
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        """Let go of the process and the log."""
        self._forget()
        self._file.close()

    def _forget(self) -> None:
        if self.process is None:
            return
        assert self.process.stdout is not None
        self._read()
        with suppress(KeyError):
            self._selector.unregister(self.process.stdout)
        self.process.stdout.close()
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self.process = None

    def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        while True:
            try:
                data = os.read(self.process.stdout.fileno(), 65_536)
            except BlockingIOError:
                return
            if not data:
                with suppress(KeyError):
                    self._selector.unregister(self.process.stdout)
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._line(line)
            if len(self._rest) > _LONGEST_LINE:
                self._line(self._rest)
                self._rest = b""

    def _line(self, line: bytes) -> None:
        text = _COLOURS.sub("", line.decode(errors="replace")).rstrip()
        if text:
            self.last_words.append(text)
        self._write(text)

    def _write(self, text: str) -> None:
        self._file.emit(LogRecord("", 0, "", 0, text, None, None))
