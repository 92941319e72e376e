"""Lines that tell of records. No name that a file has can give orders to the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from debrief.cli.console import console
from debrief.recorder.paths import readable

if TYPE_CHECKING:
    from debrief.recorder.client import Receipt
    from debrief.recorder.contracts import Meta
    from debrief.recorder.state import RanCommand

MOST_LINES = 30


def ran_line(command: RanCommand, *, running: bool) -> str:
    """Return how a command went."""
    line = " ".join((command.cmd, *command.args))
    place = "" if command.cwd == "." else f" in {readable(command.cwd)}"
    if running:
        return f"{line}{place}: is running"
    if command.exit_code is None:
        return f"{line}{place}: {command.ending.strip('()')}"
    return f"{line}{place}: exit code {command.exit_code}, {command.duration_ms / 1000:.1f} s"


def print_changes(meta: Meta) -> None:
    """Print what a record changes, leaves out, replaces and warns of."""
    out = console()
    for change in meta.changes[:MOST_LINES]:
        numbers = f"+{change.added} -{change.removed}"
        if change.kind == "update" and not (change.added or change.removed):
            numbers = "mode"
        out.print(f"  {change.kind} {readable(change.path)} ({numbers})", soft_wrap=True)
    if len(meta.changes) > MOST_LINES:
        out.print(f"  and {len(meta.changes) - MOST_LINES:,} more")
    if not meta.changes:
        out.print("  nothing was changed")
    for skipped in meta.skipped[:MOST_LINES]:
        reason = readable(skipped.reason)
        out.print(f"  left out {readable(skipped.path)}: {reason}", soft_wrap=True)
    if len(meta.skipped) > MOST_LINES:
        out.print(f"  and {len(meta.skipped) - MOST_LINES:,} more left out")
    if meta.redactions.count:
        kinds = ", ".join(meta.redactions.kinds)
        count = meta.redactions.count
        secrets = "1 secret" if count == 1 else f"{count:,} secrets"
        out.print(f"  {secrets} replaced ({readable(kinds)})", soft_wrap=True)
    for warning in meta.warnings:
        out.print(f"  warning: {readable(warning)}", soft_wrap=True, style="yellow")


def print_missing(reasons: Sequence[str]) -> None:
    """Print what a record lacks before a model may be trained on it."""
    out = console()
    if not reasons:
        out.print("Ready to train on: nothing is missing.")
    for reason in reasons:
        out.print(f"Not ready: {reason}", soft_wrap=True)


def told_of(receipt: Receipt | None) -> str:
    """Return what became of a record on the server."""
    return f"stored as {receipt.status}" if receipt is not None else "stored"
