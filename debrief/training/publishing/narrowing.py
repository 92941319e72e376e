"""Narrow an export before conversion: another split, benchmarks' problems left out, all counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from operator import attrgetter
from typing import Literal

import msgspec
from msgspec import Struct

from debrief.markdown import counted
from debrief.reports import Markdown
from debrief.training.contamination import (
    CONTAMINATED_BY,
    Contamination,
    Problems,
    Where,
)
from debrief.training.conversations import label
from debrief.training.kinship import Kinship
from debrief.training.model import LineRow, Split
from debrief.training.publishing.folder import SIDES
from debrief.training.splits import PlacedLine, SplitRule, later_than_eval

Row = tuple[str, str, LineRow]
"""Task and fingerprint of the set that a line is of, and the line."""
_MOST_ROWS = 15
RUNS_OVER = "began before the first day that is held out and ended on it or later"


def session_of(row: LineRow) -> str:
    """Return the session that a line is of, for a subagent's the one that it worked for."""
    return row.parent_session or row.session_id


def resplit(
    rows: Sequence[LineRow], rule: SplitRule, eval_share: float, kinship: Kinship
) -> tuple[dict[str, Split], dict[str, str]]:
    """Return the side of each session of some lines by a rule, and why others have none.

    Args:
        rows: of all sets.
        rule: how sides are told.
        eval_share: as ``SplitRule.side_of`` takes it.
        kinship: of all sessions of the lake.
    """
    ended: dict[str, LineRow] = {}
    for row in rows:
        name = session_of(row)
        ended[name] = max(ended.get(name, row), row, key=attrgetter("ended"))
    ids = {label(session_id): session_id for session_id in kinship.traits}
    sides: dict[str, Split] = {}
    left_out: dict[str, str] = {}
    for name, last in ended.items():
        session_id = ids[name]
        if rule.runs_over(kinship.traits[session_id].started, last.ended):
            left_out[name] = RUNS_OVER
        else:
            sides[name] = rule.side_of_family(*kinship.span_of(session_id), eval_share)
    return sides, left_out


class _Message(Struct, frozen=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str


class _Facts(Struct, frozen=True):
    repository: str
    base_commit: str
    parent_session: str = ""


class _Line(Struct, frozen=True):
    messages: tuple[_Message, ...]
    metadata: _Facts

    @property
    def given(self) -> Iterator[tuple[Where, str]]:
        """What no model wrote for this line, and where it is."""
        asked: Where = "subagent's task" if self.metadata.parent_session else "request"
        places: dict[str, Where] = {"system": "system prompt", "tool": "result", "user": asked}
        for message in self.messages:
            if message.role in places:
                yield places[message.role], message.content


_LINE = msgspec.json.Decoder(_Line)


class Decontamination(Struct, frozen=True, kw_only=True):
    """What a search for benchmarks' problems came to."""

    found: dict[str, Contamination]
    """By session."""
    near: int
    """Sessions of a problem's repository that stay, as their commit is another or not known."""
    problems: Problems

    @property
    def reasons(self) -> dict[str, str]:
        """Why sessions are left out."""
        return {
            name: f"holds a problem of {of.benchmark} (by its {of.by})"
            for name, of in self.found.items()
        }

    @property
    def head(self) -> tuple[str, ...]:
        """Return the headings of ``rows``."""
        return ("benchmark", "problems", *(f"by {by}" for by in CONTAMINATED_BY))

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Return each benchmark, its problems, and the sessions left out by each of
        ``CONTAMINATED_BY``."""
        left_out = Counter(
            (contamination.benchmark, contamination.by) for contamination in self.found.values()
        )
        return [
            (name, f"{problems:,}", *(str(left_out[name, by]) for by in CONTAMINATED_BY))
            for name, problems in sorted(self.problems.counts.items())
        ]

    def summary(self) -> str:
        """Return it in a line."""
        by = Counter((of.benchmark, of.by) for of in self.found.values())
        found = (f"{count} of {name} by its {by}" for (name, by), count in sorted(by.items()))
        named = ", ".join(found) or "none"
        problems = counted(sum(self.problems.counts.values()), "problem")
        return f"of {problems} of benchmarks, sessions left out: {named}"


def decontaminate(lines: Iterable[tuple[LineRow, bytes]], problems: Problems) -> Decontamination:
    """Look for benchmarks' problems in all that no model wrote of lines, as they are stored."""
    found: dict[str, Contamination] = {}
    near: set[str] = set()
    for row, line in lines:
        name = session_of(row)
        read = _LINE.decode(line)
        of = problems.found_in(read.given, read.metadata.repository, read.metadata.base_commit)
        if of is not None:
            found.setdefault(name, of)
        elif problems.is_near(read.metadata.repository):
            near.add(name)
    return Decontamination(found=found, near=len(near - found.keys()), problems=problems)


def composition(rows: Iterable[Row]) -> list[tuple[str, str, str, str]]:
    """Return what some lines are, counted on both sides by everything that can be asked for."""
    counts: dict[str, defaultdict[str, Counter[Split]]] = {
        name: defaultdict(Counter) for name in _COUNTED
    }
    for task, fingerprint, row in rows:
        version = f"{row.tool} {row.tool_version or '(not known)'}"
        values = (task, fingerprint, row.tool, version)
        for name, value in zip(_COUNTED, (*values, row.model, row.kind, row.licence), strict=True):
            counts[name][value][row.split] += 1
    return list(_rows_of(counts))


_COUNTED = ("task", "fingerprint", "tool", "version", "model", "kind of work", "licence")


def _rows_of(
    counts: dict[str, defaultdict[str, Counter[Split]]],
) -> Iterator[tuple[str, str, str, str]]:
    for name, found in counts.items():
        ranked = sorted(found.items(), key=lambda item: (-item[1].total(), item[0]))
        for value, sides in ranked[:_MOST_ROWS]:
            shown = _code(value) if value else "not known"
            yield name, shown, str(sides["train"]), str(sides["eval"])
        if rest := ranked[_MOST_ROWS:]:
            train, held = (sum(sides[side] for _, sides in rest) for side in SIDES)
            yield name, f"{len(rest)} more", str(train), str(held)


def _code(text: str) -> Markdown:
    """Return a name as code: nothing in it is Markdown, and placeholders stay what they are."""
    return Markdown(f"`{' '.join(text.replace('`', chr(39)).split())}`")


class SidesInTime(Struct, frozen=True, kw_only=True):
    """How the sides of a split lie in time."""

    by: str
    """The rule: ``week``, ``repository`` or ``time``."""
    first_day: date | None
    """Of what is held out, where sides go by time."""
    both: int
    """Repositories with lines on both sides."""
    later: int
    """Those of them with a line to train on that ended after one that is held out began."""


def sides_in_time(rows: Iterable[LineRow], rule: SplitRule) -> SidesInTime:
    """Return how the sides of the split lie in time."""
    later = later_than_eval(
        PlacedLine(row.repository, row.split, row.started, row.ended)
        for row in rows
        if row.repository
    )
    return SidesInTime(
        by=rule.by, first_day=rule.first_day, both=len(later), later=sum(later.values())
    )
