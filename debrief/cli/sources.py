"""``debrief sources``: what transcripts there are, and what reading them gives."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from rich import box
from rich.table import Table

from debrief.cli.console import console
from debrief.sessions.model import Session, Usage
from debrief.sessions.scanning import Scan, is_told

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 12
_UNKNOWN = "(no known tool)"


class SourceTally(Struct):
    """What was found of one source; the second half only after everything was read."""

    transcripts: int = 0
    files: int = 0
    """With those that complete a transcript: subagents', settings."""
    bytes: int = 0
    sessions: int = 0
    first: datetime | None = None
    last: datetime | None = None
    unread: Counter[str] = field(default_factory=Counter)
    """How many transcripts gave no session, by reason."""
    empty: Counter[str] = field(default_factory=Counter)
    """The same of files that never held one: reported, but no failure."""
    examples: dict[str, str] = field(default_factory=dict)
    """The first path that a reason was told of, and the line in it."""
    turns: int = 0
    usage: Usage = Usage()
    lines_added: int = 0
    lines_removed: int = 0
    passed_over: int = 0
    """Places in transcripts that could not be read."""


def list_sources(folders: Sequence[Path], *, read: bool = False, as_json: bool = False) -> None:
    """Print what is found below ``folders``, by source.

    Args:
        folders: to search; the usual places of this machine's user if none.
        read: also read every transcript, and print turns, tokens, growth and failures.
        as_json: print one JSON object instead of tables.

    Raises:
        InputError: no folder was named, and none of the usual ones is there.
    """
    from debrief.sessions.sources import default_folders, scan

    searched = list(folders) or default_folders(Path.home())
    out = console()
    if not searched:
        from debrief.errors import InputError

        raise InputError(
            str(Path.home()), "holds no known tool's transcripts", "Name the folders to search."
        )
    found = scan(searched)
    tallies = tallied(found)
    if read:
        with _progress(len(found.entries)) as told:
            read_all(found, tallies, told)
    if as_json:
        _print_json(searched, tallies, read)
        return
    _print_whole(out, _found_table(tallies))
    if read:
        _print_whole(out, _read_table(tallies))
    _print_reasons(out, "Not read", tallies, lambda tally: tally.unread)
    _print_reasons(out, "Without a session", tallies, lambda tally: tally.empty)
    if not read:
        out.print("Turns, tokens and growth: debrief sources --read", style="dim")


def tallied(found: Scan) -> dict[str, SourceTally]:
    """Return what a scan tells of each source, by name."""
    tallies: dict[str, SourceTally] = {}
    sessions: dict[str, set[str]] = {}
    counted: set[str] = set()
    for entry in found.entries:
        if not is_told(entry):
            continue
        tally = tallies.setdefault(entry.source or _UNKNOWN, SourceTally())
        tally.transcripts += 1
        for stamp in entry.files:
            if stamp.path not in counted:
                counted.add(stamp.path)
                tally.files += 1
                tally.bytes += stamp.size
        if entry.session_id:
            sessions.setdefault(entry.source, set()).add(entry.session_id)
            tally.first = min(tally.first or entry.started, entry.started)
            tally.last = max(tally.last or entry.started, entry.started)
        else:
            _count(tally, entry.path, entry.line, entry.reason, entry.expected)
    for source, ids in sessions.items():
        tallies[source].sessions = len(ids)
    return dict(sorted(tallies.items(), key=lambda item: (item[0] == _UNKNOWN, item[0])))


def read_all(found: Scan, tallies: dict[str, SourceTally], told: _Told | None = None) -> None:
    """Read every transcript of a scan, one session at a time, and add up what it gives."""
    from debrief.sessions.sources import read_week

    for tally in tallies.values():
        tally.sessions = 0
        tally.first = tally.last = None
        tally.unread.clear()
        tally.empty.clear()
        tally.examples.clear()
    for week in found.weeks():
        for item in read_week(found, week):
            tally = tallies.setdefault(item.source or _UNKNOWN, SourceTally())
            if isinstance(item, Session):
                _add(tally, item)
            else:
                _count(tally, item.path, item.line, item.reason, item.expected)
            if told is not None:
                told()


def _add(tally: SourceTally, session: Session) -> None:
    tally.sessions += 1
    tally.turns += session.prompt_count
    tally.usage += session.usage
    tally.lines_added += session.lines_added
    tally.lines_removed += session.lines_removed
    tally.passed_over += len(session.problems)
    tally.first = min(tally.first or session.started, session.started)
    tally.last = max(tally.last or session.ended, session.ended)


def _count(tally: SourceTally, path: str, line: int, reason: str, expected: bool) -> None:
    (tally.empty if expected else tally.unread)[reason] += 1
    tally.examples.setdefault(reason, f"{path}:{line}" if line else path)


class _Told:
    """Counts what is done on a terminal's last line."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> _Told:
        return self

    def __call__(self) -> None:
        self._done += 1
        if self._shown and self._done % 10 == 0:
            print(f"\r{self._done} of {self._total}", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _progress(total: int) -> _Told:
    return _Told(total)


def _print_whole(out: Console, table: Table) -> None:
    """Print a table without cutting a figure short, however narrow the terminal is."""
    needed = out.measure(table, options=out.options.update(max_width=1_000)).maximum
    usual, out.width = out.width, max(needed, out.width)
    out.print(table)
    out.width = usual


def _found_table(tallies: dict[str, SourceTally]) -> Table:
    table = _table(
        "source", "transcripts", "files", "sessions", "first", "last", "size", "not read"
    )
    for source, tally in tallies.items():
        table.add_row(
            source,
            f"{tally.transcripts:,}",
            f"{tally.files:,}",
            f"{tally.sessions:,}",
            f"{tally.first:%Y-%m-%d}" if tally.first else "",
            f"{tally.last:%Y-%m-%d}" if tally.last else "",
            _size(tally.bytes),
            str(tally.unread.total() or ""),
        )
    table.add_section()
    table.add_row(
        "all",
        f"{sum(tally.transcripts for tally in tallies.values()):,}",
        f"{sum(tally.files for tally in tallies.values()):,}",
        f"{sum(tally.sessions for tally in tallies.values()):,}",
        "",
        "",
        _size(sum(tally.bytes for tally in tallies.values())),
        str(sum(tally.unread.total() for tally in tallies.values()) or ""),
    )
    return table


def _read_table(tallies: dict[str, SourceTally]) -> Table:
    table = _table(
        "source",
        "sessions",
        "turns",
        "input",
        "output",
        "cache write",
        "cache read",
        "added",
        "removed",
        "passed over",
    )
    rows = {source: _figures(tally) for source, tally in tallies.items()}
    for source, figures in rows.items():
        table.add_row(source, *(f"{figure:,}" for figure in figures))
    table.add_section()
    table.add_row("all", *(f"{sum(column):,}" for column in zip(*rows.values(), strict=True)))
    return table


def _figures(tally: SourceTally) -> tuple[int, ...]:
    return (
        tally.sessions,
        tally.turns,
        tally.usage.input,
        tally.usage.output,
        tally.usage.cache_write,
        tally.usage.cache_read,
        tally.lines_added,
        tally.lines_removed,
        tally.passed_over,
    )


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _print_reasons(
    out: Console,
    title: str,
    tallies: dict[str, SourceTally],
    counter: Callable[[SourceTally], Counter[str]],
) -> None:
    rows = [
        (-count, source, reason, tally.examples[reason])
        for source, tally in tallies.items()
        for reason, count in counter(tally).items()
    ]
    if not rows:
        return
    out.print(f"{title} ({-sum(row[0] for row in rows)}):")
    for count, source, reason, example in sorted(rows)[:_SHOWN]:
        which = example if count == -1 else f"{example} …"
        out.print(f"  {-count:>5}  {source}: {reason}: {which}", soft_wrap=True)
    if len(rows) > _SHOWN:
        out.print(f"         … and {len(rows) - _SHOWN} other reasons; all with --json")


def _print_json(searched: Sequence[Path], tallies: dict[str, SourceTally], read: bool) -> None:
    import msgspec

    sources: dict[str, Any] = {}
    for source, tally in tallies.items():
        shown = msgspec.to_builtins(tally)
        if not read:
            for key in ("turns", "usage", "lines_added", "lines_removed", "passed_over"):
                del shown[key]
        sources[source] = shown
    value = {"folders": [str(folder) for folder in searched], "sources": sources}
    print(msgspec.json.format(msgspec.json.encode(value)).decode())


def _size(count: int) -> str:
    if count < 1_000_000:
        return f"{count / 1_000:.1f} KB"
    return f"{count / 1_000_000:.1f} MB" if count < 1_000_000_000 else f"{count / 1e9:.2f} GB"
