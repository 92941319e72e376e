"""Progress of a run: one moving line on a terminal, a line now and then elsewhere.

Every line is in the log, with its time.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path

from rich.status import Status
from rich.text import Text

from debrief.cli.asking import shown_tokens, shown_usd
from debrief.cli.shared import console
from debrief.errors import DebriefError, without_controls
from debrief.files import make_folder
from debrief.models.usage import ASKED_HERE, RunUsage
from debrief.settings import Settings

_progress = logging.getLogger("debrief.progress")
_LOG = "runs.log"
_LONGEST_LOG = 5_000_000
_PAUSE, _TICK = 15.0, 1.0
"""Seconds between two lines of one stage where no line can move, and where one can."""


class ShownProgress:
    """What a run shows while it is under way.

    Args:
        log: has every line.
        say: shows one line.
    """

    def __init__(self, log: Path, say: Callable[[str], object]) -> None:
        self.log = log
        self._say = say
        self._line, self._expected = "starting", 0
        self._before, self._since = ASKED_HERE.spent, time.monotonic()
        self.pause: Callable[[], AbstractContextManager[object]] = nullcontext
        """Shows nothing within the block, so that a person can be asked."""

    def expect(self, calls: int) -> None:
        """Say from here on how long so many questions may still take."""
        self._expected = calls
        self._before, self._since = ASKED_HERE.spent, time.monotonic()

    def hear(self, line: str) -> None:
        """Show what a stage says."""
        self._line = line
        self.again()

    def again(self) -> None:
        """Show the last line with what was spent by now."""
        spent = ASKED_HERE.spent - self._before
        said = spent_text(spent, self._expected, time.monotonic() - self._since)
        self._say(f"{self._line} · {said}" if said else self._line)

    @property
    def asked(self) -> int:
        """Return how many questions were answered so far."""
        return (ASKED_HERE.spent - self._before).calls


def spent_text(spent: RunUsage, expected: int, seconds: float) -> str:
    """Return in words what was spent, and how long the rest may take; empty without a question.

    Args:
        spent: so far.
        expected: questions in all; 0 where nobody knows.
        seconds: that these took.
    """
    calls, usage = spent.calls, spent.usage
    if not calls:
        return ""
    of = f" of {expected:,}" if expected >= calls else ""
    cost = "price not known" if usage.cost_usd is None else shown_usd(usage.cost_usd)
    tokens = shown_tokens(usage.input_tokens + usage.output_tokens)
    left = seconds / calls * (expected - calls)
    rest = f", about {_duration(left)} left" if expected > calls else ""
    return f"{calls:,}{of} calls, {tokens} tokens, {cost}{rest}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def shown_progress(settings: Settings) -> Iterator[ShownProgress]:
    """Show what stages say within the block, and what models take.

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
                    # Dagster takes the error output for its log while a run is under way.
                    os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as terminal,
                    console(file=terminal).status(
                        _one_line("starting"), refresh_per_second=4
                    ) as status,
                ):
                    shown = ShownProgress(log, lambda line: status.update(_one_line(line)))
                    shown.pause = partial(_paused, status)
                    with _handled(whole, _Said(shown.hear)), _ticking(shown, _TICK):
                        yield shown
            else:
                lines = _Lines()
                shown = ShownProgress(log, lines.hear)
                shown.pause = lines.paused
                try:
                    with _handled(whole, _Said(shown.hear)), _ticking(shown, _PAUSE):
                        yield shown
                finally:
                    lines.put()
    finally:
        _progress.setLevel(former[0])
        _progress.propagate = former[1]
        whole.close()


@contextmanager
def _paused(status: Status) -> Iterator[None]:
    status.stop()
    try:
        yield
    finally:
        status.start()


@contextmanager
def _ticking(shown: ShownProgress, seconds: float) -> Iterator[None]:
    """Show what models take also while a stage says nothing."""
    over = threading.Event()

    def tick() -> None:
        asked = 0
        while not over.wait(seconds):
            if shown.asked > asked:
                asked = shown.asked
                shown.again()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()


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


class _Lines:
    """Prints of each stage its last line, which counts all of it, and of a long one some before."""

    def __init__(self) -> None:
        self._stage, self._held, self._printed = "", "", -_PAUSE

    def hear(self, line: str) -> None:
        """Keep a stage's line until the next stage's, or print it where none was for a while."""
        name = line.partition(" ")[0]
        if name != self._stage:
            self.put()
        self._stage, self._held = name, line
        if time.monotonic() - self._printed > _PAUSE:
            self.put()

    def put(self) -> None:
        """Print what is kept."""
        if self._held:
            print(without_controls(f"  {self._held}"), file=sys.stderr, flush=True)
        self._held, self._printed = "", time.monotonic()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have nothing come after what is said within the block that was before it."""
        self.put()
        yield


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


class StoppedError(DebriefError):
    """Somebody stopped a run."""


def stopped() -> StoppedError:
    """Return what a run that somebody stopped ends with."""
    move = "The same command goes on."
    return StoppedError("The run", "was stopped; what was finished stays", move)
