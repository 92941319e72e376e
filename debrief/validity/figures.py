"""Figures: every score against success, by family and their mean, and the report on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from debrief import stats
from debrief.markdown import table
from debrief.rubrics.offline_miner import Shuffles
from debrief.scoring.dimensions import BY_NAME, OVERALL
from debrief.stats import Estimate, ranks
from debrief.validity.measuring import BOTH, CALLS, ERRORS, ORDER, PROBABILITY, Measured
from debrief.validity.perturbations import PERTURBATIONS, flips_table

if TYPE_CHECKING:
    from debrief.stats import Floats

FEWEST = 5
"""Successes, and failures, that a family needs to count in a mean and at a bar."""
MEAN, CODING_MEAN = "mean over families", "mean over coding families"
AUROC, HALF, KAPPA, BRIER, LEAD = "AUROC", "surest half", "kappa", "Brier excess", "lead"
METRICS = (AUROC, HALF, KAPPA, BRIER, LEAD)
"""``surest half``: AUROC of the half of the sessions that the score is surest of. ``lead``: AUROC
minus that of fewer calls and errors."""
_GOOD = 0.5
_EPSILON = 1e-9


class Figures(Struct, frozen=True, kw_only=True):
    """One score in one family, or its mean over families."""

    score: str
    family: str
    kind: str = ""
    sessions: int
    """Of which the score says anything; of a mean, families."""
    successes: int = 0
    coverage: float = 1.0
    """Their share."""
    estimates: dict[str, Estimate]
    """By name, those that are defined."""
    bands: tuple[stats.Band, ...] = ()
    """Of a probability."""

    @property
    def counts(self) -> bool:
        """Return whether there are enough successes and failures to hold the score to a bar."""
        return min(self.successes, self.sessions - self.successes) >= FEWEST


class Moves(Struct, frozen=True, kw_only=True):
    """What a change to sessions did to a score."""

    change: str
    must: str
    score: str
    sessions: int
    fell: int
    rose: int
    silenced: int
    """Sessions of which the score says nothing any more."""

    @property
    def share(self) -> float:
        """Return the share of sessions in which the score moved as it must."""
        return (self.fell if self.must == "fall" else self.sessions - self.rose) / self.sessions


def figures_of(rows: Sequence[Measured]) -> list[Figures]:
    """Return the figures of every score in every family, and then the means."""
    weights = stats.resampled([row.run.task for row in rows])
    figures: list[Figures] = []
    drawn: dict[tuple[str, str], dict[str, list[Floats]]] = {}
    names = score_names(rows)
    for family in dict.fromkeys(row.run.family for row in rows):
        places = [place for place, row in enumerate(rows) if row.run.family == family]
        for name in names:
            one, draws = _one([rows[place] for place in places], name, weights[:, places])
            figures.append(one)
            means = (MEAN, CODING_MEAN) if one.kind == "coding" else (MEAN,)
            for key in ((name, mean) for mean in means if one.counts):
                for metric, values in draws.items():
                    drawn.setdefault(key, {}).setdefault(metric, []).append(values)
    for (name, mean), columns in drawn.items():
        found = {metric: stats.mean_of_families(values) for metric, values in columns.items()}
        count = len(columns[AUROC])
        estimates = _estimates(found)
        figures.append(Figures(score=name, family=mean, sessions=count, estimates=estimates))
    return figures


def score_names(rows: Sequence[Measured]) -> list[str]:
    """Return the scores that say anything of any session, in the order of the tables."""
    found = {name for row in rows for name, value in row.values.items() if value is not None}
    first = (PROBABILITY, ORDER, OVERALL, *BY_NAME)
    others = sorted(found - {*first, CALLS, ERRORS})
    return [name for name in (*first, *others, CALLS, ERRORS) if name in found] + [BOTH]


def _one(
    rows: Sequence[Measured], name: str, weights: Floats
) -> tuple[Figures, Mapping[str, Floats]]:
    import numpy as np

    def column(score: str) -> Floats:
        return np.array([row.values.get(score) for row in rows], dtype=np.float64)

    both = ranks(column(CALLS)) + ranks(column(ERRORS))
    every = both if name == BOTH else column(name)
    known = np.isfinite(every)
    values, rival, weights = every[known], both[known], weights[:, known]
    success = np.array([row.run.success for row in rows])[known]
    draws: dict[str, Floats] = {}
    bands: tuple[stats.Band, ...] = ()
    if len(values):
        half = stats.outer_half(values)
        draws[AUROC] = stats.auroc(values, success, weights)
        draws[HALF] = stats.auroc(values[half], success[half], weights[:, half])
    if len(values) and name not in (CALLS, ERRORS, BOTH):
        said = values > 0 if "order" in name else values >= _GOOD
        draws[KAPPA] = stats.kappa(said, success, weights)
        draws[LEAD] = draws[AUROC] - stats.auroc(rival, success, weights)
    if len(values) and "probability" in name:
        draws[BRIER] = stats.brier_excess(values, success, weights)
        bands = stats.calibration(values, success, weights)
    figures = Figures(
        score=name,
        family=rows[0].run.family,
        kind=rows[0].run.kind,
        sessions=len(values),
        successes=int(success.sum()),
        coverage=len(values) / len(rows),
        estimates=_estimates(draws),
        bands=bands,
    )
    return figures, draws


def _estimates(draws: Mapping[str, Floats]) -> dict[str, Estimate]:
    found = {metric: stats.estimate_of(values) for metric, values in draws.items()}
    return {metric: value for metric, value in found.items() if value is not None}


def moves_of(rows: Sequence[Measured]) -> Iterator[Moves]:
    """Yield what each change did to each score."""
    for each in PERTURBATIONS:
        for name in score_names(rows):
            pairs = [
                (before, row.changed[each.name][name])
                for row in rows
                if name in row.changed.get(each.name, ())
                and (before := row.values.get(name)) is not None
            ]
            if pairs and name not in (CALLS, ERRORS):
                yield Moves(
                    change=each.name,
                    must=each.must,
                    score=name,
                    sessions=len(pairs),
                    fell=sum(after is not None and after < x - _EPSILON for x, after in pairs),
                    rose=sum(after is not None and after > x + _EPSILON for x, after in pairs),
                    silenced=sum(after is None for _, after in pairs),
                )


DIGITS = {BRIER: 3}
"""Where a metric needs more than two."""


class ValidityReport(Struct, frozen=True, kw_only=True):
    """All that was measured."""

    evaluators: str
    """``offline``, or a model's name."""
    figures: tuple[Figures, ...]
    moves: tuple[Moves, ...]
    flips: dict[str, str]
    """What cutting into chunks did, by scorer, as a table."""
    shuffled: Shuffles | None
    failures: dict[str, int]
    """How often evaluators gave no scores, by the reason."""


def report_of(
    rows: Sequence[Measured], evaluators: str, shuffled: Shuffles | None = None
) -> ValidityReport:
    """Return the report on measured sessions."""
    scorers = sorted({scorer for row in rows for scorer in row.movements})
    movements = {s: [m for row in rows for m in row.movements.get(s, ())] for s in scorers}
    return ValidityReport(
        evaluators=evaluators,
        figures=tuple(figures_of(rows)),
        moves=tuple(moves_of(rows)),
        flips={scorer: flips_table(found) for scorer, found in movements.items() if found},
        shuffled=shuffled,
        failures=dict(Counter(failure for row in rows for failure in row.failures)),
    )


def report_markdown(report: ValidityReport) -> Iterator[str]:
    """Yield the report's paragraphs: families, their means, changes, cuts, shuffles, failures."""
    for family in dict.fromkeys(each.family for each in report.figures):
        own = [each for each in report.figures if each.family == family]
        yield f"## {_title(own)}\n\n{_figures(own)}"
        for each in own:
            if each.bands:
                bands = [(str(b.sessions), number(b.said), interval(b.came)) for b in each.bands]
                yield f"{each.score}\n\n" + table(("sessions", "said", "came true"), bands)
    if report.moves:
        yield f"## Changes of which it is known what must follow\n\n{_moves(report.moves)}"
    for scorer, flips in report.flips.items():
        yield f"## Sessions cut into chunks against the same uncut, scorer {scorer}\n\n{flips}"
    if found := report.shuffled:
        true = ", ".join(f"{count} for {name}" for name, count in found.true.items())
        yield (
            f"## Rubrics in shuffled scores\n\n{found.sessions} sessions of people. With their own "
            f"scores {true}; any in {found.share:.1%} of {len(found.shuffled)} shuffles."
        )
    if report.failures:
        rows = [(reason, str(count)) for reason, count in report.failures.items()]
        yield f"## Not scored by {report.evaluators}\n\n" + table(("reason", "times"), rows)


def _title(own: Sequence[Figures]) -> str:
    first = max(own, key=lambda each: each.sessions)
    if not first.successes:
        return f"{first.family} ({first.sessions} with at least five of each outcome)"
    share = f"{first.successes / first.sessions:.0%} succeeded"
    few = "" if first.counts else "; too few of one outcome to count"
    return f"{first.family}: {first.sessions} sessions, {share}{few}"


def _figures(own: Sequence[Figures]) -> str:
    shown = [metric for metric in METRICS if any(metric in each.estimates for each in own)]
    rows = [
        (
            each.score,
            f"{each.sessions} ({each.coverage:.0%})",
            *(interval(each.estimates.get(metric), DIGITS.get(metric, 2)) for metric in shown),
        )
        for each in own
    ]
    return table(("score", "covers", *shown), rows)


def _moves(moves: Sequence[Moves]) -> str:
    changes = {each.change: f"{each.change}: must {each.must}" for each in moves}
    found = {(each.score, each.change): each for each in moves}
    rows = [
        (score, *(_share(found.get((score, change))) for change in changes))
        for score in dict.fromkeys(each.score for each in moves)
    ]
    return table(("did as it must", *changes.values()), rows)


def _share(moves: Moves | None) -> str:
    return "" if moves is None else f"{moves.share:.0%} of {moves.sessions}"


def number(value: float, digits: int = 2) -> str:
    """Return a figure from −1 to 1 as it is usually written: ``.65``, ``−.02``."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"
    return text.replace("0.", ".", 1).replace("-", "−")


def interval(found: Estimate | None, digits: int = 2) -> str:
    """Return an estimate with its interval; empty when there is none."""
    if found is None:
        return ""
    low, high = number(found.low, digits), number(found.high, digits)
    return f"{number(found.value, digits)} ({low} to {high})"
