"""Plots of the reports: SVG from the templates in ``content/plots``, laid out here.

The same numbers give the same bytes. Names come from outside and are escaped by the templates.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

from debrief.content import folder
from debrief.errors import without_controls
from debrief.keys import week_of
from debrief.markdown import shorten
from debrief.scoring.model import SessionScores
from debrief.stats import mean_of
from debrief.training.decomposition import WeeklyMove
from debrief.training.leaderboard import LeaderboardRow, groups_of

if TYPE_CHECKING:
    from jinja2 import Environment

_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b7791f", "#c53030")
_INK, _GRID, _GREY = "#2d3748", "#e2e8f0", "#a0aec0"
_MOST_ROWS, _LONGEST_NAME = 20, 58
_MOST_WEEKS = 26
_NAMED_WEEKS, _WEEK_NAME = 14, 62
"""The most weeks that an axis names, and the width of a name."""
_FACTORS = ("mix of tasks", "prompts", "tool and model", "judges", "the sessions themselves")
"""What can move a weekly mean, in the order of a move's parts, and what no factor explains."""
_PARTS = tuple(zip(_FACTORS, (*_COLOURS[:4], _GREY), strict=True))


def leaderboard_plot(rows: Sequence[LeaderboardRow]) -> bytes:
    """Return a plot of the shares of done sessions with 95 % intervals: a row a candidate, a panel
    a group; grey where there is no rank.

    At most 20 rows are drawn, the first of each group; the title says so when there are more.
    """
    if not rows:
        return notice("No scored session yet")
    groups = groups_of(rows)[:_MOST_ROWS]
    groups = [group[: _MOST_ROWS // len(groups)] for group in groups]
    shown = sum(map(len, groups))
    title = "Sessions done and checked, of those with a verdict: share and 95 % interval"
    if shown < len(rows):
        title += f" ({shown} of {len(rows)} rows)"
    panels, top = [], 50.0
    for group in groups:
        bottom = top + 30 + 26 * len(group)
        panels.append(
            {
                "title": _judged_by(group[0]),
                "top": top,
                "bottom": bottom,
                "rows": [_drawn(row, top + 39 + 26 * at) for at, row in enumerate(group)],
            }
        )
        top = bottom + 40
    return _plot(
        "leaderboard",
        title,
        (1060, top + 20),
        groups=panels,
        left=400,
        across=_scale((0, 1), (400, 920)),
    )


def _judged_by(row: LeaderboardRow) -> str:
    scorer = f"{shorten(row.scoring_model, 40)} ({row.scoring_fingerprint})"
    return f"eval {row.eval_fingerprint}, scored by {scorer}"


def _drawn(row: LeaderboardRow, y: float) -> dict[str, Any]:
    place: dict[str, Any] = {"name": shorten(row.name, _LONGEST_NAME), "y": y, "value": None}
    if row.done is not None:
        place |= {
            "value": row.done.value,
            "low": row.done.low,
            "high": row.done.high,
            "text": f"{row.done.value:.2f}   n = {row.with_verdict}",
            "colour": _COLOURS[0] if row.rank is not None else _GREY,
        }
    return place


def scores_over_weeks_plot(scores: Iterable[SessionScores]) -> bytes:
    """Return a plot of overall quality by week: a dot a session, the mean, its 95 % interval.

    Each scorer (model and scoring fingerprint) has its own colour, as they are not comparable;
    the six with most sessions are drawn.
    """
    series: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(scores, key=lambda row: (row.started, row.session_id)):
        if row.status == "ok" and row.overall_quality is not None:
            scorer = (row.model, row.scoring_fingerprint)
            series[scorer][week_of(row.started)].append(row.overall_quality)
    if not series:
        return notice("No scored session yet")
    ranked = sorted(series, key=lambda key: (-sum(map(len, series[key].values())), key))
    weeks = sorted({week for scorer in ranked for week in series[scorer]})
    drawn = ranked[: len(_COLOURS)]
    width = _width(len(weeks))
    days = _scale((_day(weeks[0]) - 4, _day(weeks[-1]) + 4), (70, width - 20))
    totals = {week: sum(len(one.get(week, ())) for one in series.values()) for week in weeks}
    return _plot(
        "scores_over_weeks",
        "Overall quality of sessions by week",
        (width, 430 + 16 * len(drawn)),
        left=70,
        up=_scale((0, 1), (360, 50)),
        weeks=[{"name": w, "sessions": totals[w], "x": days(_day(w))} for w in _apart(weeks, days)],
        all_series=[
            {
                "name": f"{scorer[0]} ({scorer[1]})",
                "colour": colour,
                **_marks(series[scorer], days, 0.9 * (n - (len(drawn) - 1) / 2)),
            }
            for n, (scorer, colour) in enumerate(zip(drawn, _COLOURS, strict=False))
        ],
    )


def _marks(
    weeks: dict[str, list[float]], place: Callable[[float], float], shift: float
) -> dict[str, Any]:
    """Return where the sessions of a series stand, side by side within a day, and its means."""
    sessions, means = [], []
    for week, values in weeks.items():
        day = _day(week) + shift
        step = 0.8 / (len(values) - 1) if len(values) > 1 else 0.0
        first = day - step * (len(values) - 1) / 2
        sessions += [(place(first + step * at), value) for at, value in enumerate(values)]
        mean = mean_of(values, 1.0)
        means.append({"x": place(day), "value": mean.mean, "low": mean.low, "high": mean.high})
    return {"sessions": sessions, "means": means}


def moves_plot(moves: Sequence[WeeklyMove]) -> bytes:
    """Return a plot of what the weekly mean moved by: a bar a week, its parts stacked.

    At most 26 weeks are drawn, the latest.
    """
    if not moves:
        return notice("No two weeks with scored sessions yet")
    shown = moves[-_MOST_WEEKS:]
    bars = [list(_stacked(move)) for move in shown]
    reach = max(0.05, *(abs(part[end]) for bar in bars for part in bar for end in ("low", "high")))
    step = _step(reach)
    reach = step * math.ceil(reach / step)
    width, bottom = max(_width(len(shown)), 720), 360
    weeks = _scale((-1, len(shown)), (70, width - 20))
    return _plot(
        "weekly_moves",
        "What the weekly mean of overall quality moved by",
        (width, 570),
        left=70,
        bottom=bottom,
        up=_scale((-reach, reach), (bottom, 50)),
        ticks=[step * at for at in range(-round(reach / step), round(reach / step) + 1)],
        weeks=[
            {
                "name": f"{move.week}  n = {move.sessions}",
                "x": weeks(at),
                "moved": move.moved,
                "parts": bar,
            }
            for at, (move, bar) in enumerate(zip(shown, bars, strict=True))
        ],
        factors=_PARTS,
    )


def _stacked(move: WeeklyMove) -> Iterator[dict[str, Any]]:
    """Yield the parts of a bar: gains upwards from zero, losses downwards."""
    up = down = 0.0
    for (name, colour), value in zip(
        _PARTS, (*(part.value for part in move.parts), move.rest), strict=True
    ):
        low, high = (up, up + value) if value > 0 else (down + value, down)
        up, down = (high, down) if value > 0 else (up, low)
        yield {"name": name, "colour": colour, "value": value, "low": low, "high": high}


def _step(reach: float) -> float:
    """Return the distance of an axis's lines: 1, 2 or 5 of a power of ten, a few to each side.

    >>> _step(0.34)
    0.1
    """
    power: float = 10.0 ** math.floor(math.log10(reach))
    return next(power * by for by in (0.2, 0.5, 1, 2, 5) if reach / (power * by) <= 4)


def notice(text: str) -> bytes:
    """Return a picture that says why there is nothing to draw."""
    return _plot("notice", text, (600, 160))


def _plot(name: str, title: str, size: tuple[float, float], **values: Any) -> bytes:
    width, height = size
    shared = {"title": title, "width": width, "height": height, "ink": _INK, "grid": _GRID}
    return _templates().get_template(f"{name}.svg").render({**shared, **values}).encode()


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder("plots")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    made.finalize = lambda value: without_controls(value) if type(value) is str else value
    made.filters["place"] = lambda value: f"{value:.1f}".removesuffix(".0")
    return made


def _scale(of: tuple[float, float], to: tuple[float, float]) -> Callable[[float], float]:
    """Return the way from values to places on the page, by the ends of both."""
    return lambda value: to[0] + (value - of[0]) / (of[1] - of[0]) * (to[1] - to[0])


def _apart(weeks: Sequence[str], place: Callable[[float], float]) -> list[str]:
    """Return the weeks that are named on the axis, at most 14 and none over another."""
    first, last = place(_day(weeks[0])), place(_day(weeks[-1]))
    least = max(_WEEK_NAME, (last - first) / _NAMED_WEEKS)
    named = list(weeks[:1])
    for week in weeks[1:]:
        if place(_day(week)) - place(_day(named[-1])) >= least:
            named.append(week)
    return named


def _width(weeks: int) -> int:
    return max(640, min(1260, 280 + 68 * weeks))


def _day(week: str) -> int:
    return date.fromisoformat(week).toordinal()
