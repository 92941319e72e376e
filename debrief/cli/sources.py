"""``debrief sources``: what transcripts there are, and what reading them gives."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box, filesize
from rich.progress import Progress
from rich.table import Table

from debrief.cli.shared import AsJson, console, print_json, print_unwrapped, without_secrets

if TYPE_CHECKING:
    from debrief.sessions.scanning import Scan

_UNKNOWN = "(no known tool)"
_SHOWN = 12
_SCAN_HEADINGS = "source | transcripts | files | sessions | first | last | size | not read"
_READ_HEADINGS = (
    "source | sessions | turns | input | output | cache write | cache read | added | removed | "
    "skipped"
)
_READ_FIELDS = ("turns", "usage", "lines_added", "lines_removed", "passed_over")
"""What is counted only when everything is read."""
_USAGE = ("input", "output", "cache_write", "cache_read")


@dataclass
class SourceStats:
    """What was found of one source; the second half only after everything was read."""

    transcripts: int = 0
    files: int = 0
    """With those that complete a transcript: subagents', settings."""
    bytes: int = 0
    sessions: int = 0
    first: datetime | None = None
    last: datetime | None = None
    without_time: int = 0
    """Sessions that neither a record nor a file's name tells the time of."""
    unread: Counter[str] = field(default_factory=Counter)
    """How many transcripts gave no session, by reason."""
    empty: Counter[str] = field(default_factory=Counter)
    """The same of files that never held one: reported, but no failure."""
    examples: dict[str, str] = field(default_factory=dict)
    """By reason, the first path that it was reported for, and the line in it."""
    turns: int = 0
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_USAGE, 0))
    lines_added: int = 0
    lines_removed: int = 0
    passed_over: int = 0
    """Places in transcripts that could not be read."""

    def add_session(self, first: datetime, last: datetime) -> None:
        """Count a session, and widen the range of times."""
        from debrief.sessions.readers.values import NO_TIME

        self.sessions += 1
        if first == NO_TIME:
            self.without_time += 1
            return
        self.first = min(self.first or first, first)
        self.last = max(self.last or last, last)

    def add_failure(self, path: str, line: int, reason: str, expected: bool) -> None:
        """Count a transcript that gave no session."""
        (self.empty if expected else self.unread)[reason] += 1
        self.examples.setdefault(reason, f"{path}:{line}" if line else path)


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
    from debrief.sessions.redaction import redact_rows
    from debrief.sessions.sources import default_folders, no_session_in, scan

    searched = folders or default_folders(Path.home(), os.environ)
    if not searched:
        raise no_session_in(searched)
    found = scan(searched, redact_rows=partial(redact_rows, redactor=without_secrets()))
    stats = scan_stats(found)
    if read:
        screen = console(stderr=True)
        with Progress(console=screen, transient=True, disable=not screen.is_terminal) as progress:
            bar = progress.add_task("Reading", total=len(found.entries))
            read_stats(found, stats, lambda: progress.advance(bar))
    _print(stats, searched, read, as_json)
    if not any(stat.sessions for stat in stats.values()):
        raise no_session_in(searched)


def _print(
    stats: Mapping[str, SourceStats], searched: Iterable[Path], read: bool, as_json: bool
) -> None:
    if as_json:
        by_source = {source: dict(vars(each)) for source, each in stats.items()}
        for each in by_source.values() if not read else ():
            for name in _READ_FIELDS:
                del each[name]
        print_json({"folders": [str(folder) for folder in searched], "sources": by_source})
        return
    from debrief.keys import FIRST_WEEK
    from debrief.markdown import counted

    out = console()
    _print_table(_SCAN_HEADINGS, starmap(_scan_row, stats.items()))
    if read:
        _print_table(_READ_HEADINGS, starmap(_read_row, stats.items()))
    for source, own in stats.items():
        if own.without_time:
            sessions = counted(own.without_time, "session")
            out.print(f"{source}: {sessions} without a time, in the week of {FIRST_WEEK}")
    _print_reasons("Not read", stats, lambda stats: stats.unread)
    _print_reasons("Without a session", stats, lambda stats: stats.empty)
    if not read:
        out.print("Turns, tokens and growth: debrief sources --read", style="dim")


def scan_stats(found: Scan) -> dict[str, SourceStats]:
    """Return what a scan says of each source, by name; files of no known tool come last."""
    from debrief.sessions.scanning import is_reported

    stats: dict[str, SourceStats] = {}
    sessions: dict[str, set[str]] = {}
    known: set[str] = set()
    for entry in found.entries:
        if not is_reported(entry):
            continue
        own = stats.setdefault(entry.source or _UNKNOWN, SourceStats())
        own.transcripts += 1
        for stamp in entry.files:
            if stamp.path not in known:
                known.add(stamp.path)
                own.files += 1
                own.bytes += stamp.size
        if entry.session_id:
            ids = sessions.setdefault(entry.source, set())
            if entry.session_id not in ids:  # all transcripts of a session have its time
                ids.add(entry.session_id)
                own.add_session(entry.started, entry.started)
        else:
            own.add_failure(entry.path, entry.line, entry.reason, entry.expected)
    return dict(sorted(stats.items(), key=lambda item: (item[0] == _UNKNOWN, item[0])))


def read_stats(found: Scan, stats: dict[str, SourceStats], advance: Callable[[], None]) -> None:
    """Read every transcript of a scan, one session at a time, and add up what it gives.

    Args:
        found: the scan.
        stats: of the scan; what reading finds replaces sessions, times and failures.
        advance: is called after each session.
    """
    from debrief.sessions.model import Session
    from debrief.sessions.sources import read_week

    for own in stats.values():
        own.sessions, own.first, own.last, own.without_time = 0, None, None, 0
        for counts in (own.unread, own.empty, own.examples):
            counts.clear()
    for week in found.weeks():
        for item in read_week(found, week):
            own = stats.setdefault(item.source or _UNKNOWN, SourceStats())
            if isinstance(item, Session):
                own.turns += item.prompt_count
                for name in _USAGE:
                    own.usage[name] += getattr(item.usage, name)
                own.lines_added += item.lines_added
                own.lines_removed += item.lines_removed
                own.passed_over += len(item.problems)
                own.add_session(item.started, item.ended)
            else:
                own.add_failure(item.path, item.line, item.reason, item.expected)
            advance()


def _scan_row(source: str, each: SourceStats) -> tuple[str | int, ...]:
    days = (f"{day:%Y-%m-%d}" if day else "" for day in (each.first, each.last))
    unread = each.unread.total()
    return (source, each.transcripts, each.files, each.sessions, *days, each.bytes, unread)


def _read_row(source: str, each: SourceStats) -> tuple[str | int, ...]:
    growth = (each.lines_added, each.lines_removed)
    return (source, each.sessions, each.turns, *each.usage.values(), *growth, each.passed_over)


def _print_table(headings: str, rows: Iterable[tuple[str | int, ...]]) -> None:
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
        return filesize.decimal(value)
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
