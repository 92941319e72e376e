"""Certify a reviewer: hold its verdicts against labels, and say what that proves.

Two hit rates count: of sessions that are complete, the share that the reviewer takes for complete,
and of incomplete ones the share that it takes for incomplete. One alone is worth nothing: who
calls everything complete never misses a complete one.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping

from msgspec import Struct

from debrief import stats
from debrief.certification.labels import BlindLabel
from debrief.markdown import counted
from debrief.scoring.verdict import COMPLETE, INCOMPLETE, VerdictName
from debrief.stats import Estimate

REQUIRED = 0.8
"""What both hit rates must be known to reach."""


class Share(Struct, frozen=True):
    """A share of sessions, such as the incomplete ones that a reviewer takes for incomplete."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """Return the share; None of nothing."""
        return self.count / self.of if self.of else None

    @property
    def low(self) -> float:
        """Return the lower 95 % bound: the true rate is below it in at most one case of twenty."""
        return stats.lower_bound(self.count, self.of)

    @property
    def high(self) -> float:
        """Return the upper 95 % bound, likewise."""
        return 1 - stats.lower_bound(self.of - self.count, self.of)

    @property
    def missing(self) -> int:
        """Return how many more, all of them counted, bring the lower bound to ``REQUIRED``."""
        return next(
            more
            for more in itertools.count()
            if stats.lower_bound(self.count + more, self.of + more) >= REQUIRED
        )

    @property
    def shown(self) -> str:
        """Return the rate in words, such as ``18 of 20 (90 %, at least 72 %)``."""
        if not self.of:
            return "none labelled"
        return f"{self.count} of {self.of} ({self.count / self.of:.0%}, at least {self.low:.0%})"


class LabelledReview(Struct, frozen=True, kw_only=True):
    """A review of a session that a person labelled."""

    session_id: str
    label: BlindLabel
    verdict: VerdictName
    """The reviewer's."""

    @property
    def is_miss(self) -> bool:
        """Return whether one says complete and the other incomplete."""
        is_decided = self.verdict in COMPLETE | INCOMPLETE
        return is_decided and (self.verdict in COMPLETE) != self.label.is_complete


class Certificate(Struct, frozen=True, kw_only=True):
    """What a reviewer's verdicts are worth."""

    reviewer: str
    """A model's name."""
    sessions: int
    """That it reviewed and somebody labelled blind."""
    exact: Share
    """The very verdict, of labels that name one."""
    kappa: float | None
    """Cohen's, of complete and incomplete; None where chance alone would always agree."""
    complete_hit: Share
    """Complete sessions that it takes for complete."""
    incomplete_hit: Share
    """Incomplete sessions that it takes for incomplete."""
    undetermined: int
    """Labelled sessions that it leaves undetermined. They are no hit and no miss."""
    reviews: int
    """All sessions that it reviewed."""
    waiting: int
    """Sessions that it reviewed and nobody labelled."""
    reviewed: Share
    """Of all sessions that it reviewed and decided, those that it takes for complete."""
    disagreements: tuple[LabelledReview, ...] = ()
    """Where label and review differ, misses first."""

    @property
    def is_certified(self) -> bool:
        """Return whether both hit rates are known to reach ``REQUIRED``."""
        return min(self.complete_hit.low, self.incomplete_hit.low) >= REQUIRED

    @property
    def is_refuted(self) -> bool:
        """Return whether a hit rate is known not to reach ``REQUIRED``."""
        return min(self.complete_hit.high, self.incomplete_hit.high) < REQUIRED

    @property
    def missing(self) -> int | None:
        """Return how many labels more would tell at the least, if none of them is a miss.

        Returns:
            None where it cannot be reached: a hit rate is known to be lower, or too few of the
            reviewed sessions are left.
        """
        if self.is_refuted or self._missing > self.waiting:
            return None
        return self._missing

    @property
    def _missing(self) -> int:
        return self.complete_hit.missing + self.incomplete_hit.missing

    @property
    def likely(self) -> int | None:
        """Return how many sessions, drawn by chance, hold the missing labels of both sides.

        Returns:
            None where nothing shows how many sessions are complete, or none of a side was seen.
        """
        seen = (self.complete_hit.of, self.incomplete_hit.of)
        if not all(seen):
            decided, complete = self.reviewed.of, self.reviewed.count
            seen = (complete, decided - complete)
        if not all(seen):
            return None
        sides = zip((self.complete_hit, self.incomplete_hit), seen, strict=True)
        return max(math.ceil(side.missing * sum(seen) / own) for side, own in sides)

    @property
    def sentence(self) -> str:
        """Return what it proves, for every page that shows this reviewer's verdicts."""
        if self.is_certified:
            return (
                f"certified: it finds {self.complete_hit.value:.0%} of complete and "
                f"{self.incomplete_hit.value:.0%} of incomplete sessions"
            )
        for side, name in ((self.complete_hit, "complete"), (self.incomplete_hit, "incomplete")):
            if side.high < REQUIRED:
                return (
                    f"not certified: it finds at most {side.high:.0%} of {name} sessions, and "
                    f"{REQUIRED:.0%} is needed"
                )
        needed = f"not certified: {counted(self._missing, 'more label')} would tell"
        if self.missing is not None:
            return needed
        left = counted(self.waiting, "unlabelled session")
        return f"{needed}, with {left} left"

    @property
    def corrected(self) -> Estimate | None:
        """Return the share of all its sessions that is complete, corrected for its mistakes.

        Returns:
            None unless it is certified.
        """
        return corrected_rate(self.reviewed.count, self.reviewed.of, self)


def certify(
    reviewer: str,
    labels: Mapping[str, BlindLabel],
    reviews: Mapping[str, VerdictName],
    labelled: Collection[str] = (),
) -> Certificate:
    """Hold a reviewer's verdicts against labels.

    Args:
        reviewer: a model's name.
        labels: what people said blind, by session id.
        reviews: all of its verdicts, as signals let them stand, by session id.
        labelled: sessions that were labelled in any way, which nobody is asked to label again.
    """
    both = [
        LabelledReview(session_id=name, label=labels[name], verdict=reviews[name])
        for name in sorted(labels.keys() & reviews.keys())
    ]
    decided = [each for each in both if each.verdict in COMPLETE | INCOMPLETE]
    named = [each for each in both if each.label.verdict is not None]
    sides = {
        is_complete: [each for each in decided if each.label.is_complete is is_complete]
        for is_complete in (True, False)
    }
    counts = Counter(reviews.values())
    complete, incomplete = (sum(counts[name] for name in names) for names in (COMPLETE, INCOMPLETE))
    different = [
        each
        for each in both
        if each.is_miss or (each.label.verdict and each.label.verdict != each.verdict)
    ]
    return Certificate(
        reviewer=reviewer,
        sessions=len(both),
        exact=Share(sum(each.label.verdict == each.verdict for each in named), len(named)),
        kappa=stats.kappa(
            [each.label.is_complete for each in decided],
            [each.verdict in COMPLETE for each in decided],
        ),
        complete_hit=_hits(sides[True]),
        incomplete_hit=_hits(sides[False]),
        undetermined=len(both) - len(decided),
        reviews=len(reviews),
        waiting=len(reviews.keys() - labels.keys() - set(labelled)),
        reviewed=Share(complete, complete + incomplete),
        disagreements=tuple(sorted(different, key=lambda each: not each.is_miss)),
    )


def _hits(side: list[LabelledReview]) -> Share:
    return Share(sum(not each.is_miss for each in side), len(side))


def corrected_rate(complete: int, of: int, certificate: Certificate) -> Estimate | None:
    """Correct a reviewer's share of complete sessions for the mistakes that labels show it makes.

    Args:
        complete: sessions that the reviewer takes for complete.
        of: sessions that it decided.
        certificate: the reviewer's.

    Returns:
        The share with its 95 % interval; None without a certified reviewer, or of no session.
    """
    if not (of and certificate.is_certified):
        return None
    good, bad = certificate.complete_hit, certificate.incomplete_hit
    return stats.corrected_rate((complete, of), (good.count, good.of), (bad.count, bad.of))
