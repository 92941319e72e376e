"""``debrief export``: training sets as a folder that trainers load."""

from __future__ import annotations

from collections.abc import Mapping

from debrief.cli.console import console
from debrief.errors import ConfigurationError
from debrief.lake import Lake
from debrief.settings import load_settings
from debrief.training.model import Status
from debrief.training.publishing.folder import Published
from debrief.training.publishing.publish import ExportOptions, publish


def export(
    target: str,
    *,
    lake: str,
    form: str,
    task: str,
    fingerprint: str,
    parquet: bool,
    min_quality: float,
    status: str,
    single_calls: bool = False,
) -> None:
    """Publish the lake's training sets and tell what came of it.

    Raises:
        DebriefError: there is no such set or format, or the folder holds something else.
    """
    options = ExportOptions(
        form=form,
        task=task,
        fingerprint=fingerprint,
        parquet=parquet,
        min_overall_quality=min_quality,
        status=status_of(status),
        single_calls=single_calls,
    )
    published = publish(Lake(lake or load_settings().lake), target, options)
    screen = console()
    screen.print(table_of(published))
    for warning in published.warnings:
        console(stderr=True).print(f"debrief: {warning}", style="yellow", soft_wrap=True)
    said = "" if published.changed else " (nothing had changed)"
    screen.print(f"Everything is in {published.target}{said}", soft_wrap=True)
    screen.print(f'Load it: datasets.load_dataset("{published.target}")', soft_wrap=True)


def of_records_alone(given: Mapping[str, bool]) -> None:
    """Refuse options that go with ``--from-recorder`` only.

    Raises:
        ConfigurationError: one of them was given.
    """
    for option, is_given in given.items():
        if is_given:
            raise ConfigurationError(option, "is of records alone", "Add --from-recorder.")


def status_of(text: str) -> Status | None:
    """Return the status that an option names; None for any.

    Raises:
        ConfigurationError: it names none.
    """
    match text:
        case "any":
            return None
        case "ready" | "draft":
            return text
        case _:
            raise ConfigurationError(f"--status {text}", "is none", "Give any, ready or draft.")


def table_of(published: Published) -> object:
    """Return the sets as a table for the screen."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head, side in (("task", "left"), ("fingerprint", "left"), ("train", "right")):
        table.add_column(head, justify="right" if side == "right" else "left")
    table.add_column("eval", justify="right")
    table.add_column("bytes", justify="right")
    for made in published.sets:
        counts = (str(made.lines["train"]), str(made.lines["eval"]), f"{made.size:,}")
        table.add_row(made.task, made.fingerprint, *counts)
    return table
