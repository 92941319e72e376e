"""A bar chart of weeks, each bar a link to its sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from debrief.scoring.verdict import WORST_FIRST, VerdictName
from debrief.view.assessment import VERDICT_TONES
from debrief.view.links import page_path, sessions_path

NARROW, WIDE = 560, 1_180
"""Pixels of a drawing's box."""
_HEIGHT, _WIDEST, _GAP = 96, 40, 2
_MOST = 26
"""Weeks of a drawing."""
_STACKED: tuple[VerdictName, ...] = (*reversed(WORST_FIRST[:-1]), WORST_FIRST[-1])
"""From the bottom up."""


class Piece(Struct, frozen=True):
    """A part of a column: its colour's class, where it begins from above, and its height."""

    tone: str
    y: float
    height: float


class Column(Struct, frozen=True, kw_only=True):
    """One week."""

    week: str
    value: float
    """That is drawn; 0 where it is not known."""
    x: float
    width: float
    pieces: tuple[Piece, ...]
    path: str
    """Of the page with what is behind it."""


class Columns(Struct, frozen=True, kw_only=True):
    """A drawing of weeks with sessions, the oldest first."""

    width: int
    height: int = _HEIGHT
    columns: tuple[Column, ...]

    @property
    def largest(self) -> float:
        """Return the largest value."""
        return max((column.value for column in self.columns), default=0.0)


def verdict_columns(weeks: Sequence[Mapping[str, Any]], width: int) -> Columns:
    """Draw the sessions of the last weeks by verdict, those without one on top.

    Args:
        weeks: their figures, the newest first.
        width: pixels of the drawing's box.
    """
    parts = [
        [
            *((VERDICT_TONES[name], float(row[name] or 0)) for name in _STACKED),
            ("", float(row["sessions"] - row["with_verdict"])),
        ]
        for row in _drawn(weeks)
    ]
    return _columns(_drawn(weeks), [row["sessions"] for row in _drawn(weeks)], parts, width, "")


def amount_columns(weeks: Sequence[Mapping[str, Any]], name: str, width: int) -> Columns:
    """Draw an amount of the last weeks, by the name of its figure."""
    values = [float(row[name] or 0) for row in _drawn(weeks)]
    return _columns(
        _drawn(weeks), values, [[("calm", value)] for value in values], width, f"-{name}"
    )


def count_columns(counts: Sequence[tuple[str, int]], width: int, **filters: str) -> Columns:
    """Draw a number by week, the oldest first; each leads to the week's sessions that filters let
    through."""
    shown = counts[-_MOST:]
    values = [float(count) for _, count in shown]
    rows = [{"week": week} for week, _ in shown]
    return _columns(rows, values, [[("calm", value)] for value in values], width, "", **filters)


def _drawn(weeks: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return weeks[:_MOST][::-1]


def _columns(
    rows: Sequence[Mapping[str, Any]],
    values: Sequence[float],
    parts: Sequence[Sequence[tuple[str, float]]],
    width: int,
    sort: str,
    **filters: str,
) -> Columns:
    step = min(_WIDEST, width / len(rows)) if rows else _WIDEST
    most = max(values, default=0) or 1
    columns = []
    for number, (row, value, stacked) in enumerate(zip(rows, values, parts, strict=True)):
        top, pieces = float(_HEIGHT), []
        for tone, amount in stacked:
            height = round(_HEIGHT * amount / most, 1)
            top = round(top - height, 1)
            if height:
                pieces.append(Piece(tone or "unknown", top, height))
        whole = not sort and not filters
        path = sessions_path(week=row["week"], sort=sort, **filters)
        columns.append(
            Column(
                week=row["week"],
                value=value,
                x=round(number * step, 1),
                width=round(step - _GAP, 1),
                pieces=tuple(pieces),
                path=page_path("weeks", row["week"]) if whole else path,
            )
        )
    return Columns(width=width, columns=tuple(columns))
