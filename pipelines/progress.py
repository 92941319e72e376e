"""Progress of a run on the terminal: what the stages say, without Dagster's own bookkeeping."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from assets.weekly import PROGRESS


class _Lines(logging.Handler):
    """Prints what a stage says."""

    def emit(self, record: logging.LogRecord) -> None:
        from debrief.cli.shared import console

        console(stderr=True).print(f"  {record.getMessage()}", soft_wrap=True)


def show_progress() -> None:
    """Print the stages' progress to standard error from now on."""
    logger = logging.getLogger(PROGRESS)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(_Lines())


@contextmanager
def muted() -> Iterator[None]:
    """Print no progress meanwhile, of what is tried and not kept."""
    logger = logging.getLogger(PROGRESS)
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@dg.logger(None, "Prints nothing: for commands that show progress themselves.")
def quiet_logger(_: dg.InitLoggerContext) -> logging.Logger:
    """Return a logger that nothing passes."""
    return logging.Logger("debrief.quiet", logging.CRITICAL + 1)
