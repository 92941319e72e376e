"""``debrief sources``: what transcripts there are, and what reading them gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
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
    print_unwrapped(out, _scan_table(stats))
    if read:
        print_unwrapped(out, _read_table(stats))
    _print_reasons("Not read", stats, lambda each: each.unread)
    _print_reasons("Without a session", stats, lambda each: each.empty)
    if not read:
        out.print("Turns, tokens and growth: debrief sources --read", style="dim")


def _scan_table(stats: Mapping[str, SourceStats]) -> Table:
    table = _table("transcripts", "files", "sessions", "first", "last", "size", "not read")
    rows = {
        source: (each.transcripts, each.files, each.sessions, each.bytes, each.unread.total())
        for source, each in stats.items()
    }
    totals = [sum(column) for column in zip(*rows.values(), strict=True)]
    for source, (transcripts, files, sessions, size, unread) in {**rows, "all": totals}.items():
        if source == "all":
            table.add_section()
        days = [stats[source].first, stats[source].last] if source in stats else [None, None]
        table.add_row(
            source,
            *(f"{number:,}" for number in (transcripts, files, sessions)),
            *(f"{day:%Y-%m-%d}" if day else "" for day in days),
            _size(size),
            str(unread or ""),
        )
    return table


def _read_table(stats: Mapping[str, SourceStats]) -> Table:
    table = _table(
        *("sessions", "turns", "input", "output", "cache write", "cache read"),
        *("added", "removed", "skipped"),
    )
    rows = {
        source: (
            *(each.sessions, each.turns, each.usage.input, each.usage.output),
            *(each.usage.cache_write, each.usage.cache_read),
            *(each.lines_added, each.lines_removed, each.passed_over),
        )
        for source, each in stats.items()
    }
    for source, numbers in rows.items():
        table.add_row(source, *(f"{number:,}" for number in numbers))
    table.add_section()
    table.add_row("all", *(f"{sum(column):,}" for column in zip(*rows.values(), strict=True)))
    return table


def _table(*headings: str) -> Table:

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("source", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


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
