"""A rubric as every output shows it: pages, the Markdown report, the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from debrief.markdown import interval
from debrief.rubrics.linting import scale_points
from debrief.rubrics.model import Rubric, RubricTrial
from debrief.scoring.model import ScoreName

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


MEANINGS: Mapping[ScoreName, Meaning] = {
    "excellence": Meaning("the verdict", "done and checked, against partly or not done"),
    "token_efficiency": Meaning(
        "lasting lines per 1,000 tokens", "how much was written, not how good it is"
    ),
    "user_turn_efficiency": Meaning(
        "lasting lines per prompt", "how much was written, not how good it is"
    ),
}


class ShownRubric(Struct, frozen=True, kw_only=True):
    """A rubric that holds on unseen sessions, or a candidate that does not."""

    id: str
    key: str
    score_name: ScoreName
    name: str
    description: str
    criteria: str
    """What its points look like."""
    notes: str
    weight: float
    sources: tuple[str, ...]
    """Ids of the extracted rubrics that it was merged from."""
    holds: bool
    reason: str = ""
    """Why a candidate was dropped."""
    effect: float | None
    """On unseen sessions: Cliff's delta; None where it could not be tried."""
    low: float | None
    """Of its 95 % interval."""
    high: float | None
    p: float | None
    """Corrected for all candidates that were looked at."""
    sessions: int
    """Unseen ones that it was tried on."""

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
    """Return a rubric of a final set."""
    return ShownRubric(
        **_words_of(rubric),
        holds=True,
        effect=rubric.held_out_effect,
        low=rubric.held_out_low,
        high=rubric.held_out_high,
        p=rubric.corrected_p,
        sessions=rubric.held_out_sessions,
    )


def candidate_shown(trial: RubricTrial) -> ShownRubric:
    """Return a candidate that was tried."""
    return ShownRubric(
        **_words_of(trial.rubric)
        | {name: getattr(trial, name) for name in ("key", "score_name", "name")},
        holds=trial.kept,
        reason=trial.reason,
        effect=trial.effect,
        low=trial.low,
        high=trial.high,
        p=trial.corrected_p,
        sessions=trial.best_count + trial.worst_count,
    )


def _words_of(rubric: Rubric) -> dict[str, Any]:
    names = ("id", "key", "score_name", "name", "description", "notes", "weight", "sources")
    return {name: getattr(rubric, name) for name in names} | {"criteria": rubric.scoring_criteria}
