"""Running a command so that its output is seen at once, kept in order, and its end is certain."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from msgspec import Struct

from debrief.errors import ConfigurationError

_GLANCE = 0.1
"""Seconds between two looks at a command that prints nothing."""
_GRACE = 5.0
"""Seconds from the request to end to the end by force."""
_LINGER = 1.0
"""Seconds in which the output of an ended command may still come, from processes it left behind."""
_PIECE = 65_536


class Ended(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    exit_code: int | None
    """128 + n when signal n ended it; None at its time limit."""
    seconds: float
    cut: bool
    """It printed more than was kept."""


def execute(
    command: Sequence[str],
    folder: Path,
    *,
    time_limit: float,
    file: Path,
    keep: int,
    show: Callable[[bytes], None],
    grace: float = _GRACE,
) -> Ended:
    """Run a command to its end, both of its outputs as one, and nothing to read.

    It runs in a process group of its own, which is ended as a whole at the time limit, first by
    request and then by force. What is typed to interrupt it is passed on to that group; a second
    time ends it by force.

    Args:
        command: an absolute path and its arguments.
        folder: where it runs.
        time_limit: seconds.
        file: is written as output comes, so that it is there whatever ends this process.
        keep: bytes of output that are kept in it.
        show: is called with each piece as it comes.
        grace: seconds between request and force.

    Raises:
        ConfigurationError: it cannot be started, or its output cannot be kept.
    """
    began = time.monotonic()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as kept:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigurationError(command[0], f"cannot be started: {reason}") from error
        with _passing_on(process) as interrupted:
            end = _Deadline(process, began + time_limit, grace, interrupted)
            try:
                size = _copy(_pieces(process, end), kept, keep, show)
            except BaseException:
                signal_group(process, signal.SIGKILL)
                process.wait()
                raise
            code = process.wait()
        os.fsync(kept.fileno())
    return Ended(
        exit_code=None if end.passed else code if code >= 0 else 128 - code,
        seconds=time.monotonic() - began,
        cut=size > keep,
    )


def _copy(
    pieces: Iterable[bytes], kept: IO[bytes], keep: int, show: Callable[[bytes], None]
) -> int:
    """Keep and show the pieces; return how many bytes there were."""
    size = 0
    for piece in pieces:
        try:
            kept.write(piece[: max(0, keep - size)])
        except OSError as error:
            reason = f"cannot be written: {error.strerror}; the command was ended"
            raise ConfigurationError(str(kept.name), reason) from error
        size += len(piece)
        show(piece)
    return size


class _Deadline:
    """Ends a process group that runs past its time, or whose end was asked for twice."""

    def __init__(
        self, process: subprocess.Popen[bytes], at: float, grace: float, interrupted: list[int]
    ) -> None:
        self._process, self._at, self._grace = process, at, grace
        self._interrupted = interrupted
        self.passed = False
        """The time limit was reached while the command ran."""

    def look(self) -> None:
        now = time.monotonic()
        if not self.passed and now >= self._at and self._process.poll() is None:
            self.passed = True
            signal_group(self._process, signal.SIGTERM)
        if (self.passed and now >= self._at + self._grace) or len(self._interrupted) > 1:
            signal_group(self._process, signal.SIGKILL)

    def finish(self) -> None:
        """End what the command left behind in its group, if it was ended itself."""
        if self.passed or self._interrupted:
            signal_group(self._process, signal.SIGKILL)


def _pieces(process: subprocess.Popen[bytes], end: _Deadline) -> Iterator[bytes]:
    """Yield output until all who could write it are gone, or the command is and is silent."""
    assert process.stdout is not None
    silent_since: float | None = None
    with process.stdout as pipe:
        while True:
            end.look()
            if select.select([pipe], [], [], _GLANCE)[0]:
                piece = os.read(pipe.fileno(), _PIECE)
                if not piece:
                    break
                yield piece
            if process.poll() is not None:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() >= silent_since + _LINGER:
                    break
        while process.poll() is None:
            end.look()
            time.sleep(_GLANCE / 10)
        end.finish()


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a process and all that it started, as far as they stayed together."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass requests to end on to the process; yield those that came."""
    came: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal_group(process, number)

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
