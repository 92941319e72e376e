"""A second opinion: a large model reads only the sessions that a small one is unsure of."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from debrief.keys import digest_of
from debrief.models.answers import NoAnswerError
from debrief.models.language_model import TooLongError
from debrief.models.usage import total_cost
from debrief.scoring.model import FirstOpinion, SessionScores, UnsureReason
from debrief.scoring.verdict import DONE, SHORT_OF_DONE, SessionVerdict

VERSION = "1"
"""Raised when other sessions need one."""
ASSUMED_ONE_IN = 4
"""Of the sessions that nobody read yet, an estimate counts a second opinion for one in so many."""
ASSUMED_SHOWN = (
    f"a second opinion is counted for one in {ASSUMED_ONE_IN} sessions that the first model has "
    "not read yet: an assumption"
)
UNSURE_SHOWN: Final[dict[UnsureReason, str]] = {
    "refused": "its answers could not be used",
    "low_confidence": "its confidence is low",
    "undetermined": "nothing decides for it",
    "parts_differ": "its parts were scored differently",
    "contradicts_check": "the last check says the opposite",
}
"""Each reason in a few words."""


def unsure_reason(
    row: SessionScores, by_rules: SessionVerdict | None, error: Exception | None
) -> UnsureReason | None:
    """Return why another model should read a session; None where the first reading does.

    Where an outcome is known, its verdict holds whatever a model reads, so that confidence and
    checks do not matter. A model that could not be asked at all is no reason to ask a dearer one.

    Args:
        row: the first model's.
        by_rules: the verdict by the outcome, else by the rules.
        error: what the first model failed by.
    """
    if row.status == "failed" or row.reading is None:
        return "refused" if isinstance(error, NoAnswerError | TooLongError) else None
    if row.uncertain:
        return "parts_differ"
    if by_rules is not None and by_rules.basis == "outcome":
        return None
    if row.reading.verdict == "undetermined":
        return "undetermined"
    if row.reading.confidence == "low":
        return "low_confidence"
    return "contradicts_check" if _contradicts(row, by_rules) else None


def _contradicts(row: SessionScores, by_rules: SessionVerdict | None) -> bool:
    if row.reading is None or by_rules is None or by_rules.basis != "check":
        return False
    failed, said = by_rules.verdict in SHORT_OF_DONE, row.reading.verdict
    return said in DONE if failed else said == "failed"


def is_assumed(session_id: str) -> bool:
    """Return whether an estimate counts a second opinion on a session that nobody read yet."""
    return int(digest_of("second-opinion", session_id)[:8], 16) % ASSUMED_ONE_IN == 0


def with_first(second: SessionScores, first: SessionScores, reason: UnsureReason) -> SessionScores:
    """Return the second model's row with the first one's opinion beside it.

    Where the second has none, the first one's row stands and says why.
    """
    if second.status == "failed":
        return replace(first, second_failure=second.failure)
    opinion = FirstOpinion(
        model=first.model,
        reason=reason,
        verdict=first.reading.verdict if first.reading else None,
        confidence=first.reading.confidence if first.reading else None,
        overall_quality=first.overall_quality,
        input_tokens=first.input_tokens,
        output_tokens=first.output_tokens,
        cost_usd=first.cost_usd,
    )
    return replace(
        second,
        scoring_fingerprint=first.scoring_fingerprint,
        first_opinion=opinion,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        cost_usd=total_cost((first.cost_usd, second.cost_usd)),
    )
