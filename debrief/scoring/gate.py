"""Hold a review against signals: a passing check proves "verified", a failing one stops "complete".

A model can be wrong, and can be talked into a verdict by what it reads. What a check printed is
not its opinion, so it comes first.
"""

from __future__ import annotations

from debrief.scoring.llm_review import SessionReview
from debrief.scoring.verdict import COMPLETE, Objection, SessionVerdict, VerdictName
from debrief.signals.schema import VERIFYING, SessionSignals, WorkKind

VERSION = "1"
"""Change it with whatever changes a verdict: rows of another version are gated again."""
_CHECKABLE: frozenset[WorkKind] = frozenset(["code", "settings"])
"""Work that a check can fail for. Of a text, an answer or an operation the recording itself is
the proof: the words that were written, or what git printed."""


def gate_review(review: SessionReview, signals: SessionSignals, model: str) -> SessionVerdict:
    """Return the verdict of a review as far as signals let it stand.

    Args:
        review: of the whole session.
        signals: of the session.
        model: the reviewer's name.
    """
    stated = review.verdict
    verdict, objection = _gated(stated, review, signals)
    evidence = review.proofs
    last = signals.last_check
    if objection == "failed_check" and last is not None:
        evidence = (last.evidence,)
    return SessionVerdict(
        verdict=verdict,
        basis="review",
        source=model,
        evidence=evidence,
        stated=stated if objection else None,
        objection=objection,
    )


def _gated(
    stated: VerdictName, review: SessionReview, signals: SessionSignals
) -> tuple[VerdictName, Objection | None]:
    last = signals.last_check
    if stated in COMPLETE and last is not None and last.passed is False:
        return "partial", "failed_check"
    if stated == "complete_verified" and not _is_proven(review, signals):
        return "complete_unverified", "no_proof"
    return stated, None


def _is_proven(review: SessionReview, signals: SessionSignals) -> bool:
    """Return whether a check that passed, the person's word, or the recording itself is a proof."""
    last = signals.last_check
    if last is not None and last.passed and last.worth in VERIFYING:
        return True
    if any(words.says == "approval" for words in review.person):
        return True
    return signals.work not in _CHECKABLE and any(proof.call for proof in review.proofs)
