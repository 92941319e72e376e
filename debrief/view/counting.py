"""Count sessions by verdict, week, tool or repository, with their tokens and cost."""

from __future__ import annotations

from typing import Any, Literal

from debrief.scoring.order import LOOK_FIRST
from debrief.scoring.verdict import VERDICT_NAMES
from debrief.summary import CountedVerdicts, counted_verdicts
from debrief.view.index import Index

_SHOWN = 5
"""How many sessions a page shows of each kind."""
_FIGURES = (
    "SELECT count(*) AS sessions, sum(failed != '') AS failed, avg(quality) AS quality, "
    "count(quality) AS qualities, avg(judges) AS judges, sum(tokens) AS tokens, "
    "sum(spent_usd) AS spent_usd, sum(spent_usd IS NULL) AS unpriced, "
    "sum(lines_added + lines_removed) AS lines, "
    + ", ".join(f"sum(verdict = '{name}') AS {name}" for name in VERDICT_NAMES)
)


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


def verdicts_of(index: Index, where: str, values: tuple[str, ...]) -> CountedVerdicts:
    """Count the verdicts of the sessions for which an SQL expression is true."""
    rows = index.select(
        f"SELECT verdict, basis, count(*) FROM sessions WHERE {where} GROUP BY verdict, basis",
        values,
    )
    sessions = sum(row[2] for row in rows)
    return counted_verdicts(sessions, [tuple(row) for row in rows if row[0]])


def sides_of(index: Index, where: str, values: tuple[str, ...]) -> dict[str, Any]:
    """Return the sessions to look at first and the best, of those that an expression is true for.

    Where none has a place in the order, those that are not done, or partly, take the first side.
    """
    ordered = bool(index.select(f"SELECT 1 FROM sessions WHERE {where} AND place >= 0", values))
    short = "verdict IN ('failed', 'partial')", "verdict = 'partial', started DESC"
    chosen, order = (f"place < {LOOK_FIRST}", "place, started DESC") if ordered else short
    first = index.sessions(f"{where} AND {chosen}", values, order, _SHOWN)
    good = f"{where} AND verdict = 'complete_verified' AND ifnull(place, 1) >= {LOOK_FIRST}"
    best = index.sessions(good, values, "place IS NULL, place DESC, started DESC", _SHOWN)
    return {"is_ordered": ordered, "first": first, "best": best}
