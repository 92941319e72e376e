"""Bars: what scores must reach before a change to them, to facts or to prompts is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from debrief.rubrics.offline_miner import Shuffles
from debrief.scoring.dimensions import BY_NAME
from debrief.validity.figures import (
    AUROC,
    BRIER,
    CODING_MEAN,
    HALF,
    LEAD,
    MEAN,
    Figures,
    Moves,
    interval,
    number,
)
from debrief.validity.measuring import Measured
from tools.validity.refits import (
    BASE_RATE,
    LEFT_OUT,
    NO_LENGTH,
    REFITTED,
    REFITTED_PROBABILITY,
)

EACH = "each family"
_BARS = (
    (LEFT_OUT, MEAN, AUROC, 0.65, 0.70),
    (LEFT_OUT, EACH, AUROC, 0.60, 0.66),
    (LEFT_OUT, CODING_MEAN, AUROC, 0.66, 0.72),
    (LEFT_OUT, MEAN, HALF, 0.70, 0.76),
    (LEFT_OUT + NO_LENGTH, MEAN, AUROC, 0.60, 0.65),
    (REFITTED, MEAN, AUROC, 0.69, 0.75),
    (REFITTED, EACH, AUROC, 0.65, 0.70),
    (REFITTED + NO_LENGTH, MEAN, AUROC, 0.64, 0.68),
)
"""Score, family, metric, bar, goal."""
_BRIER, _BRIER_GOAL = 0.002, -0.02
_MOVES = {
    "cut in half": (0.95, 0.99),
    "failure admitted": (0.95, 0.99),
    "failure admitted a paragraph later": (0.95, 0.99),
    "work on another task": (0.85, 0.95),
    "500 lines of junk, all done": (0.85, 0.95),
    "thanks for a failure": (0.85, 0.95),
}
_KNOWS_THE_TASK = {"work on another task": "judge plan-compliance"}
"""Changes that only a score can notice that knows what was asked for."""
_FLIPS = {"offline": (0.0, 0.0), "words": (0.05, 0.02)}
_FALSE_DISCOVERY, _FALSE_DISCOVERY_GOAL = 0.05, 0.02


class Bar(Struct, frozen=True, kw_only=True):
    """A bar, and whether it holds."""

    name: str
    bar: str
    goal: str
    measured: str
    holds: bool


def bars_of(
    score: str,
    figures: Sequence[Figures],
    moves: Sequence[Moves],
    rows: Sequence[Measured] = (),
    shuffled: Shuffles | None = None,
) -> Iterator[Bar]:
    """Yield the bars of all that was measured.

    Args:
        score: the one that must move as is known.
        figures: of all scores.
        moves: of all scores.
        rows: with what cutting did.
        shuffled: None when nothing was.
    """
    for name, family, metric, bar, goal in _BARS:
        own = [each for each in figures if each.score == name and metric in each.estimates]
        own = [each for each in own if (each.family == family) or (family == EACH and each.counts)]
        if own:
            yield _bar(f"{name}, {metric}, {family}", own, metric, bar, goal)
    yield from _brier(figures)
    means = [each for each in figures if each.family == MEAN and each.score in BY_NAME]
    wrong = [each.score for each in means if each.estimates[AUROC].high < 0.5]
    yield Bar(
        name="dimensions that are significantly the wrong way",
        bar="none",
        goal="none",
        measured=", ".join(wrong) or "none",
        holds=not wrong,
    )
    own = [each for each in figures if each.score == LEFT_OUT and LEAD in each.estimates]
    behind = [each.family for each in own if each.counts and each.estimates[LEAD].high < 0]
    leads = [each.estimates[LEAD] for each in own if each.family == MEAN]
    for lead in leads:
        yield Bar(
            name=f"{LEFT_OUT}, lead over fewer calls and errors",
            bar="mean ≥ 0, in no family significantly behind",
            goal="",
            measured="; behind in ".join([interval(lead), *filter(None, [", ".join(behind)])]),
            holds=lead.value >= 0 and not behind,
        )
    for moved in moves:
        if moved.score == _KNOWS_THE_TASK.get(moved.change, score):
            bar, goal = _MOVES[moved.change]
            yield Bar(
                name=f"{moved.change}: {moved.score} must {moved.must}",
                bar=f"{bar:.0%}",
                goal=f"{goal:.0%}",
                measured=f"{moved.share:.1%} of {moved.sessions}",
                holds=moved.share >= bar,
            )
    for scorer, (bar, goal) in _FLIPS.items():
        cuts = {
            (m.session_id, m.budget): [
                n.flipped for n in row.movements[scorer] if n.budget == m.budget
            ]
            for row in rows
            for m in row.movements.get(scorer, ())
        }
        if cuts:
            share = sum(map(any, cuts.values())) / len(cuts)
            yield _at_most(
                f"category flips by cutting, scorer {scorer}", share, len(cuts), bar, goal
            )
    if shuffled is not None:
        name, count = "shuffles with any rubric kept", len(shuffled.shuffled)
        yield _at_most(name, shuffled.share, count, _FALSE_DISCOVERY, _FALSE_DISCOVERY_GOAL)


def _bar(name: str, own: Sequence[Figures], metric: str, bar: float, goal: float) -> Bar:
    worst = min(own, key=lambda each: each.estimates[metric].value)
    missed = sum(each.estimates[metric].value < bar for each in own)
    where = f", {worst.family}; {missed} of {len(own)} miss it" if len(own) > 1 else ""
    return Bar(
        name=name,
        bar=number(bar),
        goal=number(goal),
        measured=interval(worst.estimates[metric]) + where,
        holds=not missed,
    )


def _brier(figures: Sequence[Figures]) -> Iterator[Bar]:
    """Yield the bar of a refit's Brier score, against the base rate that the same labels give.

    Where no fit was better than the base rate on what it held out there is no probability, which is
    no worse than the base rate.
    """
    excess = {
        score: {
            f.family: f.estimates[BRIER].value for f in figures if f.score == score and f.counts
        }
        for score in (REFITTED_PROBABILITY, BASE_RATE)
    }
    ours, rate = excess[REFITTED_PROBABILITY], excess[BASE_RATE]
    gains = {family: value - rate[family] for family, value in ours.items()}
    families = sum(f.score == REFITTED and f.counts for f in figures)
    missed = sum(gain > _BRIER for gain in gains.values())
    measured = f"{len(gains)} of {families} families have a probability"
    if gains:
        worst = max(gains, key=lambda family: gains[family])
        mean = number(sum(gains.values()) / len(gains), 3)
        measured = (
            f"{number(gains[worst], 3)}, {worst}; {missed} of {len(gains)} miss it; mean {mean}; "
            f"{measured}"
        )
    if families:
        yield Bar(
            name=f"{REFITTED_PROBABILITY}, Brier score minus that of the base rate, {EACH}",
            bar=f"≤ {number(_BRIER, 3)}",
            goal=f"mean ≤ {number(_BRIER_GOAL, 3)}",
            measured=measured,
            holds=not missed,
        )


def _at_most(name: str, share: float, count: int, bar: float, goal: float) -> Bar:
    return Bar(
        name=name,
        bar=f"≤ {bar:.0%}",
        goal=f"≤ {goal:.0%}",
        measured=f"{share:.1%} of {count}",
        holds=share <= bar,
    )
