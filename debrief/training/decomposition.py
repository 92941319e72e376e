"""Split a move of the weekly mean into shares of prompts, models, judges and tasks.

Each session's overall quality is taken as a base, plus what its task, its prompts, its tool and
model, and its scorer usually add or take (a regression over all weeks, each effect drawn to zero
as by one session more). What a factor did to a week's mean is how far the shares of its levels
moved, times their effects; what is left is how the sessions themselves went. The parts add up to
the move. It is a description, not an experiment: the effects of factors that
changed together cannot be separated, which is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from debrief.keys import week_after, week_of
from debrief.markdown import plain
from debrief.reports import Markdown, report
from debrief.scoring.model import SessionScores
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow
from debrief.stats import Z
from debrief.training.leaderboard import known_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Factor = Literal["tasks", "prompts", "model", "judges"]
FACTORS: tuple[Factor, ...] = ("tasks", "prompts", "model", "judges")

_SHRINKAGE = 1.0
_LEVELS, _LEVELS_SHOWN = 6, 2
"""Levels of a factor that are kept of a move, and shown in one line."""


class LevelEffect(Struct, frozen=True):
    """What one prompt, task, model or scorer did to a week's mean, by being used more or less."""

    name: str
    """A prompt's fingerprint, a task, a tool with its model, or a scorer's fingerprint."""
    share_before: float
    """Of the week before's sessions, from 0 to 1."""
    share: float
    value: float
    """In points of overall quality."""


class FactorEffect(Struct, frozen=True, kw_only=True):
    """What one factor did to a week's mean."""

    factor: Factor
    value: float
    """In points of overall quality."""
    low: float
    """95 % interval, the shares of the levels taken as they are."""
    high: float
    levels: tuple[LevelEffect, ...] = ()
    """Those whose shares moved, the strongest first."""


class WeeklyMove(Struct, frozen=True, kw_only=True):
    """One row: how the mean of a week came about from that of the week before it."""

    week: str
    before: str
    """The week before it that has sessions."""
    sessions: int
    sessions_before: int
    mean: float
    mean_before: float
    parts: tuple[FactorEffect, ...]
    """One a factor."""
    rest: float
    """What no factor explains: how the sessions themselves went."""
    together: tuple[str, ...] = ()
    """Factors that changed in the same sessions, such as ``prompts and model``."""

    @property
    def moved(self) -> float:
        """How far the mean moved."""
        return self.mean - self.mean_before


class _Observation(Struct, frozen=True):
    week: str
    quality: float
    levels: tuple[str, ...]
    """One a factor."""


def weekly_moves(
    scores: Iterable[SessionScores], metadata: Iterable[SessionMetadataRow]
) -> list[WeeklyMove]:
    """Return a row for each week with sessions but the first, in order.

    A session that was not scored, or has no metadata, is not counted; one that two scorers
    scored counts once for each.
    """
    import numpy as np

    seen = []
    for row, known in known_scores(scores, metadata):
        tool = f"{known.tool} {known.model or UNKNOWN}"
        levels = (known.task, known.prompt_fingerprint, tool, row.scoring_fingerprint)
        seen.append(_Observation(week_of(row.started), row.overall_quality or 0.0, levels))
    places: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(seen):
        places[one.week].append(number)
    if len(places) < 2:
        return []
    columns = list(
        dict.fromkeys(level for observation in seen for level in enumerate(observation.levels))
    )
    number_of = {level: number for number, level in enumerate(columns)}
    codes = np.array(
        [[number_of[level] for level in enumerate(observation.levels)] for observation in seen]
    )
    factors = np.array([factor for factor, _ in columns])
    effects, covariance = _regression(
        codes, np.array([observation.quality for observation in seen]), len(columns)
    )

    def share(week: str) -> NDArray[np.float64]:
        """Return the share of a week's sessions at each level."""
        counts = np.bincount(codes[places[week]].ravel(), minlength=len(columns))
        return counts / len(places[week])

    moves = []
    for before, week in pairwise(sorted(places)):
        old, new = share(before), share(week)
        shift = new - old
        parts = []
        for number, factor in enumerate(FACTORS):
            own = shift * (factors == number)
            value = float(own @ effects)
            reach = Z * max(0.0, float(own @ covariance @ own)) ** 0.5
            low, high = value - reach, value + reach
            moved = [
                LevelEffect(
                    columns[at][1], float(old[at]), float(new[at]), float((own * effects)[at])
                )
                for at in np.flatnonzero(own)
            ]
            moved.sort(key=lambda level: (-abs(level.value), level.name))
            most = tuple(moved[:_LEVELS])
            effect = FactorEffect(factor=factor, value=value, low=low, high=high, levels=most)
            parts.append(effect)
        earlier, later = ([seen[place] for place in places[name]] for name in (before, week))
        mean_before, mean = (
            sum(observation.quality for observation in x) / len(x) for x in (earlier, later)
        )
        moves.append(
            WeeklyMove(
                week=week,
                before=before,
                sessions=len(later),
                sessions_before=len(earlier),
                mean=mean,
                mean_before=mean_before,
                parts=tuple(parts),
                rest=mean - mean_before - sum(part.value for part in parts),
                together=tuple(_together([*earlier, *later])),
            )
        )
    return moves


def _regression(
    codes: NDArray[np.int64], quality: NDArray[np.float64], size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each of ``size`` levels usually adds to a session's quality (ridge regression),
    and the covariance of that; ``codes`` are the levels of each session, a row a session."""
    import numpy as np

    quality = quality - quality.mean()
    normal = np.zeros((size, size))
    for first in codes.T:
        for second in codes.T:
            np.add.at(normal, (first, second), 1.0)
    inverse = np.linalg.inv(normal + _SHRINKAGE * np.eye(size))
    effects = inverse @ np.bincount(codes.ravel(), np.repeat(quality, codes.shape[1]), size)
    residual = quality - effects[codes].sum(axis=1)
    freedom = max(1.0, len(quality) - float(np.trace(inverse @ normal)))
    return effects, float(residual @ residual) / freedom * (inverse @ normal @ inverse)


def _together(seen: Sequence[_Observation]) -> Iterator[str]:
    """Yield the pairs of factors that divide the sessions in the same way."""
    for (first, one), (second, other) in combinations(enumerate(FACTORS), 2):
        pairs = {(seen_.levels[first], seen_.levels[second]) for seen_ in seen}
        levels = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
        if len(pairs) == len(levels[0]) == len(levels[1]) > 1:
            yield f"{one} and {other}"


def moves_markdown(moves: Sequence[WeeklyMove], names: Mapping[str, str] = {}) -> str:
    """Return the rows as a Markdown table with few columns, the latest week first."""
    apart = (move for move in moves if move.before != week_after(move.week, -1))
    return report(
        "moves",
        moves=moves,
        rows=[
            (
                move.week,
                move.sessions,
                f"{move.mean:.2f}",
                Markdown(f"**{_signed(move.moved)}**"),
                Markdown(", ".join(_contributions(move, names))),
            )
            for move in reversed(moves)
        ],
        gaps=[f"{move.week} after {move.before}" for move in apart],
        together=[f"{move.week}: {', '.join(move.together)}" for move in moves if move.together],
    )


def _contributions(move: WeeklyMove, names: Mapping[str, str]) -> Iterator[str]:
    """Yield what each factor did that did anything, with its interval, and what is left."""
    for part in move.parts:
        reach = (part.high - part.low) / 2
        if abs(part.value) >= 0.0005 or reach >= 0.0005:
            named = "; ".join(_shown_level(level, names) for level in part.levels[:_LEVELS_SHOWN])
            effect = f"{part.factor} {_signed(part.value)} ±{reach:.2f}".replace(" ", "\u00a0")
            yield effect + (named and f" ({named})")
    yield f"the sessions themselves {_signed(move.rest)}".replace(" ", "\u00a0")


def _shown_level(level: LevelEffect, names: Mapping[str, str]) -> str:
    name = names.get(level.name, level.name)
    return f"{plain(name)} {level.share_before:.0%} → {level.share:.0%}"


def _signed(value: float) -> str:
    text = f"{value:+.2f}"
    return "0.00" if text in ("-0.00", "+0.00") else text
