"""A rubric as every output shows it: pages, the Markdown report, the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from debrief.markdown import interval
from debrief.rubrics.linting import scale_points
from debrief.rubrics.model import Finding, Rubric

_SMALLEST_P = 0.001
EFFECT_MEANS = (
    "Effects are Cliff's delta, with 95 % intervals: how much more often a good session is above "
    "a bad one than below. Unseen are sessions that nothing was mined from. p is corrected for all "
    "candidates that were looked at."
)


class Meaning(Struct, frozen=True):
    """What a score name measures."""

    measure: str
    more: str

    @property
    def shown(self) -> str:
        """Return all of it."""
        return f"{self.measure}: {self.more}"


FINDINGS: Mapping[Finding, str] = {
    "tells": "tells good from bad",
    "does_not_tell": "does not tell good from bad",
    "too_few": "too few to tell",
}
"""What unseen sessions say of a rubric, in words."""

_MEANINGS: Mapping[str, Meaning] = {
    "excellence": Meaning("the verdict", "complete and verified, against partial or failed"),
    "token_efficiency": Meaning(
        "lasting lines per 1,000 tokens", "how much was written, not how good it is"
    ),
    "user_turn_efficiency": Meaning(
        "lasting lines per prompt", "how much was written, not how good it is"
    ),
}


def meaning_of(score_name: str) -> Meaning:
    """Return what a score name measures."""
    words = score_name.replace("_", " ")
    return _MEANINGS.get(score_name) or Meaning(words, "by the labels or scores of that name")


class ShownRubric(Struct, frozen=True, kw_only=True):
    """A rubric, with what unseen sessions say of it."""

    id: str
    key: str
    score_name: str
    name: str
    description: str
    criteria: str
    """What its points look like."""
    notes: str
    weight: float
    sources: tuple[str, ...]
    """Ids of the extracted rubrics that it was merged from."""
    finding: Finding
    reason: str
    """Why unseen sessions say so."""
    effect: float | None
    """On unseen sessions: Cliff's delta; None where it could not be tested."""
    low: float | None
    """Of its 95 % interval."""
    high: float | None
    p: float | None
    """Corrected for all candidates that were looked at."""
    sessions: int
    """Unseen ones that it was tested on."""

    @property
    def finding_shown(self) -> str:
        """Return what unseen sessions say of it, in words."""
        return FINDINGS[self.finding]

    @property
    def effect_shown(self) -> str:
        """Return the effect with its interval; empty where there is none."""
        return interval(self.effect, self.low, self.high, "+.2f")

    @property
    def p_shown(self) -> str:
        """Return the p-value; empty where there is none."""
        if self.p is None:
            return ""
        return "under 0.001" if self.p < _SMALLEST_P else f"{self.p:.3f}"

    @property
    def scale(self) -> list[tuple[int, str]]:
        """Return what the points of its scale look like, as far as there are any."""
        return sorted(scale_points(self.criteria).items())


def rubric_shown(rubric: Rubric) -> ShownRubric:
    """Return a rubric of a final set as every output shows it."""
    return ShownRubric(
        **{name: getattr(rubric, name) for name in _SAME},
        criteria=rubric.scoring_criteria,
        reason=rubric.finding_reason,
        effect=rubric.held_out_effect,
        low=rubric.held_out_low,
        high=rubric.held_out_high,
        p=rubric.corrected_p,
        sessions=rubric.held_out_sessions,
    )


_SAME = (
    *("id", "key", "score_name", "name", "description", "notes", "weight", "sources", "finding"),
)
