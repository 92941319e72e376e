"""Supervise several processes: start them in order, restart those that end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from msgspec import Struct

from debrief.errors import DebriefError
from debrief.files import make_private
from debrief.processes import stop_with_parent

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOG_SIZE = 5_000_000
_LAST_LINES = 12
_TICK = 0.2


class Program(Struct, frozen=True, kw_only=True):
    """One program of several."""

    name: str
    """Also the name of its log."""
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """Added to this process's own."""
    after: tuple[str, ...] = ()
    """Programs that must be ready before this one is started."""
    ready: Callable[[], bool] = lambda: True
    """Called until it returns True; takes a second at most."""
    start_timeout: float = 180.0
    """Seconds that it may take to be ready."""
    stop_timeout: float = 20.0
    """Seconds that it may take to end before it is killed."""


class Restarts(Struct, frozen=True, kw_only=True):
    """When a program that ended is started again."""

    first_wait: float = 1.0
    """Seconds; doubled with each end."""
    most: int = 5
    """Ends within ``within`` seconds; one more, and everything is stopped."""
    within: float = 300.0


class GaveUpError(DebriefError):
    """A program ended again and again."""


class Supervisor:
    """Runs programs until it is stopped, or one of them ends again and again.

    Args:
        programs: in the order in which they are started; they are stopped in reverse.
        logs: a folder for their output.
        restarts: when one is started again.
        report: receives lines for the person who watches.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        logs: Path,
        *,
        restarts: Restarts | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        make_private(logs)
        self._report = report
        self._restarts = restarts or Restarts()
        self._children = {
            program.name: _Child(program, logs / f"{program.name}.log") for program in programs
        }
        self._stops = 0

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Start everything, keep it running, and stop it at SIGINT, SIGTERM or SIGHUP.

        Args:
            started: called once, when all programs are ready for the first time.

        Raises:
            GaveUpError: a program ended again and again; all others were stopped.
        """
        former = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        is_started = False
        try:
            while not self._stops:
                for child in self._children.values():
                    self._keep_running(child)
                if not is_started and all(child.ready for child in self._children.values()):
                    is_started = True
                    started()
                time.sleep(_TICK)
        finally:
            for child in reversed(self._children.values()):
                child.stop(lambda: self._stops > 1)
            for number, handler in former.items():
                signal.signal(number, handler)

    def pid(self, name: str) -> int | None:
        """Return the process of a program; None while it does not run."""
        process = self._children[name].process
        return process.pid if process is not None else None

    def stop(self) -> None:
        """Have ``run`` stop everything and return; called twice, it kills what is left."""
        self._stops += 1

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop()

    def _keep_running(self, child: _Child) -> None:
        program = child.program
        child.rotate_log()
        if child.process is None:
            is_due = time.monotonic() >= child.start_at
            if is_due and all(self._children[name].ready for name in program.after):
                child.start()
        elif (code := child.process.poll()) is not None:
            child.kill()
            self._restart_later(child, code)
        elif not child.ready:
            child.ready = program.ready()
            if not child.ready and time.monotonic() - child.start_at > program.start_timeout:
                self._report(f"{program.name} is not ready after {program.start_timeout:.0f} s")
                child.kill()
                self._restart_later(child, -signal.SIGKILL)

    def _restart_later(self, child: _Child, code: int) -> None:
        restarts, now, name = self._restarts, time.monotonic(), child.program.name
        child.ends = [end for end in child.ends if now - end < restarts.within] + [now]
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        if len(child.ends) > restarts.most:
            lines = "".join(f"\n  {line}" for line in child.last_lines())
            raise GaveUpError(
                name,
                f"ended {how}, {len(child.ends)} times within {restarts.within:.0f} s; its last "
                f"lines:{lines}\nEverything was stopped",
                f"Its log is {child.log}",
            )
        wait = restarts.first_wait * 2.0 ** (len(child.ends) - 1)
        child.start_at = now + wait
        self._report(f"{name} ended {how}; starting it again in {wait:.0f} s")


class _Child:
    """A program, and its process at the moment, which leads a group of its own."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.start_at = 0.0
        self.ends: list[float] = []

    def start(self) -> None:
        """Start the process."""
        self.start_at = time.monotonic()
        with self.log.open("ab") as output:
            header = f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} starting {self.program.name}\n"
            output.write(header.encode())
            output.flush()
            self.process = subprocess.Popen(
                self.program.command,
                env={**os.environ, **self.program.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=stop_with_parent(signal.SIGTERM),
            )

    def stop(self, at_once: Callable[[], bool]) -> None:
        """Ask the process to end; kill it after its time, or when ``at_once`` says so."""
        if self.process is not None:
            self.process.terminate()
            limit = time.monotonic() + self.program.stop_timeout
            while self.process.poll() is None and time.monotonic() < limit and not at_once():
                time.sleep(0.05)
            self.kill()

    def kill(self) -> None:
        """End the process and all that it started."""
        if self.process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process, self.ready = None, False

    def rotate_log(self) -> None:
        """Begin a new log when this one is long; the process goes on writing to the same file."""
        if self.log.exists() and self.log.stat().st_size > _LOG_SIZE:
            shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
            os.truncate(self.log, 0)

    def last_lines(self) -> list[str]:
        """Return the end of the log."""
        return self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
