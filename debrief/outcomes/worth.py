"""Which session's label would teach most: one that is hard to call, or judged differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from debrief.scoring.model import SuccessEstimate

_NOTHING_TELLS = 0.5
"""Less than the middle of success: ``debrief fit`` learns nothing from such a session."""
_MIDDLE, _APART = 0.5, 0.25
"""From where on the middle of success, and a difference between scores, are worth a word."""


class OneScorer(Protocol):
    """What is read of a row of ``session_scores``."""

    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def overall_quality(self) -> float | None: ...  # noqa: D102
    @property
    def uncertain(self) -> bool: ...  # noqa: D102
    @property
    def chunk_agreement(self) -> float | None: ...  # noqa: D102
    @property
    def success(self) -> SuccessEstimate | None: ...  # noqa: D102


class OneJudge(Protocol):
    """What is read of a row of ``judge_evaluations``."""

    @property
    def judge(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def score(self) -> float | None: ...  # noqa: D102


class Worth(Struct, frozen=True):
    """How much a label of a session would teach, and why."""

    value: float
    """The sum of what the reasons are worth, each from 0 to 1; 0 for a session without scores."""
    why: tuple[str, ...] = ()


def worth_of(scores: Sequence[OneScorer], judgements: Sequence[OneJudge]) -> Worth:
    """Return how much a label of a session would teach.

    Args:
        scores: of the session, one a scorer.
        judgements: of the session, by all judges.
    """
    parts = list(_parts([row for row in scores if row.status == "ok"], judgements))
    return Worth(sum(value for value, _ in parts), tuple(why for _, why in parts if why))


def _parts(
    scores: Sequence[OneScorer], judgements: Sequence[OneJudge]
) -> Iterator[tuple[float, str]]:
    if not scores:
        return
    if scores[0].success is not None:
        yield _of_success(scores[0].success)
    marks = {f"{row.judge} ({row.model})": row.score for row in judgements}
    yield _differ("Judges", {who: mark for who, mark in marks.items() if mark is not None})
    overall = {row.model: row.overall_quality for row in scores}
    yield _differ("Scorers", {who: mark for who, mark in overall.items() if mark is not None})
    for row in scores:
        if row.uncertain:
            agreement = f"{row.chunk_agreement or 0.0:.2f}"
            yield 1.0, f"Its parts were scored differently (agreement {agreement})."


def _of_success(success: SuccessEstimate) -> tuple[float, str]:
    if success.cannot_tell:
        return _NOTHING_TELLS, f"Nothing tells whether it succeeded: {success.cannot_tell}."
    place = success.rank if success.probability is None else success.probability
    if place is None:
        return 0.0, ""
    middle = 1 - abs(2 * place - 1)
    shown = f"Its success is hard to call ({success.shown})."
    return middle, shown if middle >= _MIDDLE else ""


def _differ(who: str, marks: dict[str, float]) -> tuple[float, str]:
    if len(marks) < 2:
        return 0.0, ""
    low, high = (choose(marks, key=lambda name: (marks[name], name)) for choose in (min, max))
    apart = marks[high] - marks[low]
    shown = f"{who} differ: {high} says {marks[high]:.2f}, {low} {marks[low]:.2f}."
    return apart, shown if apart >= _APART else ""
