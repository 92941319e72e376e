"""Find the commands that failed in a session, and what then worked.

What only answers is left out: a search without a match, a check that found something. So is what
the repository's own programs do while they are being worked on, what a person refused, what the
machine or the network did, and an error that says no more than that something failed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from debrief.friction.call_sequence import CallMade, Prices, call_sequences, cost_of
from debrief.friction.call_status import (
    has_failed,
    is_answer,
    is_look,
    is_stopped,
    went_well,
)
from debrief.friction.normalize import (
    culprit,
    error_line,
    is_plain,
    name_of,
    parts_of,
    pattern,
    plain_error,
    program_of,
    says_why,
    shown,
    text_of_blocks,
)
from debrief.friction.not_found import NotFound, not_found_in, not_found_lines
from debrief.friction.resolution import resolution, without_path
from debrief.friction.schema import FrictionEvent
from debrief.markdown import shorten
from debrief.sessions.model import Session
from debrief.signals.shell import bare_words, check_of

VERSION = "13"
"""Raised when the same session gives other events."""
_NEAR = 12
"""Calls within which what worked is looked for."""
_LONGEST_WHAT, _LONGEST_QUOTE = 200, 160
_SHOWS_LOGS = re.compile(r"(?:^|[\s-])(?:logs?|inspect|view|journalctl)\b")
"""Commands that print what happened elsewhere."""
_UNKNOWN_OPTION = re.compile(
    r"\b(?:unknown|unrecogni[sz]ed|unexpected|invalid|no such|undefined)\W+"
    r"(?:\w+ )?(?:flag|option|argument|parameter)s?\b",
    re.IGNORECASE,
)
_BUILDS_AND_RUNS = frozenset({"go run", "cargo run", "swift run", "dotnet run", "deno run"})
_INTERPRETERS = re.compile(r"(?:python[\d.]*|node|ruby|perl|php|bash|sh|zsh|deno|bun)\Z")
_SCRIPT = re.compile(r"[\w./-]+\.\w{1,4}\Z")


def failed_commands(session: Session, prices: Prices) -> list[FrictionEvent]:
    """Return the commands that failed in a session, in order; each thing once a message.

    Args:
        session: in its normal form.
        prices: returns the price of a model by its name; None when it is not known.
    """
    found: dict[tuple[str, int], FrictionEvent] = {}
    for sequence in call_sequences(session):
        fine = _went_well(sequence)
        for place, made in enumerate(sequence):
            failure = _failure(made)
            if failure is None:
                continue
            rest = sequence[place + 1 : place + 1 + _NEAR]
            if failure.missing is None:
                rest = list(takewhile(lambda later: later.call.action != "edit", rest))
            until, instead = resolution(failure.words, rest)
            if failure.words in fine and not without_path(instead)[0]:
                instead = ""  # it does work, though not at that time
            calls = (made, *until)
            usage, cost, minutes = cost_of(calls, prices)
            event = FrictionEvent(
                session_id=session.id,
                repository=session.repository,
                at=made.at or session.started,
                evidence=made.evidence(shorten(failure.line.strip(), _LONGEST_QUOTE)),
                what=shorten(failure.what, _LONGEST_WHAT),
                instead=instead if instead != shown(failure.words) else "",
                command=shown(failure.words),
                missing=failure.missing.name if failure.missing is not None else "",
                calls=tuple(each.call.id for each in calls),
                usage=usage,
                cost_usd=cost,
                minutes=minutes,
            )
            found.setdefault((event.what, made.message), event)
    return sorted(found.values(), key=lambda event: (event.evidence.turn, event.at))


def _went_well(sequence: Sequence[CallMade]) -> frozenset[tuple[str, ...]]:
    """Return the simple commands, as typed, that went well at least once, alone on their line."""
    parts = (parts_of(made.call.command) for made in sequence if went_well(made.call))
    return frozenset(words for (words, *others) in filter(None, parts) if not others)


class _Failure(NamedTuple):
    """A simple command that failed, and why."""

    words: tuple[str, ...]
    line: str
    what: str
    missing: NotFound | None = None


def _failure(made: CallMade) -> _Failure | None:
    """Return what failed of a call; None where nothing did, or nothing that is known to recur."""
    call = made.call
    if call.action != "run" or is_stopped(call):
        return None
    if not has_failed(call):
        return _behind_a_pipe(made)
    result = text_of_blocks(call.result or "")
    line = error_line(result)
    words = culprit(call.command, line)
    if not line or not words or _was_not_run(result):
        return None
    program = program_of(words)
    if missing := not_found_in(line, program):
        is_elsewhere = any(_SHOWS_LOGS.search(shown(part)) for part in parts_of(call.command))
        return None if is_elsewhere else _Failure(words, line, missing.what, missing)
    if is_answer(call) and not pattern("refused").search(result[:600]):
        return None
    is_silent = not says_why(line, call.command) or pattern("outside").search(line)
    is_own = line.startswith(f"{program}:") or _UNKNOWN_OPTION.search(line)
    is_finding = check_of(bare_words(words)) and not is_own
    if is_silent or is_finding or is_look(words) or _is_own_program(words, line):
        return None
    if is_plain(words) and not line.startswith(f"{program}:"):
        return None  # it is of a file that it printed
    return _Failure(words, line, f"{name_of(words)}: {plain_error(line)}")


def _was_not_run(result: str) -> bool:
    """Return whether a person refused the call, or it was called off because another failed."""
    return pattern("denied").search(result[:400]) is not None


def _is_own_program(words: Sequence[str], line: str) -> bool:
    """Return whether a command may run a program that is being worked on: one of a path, one that
    is built and run, a script or a module of an interpreter that has no error of its own."""
    program = program_of(words)
    if words[0].startswith(".") or " ".join(words[:2]) in _BUILDS_AND_RUNS:
        return True
    if not _INTERPRETERS.match(program) or line.startswith(f"{program}:"):
        return False
    return any(word in ("-m", "-c", "-e") or _SCRIPT.match(word) for word in words[1:3])


def _behind_a_pipe(made: CallMade) -> _Failure | None:
    """Return a program that is not there although the call went well: its output went into another
    program, whose exit status is that of the line."""
    call = made.call
    if call.status != "ok" or "|" not in call.command:
        return None
    for line in not_found_lines(call):
        for words in parts_of(call.command):
            missing = not_found_in(line, program_of(words))
            if missing is not None and not is_plain(words) and missing.is_called_by(words):
                return _Failure(words, line, missing.what, missing)
    return None
