"""The words in which signals are shown, on a terminal and on pages alike.

Each is a clause without a capital and without a stop, such as ``interrupted once (turn 4: `git
checkout -- app.py`)``, so that several fit into one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from debrief.markdown import counted, shorten
from debrief.sessions.model import Evidence
from debrief.signals.schema import Change, CheckSignal, Ending, Event, EventKind, SessionSignals

_QUOTE = 90
_TURNS = 3
"""Turns that are named; more are counted."""
_FILES = 3

_ONE: Final[Mapping[EventKind, str]] = {
    "failed_check": "a check failed and did not pass since",
    "refused_change": "the only change was refused",
    "open_request": "it ends without a closing answer",
    "stopped": "a limit stopped it",
}
"""Events of which a session seldom has more than one."""
_COUNTED: Final[Mapping[EventKind, str]] = {
    "foreign_files": "changed or removed somebody else's files {}",
    "destructive": "ran a destructive command {}",
    "exposure": "exposed a secret {}",
    "correction": "corrected {}",
    "interruption": "interrupted {}",
    "refusal": "refused {}",
    "failed_check": "the last checks of {} targets failed",
}


def event_sentence(event: Event) -> str:
    """Return an event in words, with how often it happened, where, and the first place's words."""
    if event.count == 1 and event.kind in _ONE:
        said = _ONE[event.kind]
    elif event.kind == "failed_check":
        said = _COUNTED[event.kind].format(event.count)
    elif event.kind in _ONE:
        said = f"{_ONE[event.kind]} {_times(event.count)}"
    else:
        said = _COUNTED[event.kind].format(_times(event.count))
    return f"{said}{_places(event.evidence)}"


def check_sentence(check: CheckSignal) -> str:
    """Return a check's outcome in words, with its counts and the line that shows it."""
    name = f"`{check.tool}`" + f" in `{check.target}`" * bool(check.target)
    if check.passed is None:
        said = f"the outcome of {name} is unknown"
    elif check.passed and check.worth == "nothing":
        said = f"{name} ended without an error, and no test ran"
    elif check.passed:
        said = f"{name} passed" + " after it had failed" * (check.worth == "fixed_test")
    else:
        said = f"{name} failed"
    if counts := _counts(check):
        said += f": {counts}"
    if not check.covers_change:
        said += ", which says nothing of the last change"
    return f"{said}{_places((check.evidence,))}"


def change_sentence(change: Change) -> str:
    """Return what was changed, in words."""
    parts = []
    if change.files:
        parts.append(f"changed {_named(change.files)}")
    if change.deleted:
        parts.append(f"deleted {_named(change.deleted)}")
    if change.commands:
        commands = ", ".join(
            f"`{shorten(command, _QUOTE)}`" for command in change.commands[:_FILES]
        )
        parts.append(f"changed files by {commands}{_more(change.commands)}")
    if change.commits:
        count = len(change.commits)
        said = "1 commit or push" if count == 1 else f"{count:,} commits or pushes"
        is_one = change.counted is not None and count == 1
        of = f" of {counted(change.counted or 0, 'file')}" if is_one else ""
        parts.append(f"git confirmed {said}{of}{_places(change.commits)}")
    return "; ".join(parts) or "nothing was changed"


def ending_sentence(signals: SessionSignals) -> str:
    """Return how a session ends, in words, with the place."""
    if signals.end is None:
        return "nothing was said"
    said = _ENDINGS[signals.ending]
    return f"{said}{_places((signals.end,))}"


_ENDINGS: Final[Mapping[Ending, str]] = {
    "answered": "ends with an answer",
    "open": "ends without a closing answer",
    "refused": "the only change was refused",
    "interrupted": "ends with an interruption",
    "limit": "a limit stopped it",
}


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _places(evidence: Sequence[Evidence]) -> str:
    """Return where something is seen and the first words there, in brackets; empty for nowhere."""
    if not evidence:
        return ""
    turns = list(dict.fromkeys(place.turn for place in evidence))
    where = f"turn{'s' if len(turns) > 1 else ''} {', '.join(map(str, turns[:_TURNS]))}"
    if len(turns) > _TURNS:
        where += f" and {len(turns) - _TURNS} more"
    first = evidence[0]
    quote = shorten(first.quote, _QUOTE)
    if not quote:
        return f" ({where})"
    # What stands in a call is code; what stands in a message are words.
    return f" ({where}: `{quote}`)" if first.call else f" ({where}: “{quote}”)"


def _counts(check: CheckSignal) -> str:
    """Return how many tests failed, ran and were skipped, as far as the output counts them."""
    parts = []
    if check.failed:
        of = f" of {check.ran:,}" if check.ran is not None else ""
        parts.append(f"{check.failed:,}{of} failed")
    elif check.ran:
        parts.append(f"{counted(check.ran, 'test')} ran")
    if check.skipped:
        parts.append(f"{check.skipped:,} skipped")
    return ", ".join(parts)


def _named(files: Sequence[str]) -> str:
    shown = ", ".join(f"`{file}`" for file in files[:_FILES])
    return f"{counted(len(files), 'file')}: {shown}{_more(files)}"


def _more(items: Sequence[str]) -> str:
    return f" and {len(items) - _FILES:,} more" if len(items) > _FILES else ""
