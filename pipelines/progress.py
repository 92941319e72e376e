"""Progress of a run on the terminal: what the stages say, without Dagster's own bookkeeping."""

import logging

import dagster as dg
from rich.console import Console

_BOOKKEEPING = ("Dependencies for step",)


class _Lines(logging.Handler):
    """Prints what a stage says, and errors whole."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)

    def emit(self, record: logging.LogRecord) -> None:
        about = getattr(record, "dagster_meta", None) or {}
        said = about.get("orig_message") or record.getMessage()
        if about.get("dagster_event") is not None or said.startswith(_BOOKKEEPING):
            return
        style = "red" if record.levelno >= logging.ERROR else ""
        self._console.print(f"  {said}", style=style, markup=False)


@dg.logger(description="One line a step forward, for people at a terminal.")
def progress_logger(_: dg.InitLoggerContext) -> logging.Logger:
    """Return a logger that prints progress to standard error."""
    logger = logging.Logger("debrief.progress", logging.INFO)
    logger.addHandler(_Lines())
    return logger
