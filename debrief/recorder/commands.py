"""How a recorded command is run: never by a shell, its output at once, its end certain."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from debrief.errors import ConfigurationError
from debrief.recorder.session_facts import CommandEnd

_POLL = 0.1
"""Seconds between two looks at a command that prints nothing."""
_LINGER = 1.0
"""Seconds in which the output of an ended command may still come, from processes it left behind."""
_PIECE = 65_536

Process = subprocess.Popen[bytes]


def execute(
    command: Sequence[str],
    folder: Path,
    *,
    time_limit: float,
    file: Path,
    keep: int,
    show: Callable[[bytes], None],
    grace: float,
) -> CommandEnd:
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
    size, timed_out = 0, False
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as kept:
        process = _started(command, folder)
        with _signals_passed_on(process) as received:
            try:
                for piece in _output(process):
                    seconds = time.monotonic() - began
                    if not timed_out and seconds >= time_limit and process.poll() is None:
                        timed_out = True
                        _signal_group(process, signal.SIGTERM)
                    if (timed_out and seconds >= time_limit + grace) or len(received) > 1:
                        _signal_group(process, signal.SIGKILL)
                    if piece:
                        _keep(kept, piece[: max(0, keep - size)])
                        size += len(piece)
                        show(piece)
                if timed_out or received:
                    _signal_group(process, signal.SIGKILL)
            except BaseException:
                _signal_group(process, signal.SIGKILL)
                process.wait()
                raise
        os.fsync(kept.fileno())
    code = process.wait()
    return CommandEnd(
        exit_code=None if timed_out else code if code >= 0 else 128 - code,
        ending=f"(ended at its time limit of {time_limit:g} s)" if timed_out else "",
        duration_ms=int((time.monotonic() - began) * 1000),
        cut=size > keep,
    )


def _started(command: Sequence[str], folder: Path) -> Process:
    try:
        return subprocess.Popen(
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


def _keep(file: IO[bytes], piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        reason = f"cannot be written: {error.strerror}; the command was ended"
        raise ConfigurationError(str(file.name), reason) from error


def _output(process: Process) -> Iterator[bytes]:
    """Yield output, and an empty piece every 0.1 s without any, until the command has ended.

    What it left behind in the background may go on writing for a second.
    """
    assert process.stdout is not None
    ended_at: float | None = None
    with process.stdout as pipe:
        is_open = True
        while is_open or process.poll() is None:
            if not is_open:
                time.sleep(_POLL / 10)
                yield b""
                continue
            piece = b""
            if select.select([pipe], [], [], _POLL)[0]:
                piece = os.read(pipe.fileno(), _PIECE)
                is_open = bool(piece)
            yield piece
            if process.poll() is not None:
                ended_at = ended_at or time.monotonic()
                if time.monotonic() >= ended_at + _LINGER:
                    return


def _signal_group(process: Process, number: int) -> None:
    """Send a signal to a process and all that it started, as far as they stayed together."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@contextmanager
def _signals_passed_on(process: Process) -> Iterator[list[int]]:
    """Pass requests to end on to the process; yield those that were received."""
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        received.append(number)
        _signal_group(process, number)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
