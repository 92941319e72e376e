"""Count sessions by who gave a verdict, by verdict, week, tool or repository, with their cost."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from debrief.scoring.verdict import VERDICT_NAMES
from debrief.summary import CountedVerdicts, counted_verdicts
from debrief.view.index import Index

_FIGURES = (
    "SELECT count(*) AS sessions, sum(failed != '') AS failed_reviews, sum(tokens) AS tokens, "
    "sum(spent_usd) AS spent_usd, sum(spent_usd IS NULL) AS unpriced, "
    "sum(lines_added + lines_removed) AS lines, sum(event != '') AS events, "
    "sum(verdict != '') AS with_verdict, "
    + ", ".join(f"sum(verdict = '{name}') AS {name}" for name in VERDICT_NAMES)
)


class SignalsRead(Struct, frozen=True, kw_only=True):
    """How far signals are read: what pages say of sessions is known for these alone."""

    sessions: int
    done: int
    """Sessions whose signals are read."""

    @property
    def is_behind(self) -> bool:
        """Return whether signals of some sessions are still to be read."""
        return self.done < self.sessions


def signals_read(index: Index) -> SignalsRead:
    """Return how far the signals of the lake's sessions are read."""
    row = index.select("SELECT count(*), ifnull(sum(work != ''), 0) FROM sessions")[0]
    return SignalsRead(sessions=row[0], done=row[1])


def verdicts_of(index: Index, where: str = "true", values: tuple[str, ...] = ()) -> CountedVerdicts:
    """Count the verdicts of the sessions for which an SQL expression is true."""
    rows = index.select(
        "SELECT verdict, basis, reviewer, count(*) FROM sessions "
        f"WHERE {where} GROUP BY verdict, basis, reviewer",
        values,
    )
    sessions = sum(row[3] for row in rows)
    return counted_verdicts(sessions, (tuple(row) for row in rows if row[0]))


def figures_of(index: Index, where: str = "true", values: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the figures of the sessions for which an SQL expression is true."""
    return dict(index.select(f"{_FIGURES} FROM sessions WHERE {where}", values)[0])


def figures_by(
    index: Index,
    column: Literal["week", "tool", "repository"],
    where: str = "true",
    values: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """Return the figures by a column: the newest weeks first, else what has most sessions."""
    order = "week DESC" if column == "week" else f"sessions DESC, {column}"
    found = index.select(
        f"{_FIGURES}, {column} FROM sessions WHERE {where} GROUP BY {column} ORDER BY {order}",
        values,
    )
    return [dict(row) for row in found]
