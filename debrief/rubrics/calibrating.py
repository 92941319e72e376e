"""Calibrate scores: replace each by what it is worth according to labels.

``probes_of`` fits each score to labels once there are 20 on five tasks. Where the fit came closer
to labels on tasks that it had not seen, it is applied wherever a score is sorted by, filtered by,
shown or trained on; the raw score is in the table as it was given. A dimension or a judge is
calibrated by labels that name it. Success calibrates the overall quality alone, which then says how
often such sessions were done: no other score means that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.rubrics.agreement import ALL
from debrief.rubrics.measures import Kind
from debrief.rubrics.probes import PROBES, Probe
from debrief.scoring.dimensions import OVERALL
from debrief.scoring.model import SessionScores

Measured: TypeAlias = tuple[Kind, str, str, str]
"""Kind and name of what gave a score, who answered for it, and the fingerprint."""


class Calibration(Struct, frozen=True, kw_only=True):
    """What the scores of one judge or dimension are worth."""

    points: tuple[tuple[float, float], ...]
    """A score and its worth, rising, straight lines between them."""
    labelled: int
    """Sessions with a label that it was fitted to."""

    def worth(self, score: float) -> float:
        """Return what a score is worth, from 0 to 1; beyond the points that of the last one."""
        at = bisect_right(self.points, score, key=lambda point: point[0])
        if at == 0:
            return self.points[0][1]
        if at == len(self.points):
            return self.points[-1][1]
        (low, below), (high, above) = self.points[at - 1 : at + 1]
        return below + (above - below) * (score - low) / (high - low)


class Numbered(Protocol):
    """A row of scores, or the columns of one."""

    @property
    def model(self) -> str:
        """Who scored."""

    @property
    def scoring_fingerprint(self) -> str:
        """Of the scorer."""

    @property
    def overall_quality(self) -> float | None:
        """As it was given."""


class Calibrations(Struct, frozen=True):
    """Those in force."""

    by_measure: dict[Measured, Calibration] = {}

    @property
    def digest(self) -> str:
        """Return what changes with any of them; empty where there is none."""
        known = sorted((key, calibration.points) for key, calibration in self.by_measure.items())
        return digest_of(known) if known else ""

    def of_quality(self, row: Numbered) -> Calibration | None:
        """Return the calibration of a row's overall quality; None where there is none."""
        key: Measured = ("dimension", OVERALL, row.model, row.scoring_fingerprint)
        return None if row.overall_quality is None else self.by_measure.get(key)

    def quality(self, row: Numbered) -> float | None:
        """Return a row's overall quality, calibrated where there is a calibration."""
        known = self.of_quality(row)
        if known is None or row.overall_quality is None:
            return row.overall_quality
        return known.worth(row.overall_quality)

    def applied(self, row: SessionScores) -> SessionScores:
        """Return a row of scores with each number calibrated for which there is a calibration.

        The interval of several answers goes with the raw number.
        """
        if not self.by_measure:
            return row
        who = (row.model, row.scoring_fingerprint)
        verdicts = tuple(
            replace(verdict, value=known.worth(verdict.value), spread=None, low=None, high=None)
            if verdict.value is not None
            and (known := self.by_measure.get(("dimension", verdict.dimension, *who)))
            else verdict
            for verdict in row.verdicts
        )
        row = replace(row, verdicts=verdicts)
        if self.of_quality(row) is None:
            return row
        return replace(
            row,
            overall_quality=self.quality(row),
            overall_spread=None,
            overall_low=None,
            overall_high=None,
        )

    def applied_to_judgement(self, row: JudgeEvaluation) -> JudgeEvaluation:
        """Return a judgement with its score calibrated where there is a calibration."""
        known = self.by_measure.get(("judge", row.judge, row.model, row.eval_fingerprint))
        if known is None or row.score is None:
            return row
        return replace(row, score=known.worth(row.score), spread=None, low=None, high=None)


UNCALIBRATED: Final = Calibrations()


def calibrations_of(probes: Iterable[Probe]) -> Calibrations:
    """Return the calibrations that are applied, out of all that were fitted."""
    return Calibrations(
        {
            (row.kind, row.name, row.judged_by, row.fingerprint): Calibration(
                points=row.calibration, labelled=row.labelled
            )
            for row in probes
            if row.calibration and _comes_closer(row)
        }
    )


def _comes_closer(row: Probe) -> bool:
    if row.brier is None or row.brier_calibrated is None or row.kind == "rubric":
        return False
    is_meant = row.labels == "people" or (row.kind, row.name) == ("dimension", OVERALL)
    return is_meant and row.brier_calibrated < row.brier


def calibrations_in(lake: Lake) -> Calibrations:
    """Return the calibrations of a lake, as of its last comparison with labels."""
    return calibrations_of(lake.read(PROBES, ALL, Probe))
