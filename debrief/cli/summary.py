"""The table that a run ends with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.summary import Failure, Summary

_SHOWN = 8


def print_summary(summary: Summary, console: Console) -> None:
    """Print what was read, scored, found and written, and what failed and why."""
    console.print()
    console.print(_figures(summary))
    if any(rubrics for _, rubrics in summary.rubrics):
        console.print(_rubrics(summary))
    _training_sets(summary, console)
    _list(console, "Failed", summary.failures, "red")
    _list(console, "Skipped, while everything around it was read", summary.passed_over, "yellow")


def _figures(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE, title="Results", title_justify="left", show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("")
    tools = ", ".join(f"{count} {tool}" for tool, count in summary.by_tool)
    weeks = f"{summary.weeks[0]} … {summary.weeks[-1]}" if summary.weeks else ""
    chunked = f"{summary.several_chunks} of them in several chunks"
    rubrics = sum(len(found) for _, found in summary.rubrics)
    samples = sum(made.samples for made in summary.training_sets)
    skipped = f"{summary.repaired} places skipped, {summary.empty} files without a session"
    cost = "cost not known" if summary.cost_usd is None else f"cost ${summary.cost_usd:.2f}"
    for row in (
        ("weeks", len(summary.weeks), weeks),
        ("sessions read", summary.sessions, tools),
        ("", "", skipped),
        ("judged", summary.judged, f"by {summary.evaluator}; {cost}"),
        ("scored", summary.scored, chunked),
        ("rubrics", rubrics, f"{summary.rubric_scores} sessions judged by one"),
        ("training sets", len(summary.training_sets), f"{samples} samples"),
        ("failed", len(summary.failures), "retried by the next run" if summary.failures else ""),
    ):
        table.add_row(*map(str, row))
    return table


def _rubrics(summary: Summary) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="Rubrics: what sets good sessions apart")
    table.title_justify = "left"
    table.add_column("score name")
    table.add_column("rubric")
    table.add_column("effect", justify="right")
    for name, rubrics in summary.rubrics:
        for rubric in rubrics[:_SHOWN]:
            effect = "–" if rubric.effect_size is None else f"{rubric.effect_size:+.2f}"
            table.add_row(name, rubric.name, effect)
            name = ""
    return table


def _training_sets(summary: Summary, console: Console) -> None:
    shown = sorted(summary.training_sets, key=lambda made: (-made.samples, made.path))
    if not shown:
        return
    console.print("Training sets, by samples:")
    for made in shown[: 2 * _SHOWN]:
        console.print(f"  {made.samples:4}  {_short(made.path)}")
    rest = sum(made.samples for made in shown[2 * _SHOWN :])
    if rest:
        console.print(f"  {rest:4}  in {len(shown) - 2 * _SHOWN} others beside them")
    console.print()


def _list(console: Console, title: str, failures: tuple[Failure, ...], style: str) -> None:
    if not failures:
        return
    console.print(f"{title} ({len(failures)}):", style=style)
    for failure in failures[:_SHOWN]:
        said = f"  {failure.stage}: {_short(failure.culprit)}: {failure.reason}"
        console.print(said)
    rest = Counter(failure.reason for failure in failures[_SHOWN:])
    for reason, count in rest.most_common(_SHOWN):
        console.print(f"  … and {count} more: {reason}")
    if len(rest) > _SHOWN:
        console.print(f"  … and {len(rest) - _SHOWN} other reasons, in the UI under raw_sessions")


def _short(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
