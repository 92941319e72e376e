"""``debrief sources``: what transcripts there are, and what reading them gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.progress import Progress
from rich.table import Table

from debrief.cli.console import console, print_json, print_unwrapped
from debrief.cli.options import AsJson
from debrief.errors import InputError

if TYPE_CHECKING:
    from debrief.cli.source_stats import SourceStats

_SHOWN = 12
_SCAN_HEADINGS = "source | transcripts | files | sessions | first | last | size | not read"
_READ_HEADINGS = (
    "source | sessions | turns | input | output | cache write | cache read | added | removed | "
    "skipped"
)


def sources(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders to search; the usual places of this machine's user if none."),
    ] = None,
    read: Annotated[
        bool,
        typer.Option("--read", help="Read everything: turns, tokens, growth, failures by reason."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what was found: transcripts by source, with counts and dates. Writes nothing."""
    from msgspec import to_builtins

    from debrief.cli.source_stats import READ_FIELDS, read_stats, scan_stats
    from debrief.sessions.sources import default_folders, scan

    searched = folders or default_folders(Path.home())
    if not searched:
        raise InputError(
            str(Path.home()), "holds no known tool's transcripts", "Name the folders to search."
        )
    found = scan(searched)
    stats = scan_stats(found)
    if read:
        screen = console(stderr=True)
        with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
            bar = progress.add_task("Reading", total=len(found.entries))
            read_stats(found, stats, lambda: progress.advance(bar))
    if as_json:
        by_source = {source: to_builtins(each) for source, each in stats.items()}
        for each in by_source.values() if not read else ():
            for name in READ_FIELDS:
                del each[name]
        print_json({"folders": [str(folder) for folder in searched], "sources": by_source})
        return
    out = console()
    _print_table(_SCAN_HEADINGS, _scan_rows(stats))
    if read:
        _print_table(_READ_HEADINGS, _read_rows(stats))
    _print_reasons("Not read", stats, lambda each: each.unread)
    _print_reasons("Without a session", stats, lambda each: each.empty)
    if not read:
        out.print("Turns, tokens and growth: debrief sources --read", style="dim")


def _scan_rows(stats: Mapping[str, SourceStats]) -> Iterator[tuple[str | int, ...]]:
    for source, each in stats.items():
        days = (f"{day:%Y-%m-%d}" if day else "" for day in (each.first, each.last))
        unread = each.unread.total()
        yield (source, each.transcripts, each.files, each.sessions, *days, each.bytes, unread)


def _read_rows(stats: Mapping[str, SourceStats]) -> Iterator[tuple[str | int, ...]]:
    for source, each in stats.items():
        usage = (each.usage.input, each.usage.output, each.usage.cache_write, each.usage.cache_read)
        growth = (each.lines_added, each.lines_removed)
        yield (source, each.sessions, each.turns, *usage, *growth, each.passed_over)


def _print_table(headings: str, rows: Iterator[tuple[str | int, ...]]) -> None:
    """Print a row for each source, and one with the sums of what can be added up."""
    first, *others = headings.split(" | ")
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right")
    cells = list(rows)
    sums = [
        "" if heading in ("first", "last") else sum(int(row[place]) for row in cells)
        for place, heading in enumerate(others, 1)
    ]
    for source, *values in [*cells, ("all", *sums)]:
        if source == "all":
            table.add_section()
        texts = [_cell(heading, value) for heading, value in zip(others, values, strict=True)]
        table.add_row(str(source), *texts)
    print_unwrapped(console(), table)


def _cell(heading: str, value: str | int) -> str:
    if isinstance(value, str):
        return value
    if heading == "size":
        return _size(value)
    return "" if heading == "not read" and not value else f"{value:,}"


def _print_reasons(
    title: str, stats: Mapping[str, SourceStats], counts_of: Callable[[SourceStats], Counter[str]]
) -> None:
    rows = sorted(
        (-count, source, reason, each.examples[reason])
        for source, each in stats.items()
        for reason, count in counts_of(each).items()
    )
    if not rows:
        return
    out = console()
    out.print(f"{title} ({-sum(row[0] for row in rows)}):")
    for count, source, reason, example in rows[:_SHOWN]:
        more = "" if count == -1 else " …"
        out.print(f"  {-count:>5}  {source}: {reason}: {example}{more}")
    if len(rows) > _SHOWN:
        out.print(f"         … and {len(rows) - _SHOWN} other reasons; all with --json")


def _size(count: int) -> str:
    if count < 1_000_000:
        return f"{count / 1_000:.1f} KB"
    return f"{count / 1_000_000:.1f} MB" if count < 1_000_000_000 else f"{count / 1e9:.2f} GB"
