"""What a run says while it is under way: one moving line on a terminal, else a line now and then.

Every line is in the log, with its time.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from rich.text import Text

from debrief.cli.shared import console
from debrief.errors import DebriefError, without_controls
from debrief.files import make_folder
from debrief.settings import Settings

_progress = logging.getLogger("debrief.progress")
_LOG = "runs.log"
_LONGEST_LOG = 5_000_000
_PAUSE = 15.0
"""Seconds between two lines of one stage where no line can move."""


@contextmanager
def shown_progress(settings: Settings) -> Iterator[Path]:
    """Show what stages say within the block; yield the log that has all of it.

    Raises:
        DebriefError: somebody stopped it, by Ctrl-C or SIGTERM.
        ConfigurationError: the log's folder cannot be made.
    """
    make_folder(settings.home / "logs")
    log = settings.home / "logs" / _LOG
    whole = RotatingFileHandler(log, maxBytes=_LONGEST_LOG, backupCount=1, encoding="utf-8")
    whole.setFormatter(logging.Formatter("%(asctime)s  %(message)s"))
    screen = console(stderr=True)
    former = _progress.level, _progress.propagate
    _progress.setLevel(logging.INFO)
    _progress.propagate = False
    try:
        with _stoppable():
            if screen.is_terminal:
                with (
                    screen.status(_one_line("starting"), refresh_per_second=4) as status,
                    _handled(whole, _Said(lambda line: status.update(_one_line(line)))),
                ):
                    yield log
            else:
                with _handled(whole, _Said(_now_and_then())):
                    yield log
    finally:
        _progress.setLevel(former[0])
        _progress.propagate = former[1]
        whole.close()


class _Said(logging.Handler):
    """Gives what a stage says to a function."""

    def __init__(self, say: Callable[[str], object]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())


@contextmanager
def _handled(*handlers: logging.Handler) -> Iterator[None]:
    for handler in handlers:
        _progress.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            _progress.removeHandler(handler)


def _one_line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _now_and_then() -> Callable[[str], None]:
    """Return a function that prints the first line of each stage, and of a long one some more."""
    stage, said = "", 0.0

    def hear(line: str) -> None:
        nonlocal stage, said
        now, name = time.monotonic(), line.partition(" ")[0]
        if name != stage or now - said > _PAUSE:
            stage, said = name, now
            print(without_controls(f"  {line}"), file=sys.stderr, flush=True)

    return hear


@contextmanager
def _stoppable() -> Iterator[None]:
    """End with one line where Ctrl-C or SIGTERM comes between two steps of Dagster's."""
    is_main = threading.current_thread() is threading.main_thread()
    former = signal.signal(signal.SIGTERM, signal.default_int_handler) if is_main else None
    try:
        yield
    except KeyboardInterrupt:
        raise stopped() from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, former or signal.SIG_DFL)


def stopped() -> DebriefError:
    """Return what a run that somebody stopped ends with."""
    move = "The same command goes on."
    return DebriefError("The run", "was stopped; what was finished stays", move)
