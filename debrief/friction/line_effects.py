"""Compare sessions before and after a line about a friction came into their prompt files.

Prompt files are taken as each session had them (``prompt_snapshots``). A line is known by the
comment below it, by its words, or because a model found that it says the same. Nothing but time
sets the two sides apart, so a change is what went with the line, not what it did.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import Final, get_args

from msgspec import Struct

from debrief.friction.prompt_items import items_of
from debrief.friction.schema import LineEffect, LineOutcome, RecurringFriction
from debrief.markdown import interval, plain, shorten, table
from debrief.stats import difference_of_shares

VERSION = "2"
"""Raised when the same sessions and frictions give other effects."""
_FEWEST_SESSIONS = 5
"""On each side of a line; what one session did is no effect, whatever its interval says."""
_SHOWN_LINE = 400
_MARK = re.compile(r"\A\s*(?:[-*+]|\d{1,3}[.)]|>|#{1,6})?\s*(?:\[[ x]\]\s+)?")
_SIGNS = re.compile(r"[`*_\"“”'’]")
_COMMENT = re.compile(r"<!-- friction ([0-9a-f]+)\b")


class PromptedSession(Struct, frozen=True, kw_only=True):
    """A session whose prompt files are known."""

    id: str
    repository: str
    started: datetime
    prompt: str
    """All of its prompt files."""


def line_effects(
    frictions: Iterable[RecurringFriction],
    sessions: Iterable[PromptedSession],
    asked: Mapping[str, Mapping[str, bool]],
) -> list[LineEffect]:
    """Return what became of each friction that a line of the prompt files is about.

    Args:
        frictions: of any repositories.
        sessions: whose prompt files are known.
        asked: of a friction that reviews found, by its id: the sessions that were asked about it,
            and whether they had it.

    Returns:
        By repository, in the order of the outcomes.
    """
    by_repository: dict[str, list[PromptedSession]] = defaultdict(list)
    for session in sorted(sessions, key=lambda session: (session.started, session.id)):
        by_repository[session.repository].append(session)
    effects: list[LineEffect] = []
    for friction in frictions:
        own = by_repository.get(friction.repository, [])
        had = {session.id: session.id in friction.sessions for session in own}
        known = asked.get(friction.id, {}) if friction.by else had
        effects += _effects_on(friction, [one for one in own if one.id in known], known)
    effects.sort(
        key=lambda row: (row.repository, _ORDER.index(row.outcome), row.change or 0.0, row.line)
    )
    return effects


_ORDER: tuple[LineOutcome, ...] = get_args(LineOutcome)


def _effects_on(
    friction: RecurringFriction, sessions: Sequence[PromptedSession], affected: Mapping[str, bool]
) -> Iterator[LineEffect]:
    about = {session.id: _line_about(friction, session.prompt) for session in sessions}
    with_line = [session for session in sessions if about[session.id]]
    if not with_line:
        return
    since = with_line[0].started
    before = [affected[one.id] for one in sessions if one.started < since and not about[one.id]]
    after = [affected[one.id] for one in with_line]
    yield _effect(friction, about[with_line[0].id], since, before, after)


def _effect(
    friction: RecurringFriction,
    line: str,
    since: datetime,
    before: Sequence[bool],
    after: Sequence[bool],
) -> LineEffect:
    change = low = high = None
    outcome: LineOutcome = "always_there"
    if before:
        sides = (sum(after), len(after)), (sum(before), len(before))
        found = difference_of_shares(*sides)
        change, low, high = (round(each, 4) for each in (found.value, found.low, found.high))
        half = sum(before) / len(before) / 2
        if _is_back(after):
            outcome = "back"
        elif min(len(before), len(after)) < _FEWEST_SESSIONS:
            outcome = "too_early"
        elif high < 0:
            outcome = "fewer"
        elif low > 0:
            outcome = "more"
        else:
            outcome = "no_change" if half > 0 and low > -half else "too_early"
    return LineEffect(
        repository=friction.repository,
        friction_id=friction.id,
        line=line,
        since=since,
        sessions_before=len(before),
        affected_before=sum(before),
        sessions_after=len(after),
        affected_after=sum(after),
        change=change,
        low=low,
        high=high,
        outcome=outcome,
    )


def _is_back(after: Sequence[bool]) -> bool:
    """Return whether five sessions in a row did without, and one of the newest five has it."""
    runs = [(has, len(list(group))) for has, group in groupby(after)]
    stayed_away = any(not has and count >= _FEWEST_SESSIONS for has, count in runs[:-1])
    return stayed_away and any(after[-_FEWEST_SESSIONS:])


def _line_about(friction: RecurringFriction, prompt: str) -> str:
    """Return the first line of a prompt file that is about a friction; empty without one."""
    keys = {_line_key(friction.line), _line_key(_MARK.sub("", friction.existing))} - {""}
    return next(
        (line for line, key, ids in _lines_of(prompt) if friction.id in ids or key in keys), ""
    )


@lru_cache(maxsize=256)
def _lines_of(prompt: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the lines without their marks, each with what tells it apart and the frictions that a
    comment below names."""
    lines: list[tuple[str, str, tuple[str, ...]]] = []
    for item in items_of(prompt):
        if lines and (named := _COMMENT.findall(item.text)):
            line, key, ids = lines[-1]
            lines[-1] = (line, key, (*ids, *named))
        elif (line := _MARK.sub("", item.text)) and not line.startswith("<!--"):
            lines.append((line[:_SHOWN_LINE], _line_key(line), ()))
    return tuple(lines)


def _line_key(line: str) -> str:
    """Return what is the same in two spellings of a line."""
    return " ".join(_SIGNS.sub("", line).casefold().split()).rstrip(".!:")


OUTCOMES_SHOWN: Final[Mapping[LineOutcome, str]] = {
    "fewer": "yes: fewer sessions have it",
    "more": "no: more sessions have it",
    "no_change": "no change to speak of",
    "back": "it came back",
    "too_early": "too early to tell",
    "always_there": "cannot tell: every session had the line",
}
"""What became of a friction after a line about it, in a few words."""


def shown_effect(row: LineEffect) -> tuple[str, str, str, str, str, str, str]:
    """Return a row to read: repository, line, since, before, after, change and outcome."""
    return (
        row.repository,
        shorten(row.line, 80),
        f"{row.since:%Y-%m-%d}",
        f"{row.affected_before} of {row.sessions_before}",
        f"{row.affected_after} of {row.sessions_after}",
        interval(row.change, row.low, row.high, "+.0%"),
        OUTCOMES_SHOWN[row.outcome],
    )


def effects_markdown(effects: Iterable[LineEffect]) -> str:
    """Return the effects of lines as a table, and what it can say."""
    rows = [tuple(map(plain, shown_effect(row))) for row in effects]
    if not rows:
        return NO_EFFECTS
    head = ("Repository", "Line", "Since", "Before", "After", "Change", "Helped?")
    note = (
        "The share of sessions with the friction before the line was added, and after, among "
        "sessions whose prompt files are known. The change has a 95 % interval; other changes in "
        "that time are part of it."
    )
    return f"{table(head, rows)}\n\n{note}\n"


NO_EFFECTS = "No CLAUDE.md or AGENTS.md of a session holds a line about recurring friction."
