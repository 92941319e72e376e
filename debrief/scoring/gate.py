"""Hold a review against signals: a passing check proves "verified", a failing one stops "complete".

A model can be wrong, and can be talked into a verdict by what it reads. What a check printed is
not its opinion, so it comes first. Code needs a check that could have failed; of a text, a setting,
an answer or an operation the recording itself is the proof: the words that were written, or what
git printed. A quotation counts only where it stands in a tool call.
"""

from __future__ import annotations

from msgspec.structs import replace

from debrief.scoring.dimensions import dimensions_of, overall_quality
from debrief.scoring.llm_review import SessionReview
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import COMPLETE, Objection, SessionVerdict, VerdictName
from debrief.sessions.model import Session
from debrief.signals.extract import session_signals
from debrief.signals.schema import VERIFYING, SessionSignals

VERSION = "2"
"""Change it with whatever changes a verdict: rows of another version are gated again."""


def gate_scores(row: SessionScores, review: SessionReview, session: Session) -> SessionScores:
    """Return a row with what follows from a review: verdict, dimension scores, overall quality.

    Args:
        row: of the session; its other columns are kept.
        review: of the whole session.
        session: whose signals are compared with the review.

    Raises:
        DimensionError: as of ``overall_quality``.
    """
    verdict = gate_review(review, session_signals(session), row.model)
    scores = dimensions_of(review, verdict.verdict)
    return replace(
        row,
        review=review,
        verdict=verdict,
        dimension_scores=scores,
        overall_quality=overall_quality(scores, review, verdict),
    )


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
    cited = {proof.call for proof in review.proofs} - {""}
    if last is not None and last.passed:
        # Types or lint prove a request only where they were what was asked for, as the review says.
        is_cited = last.worth == "static" and last.evidence.call in cited
        if last.worth in VERIFYING or is_cited:
            return True
    if _is_approved(review, signals):
        return True
    return signals.work != "code" and bool(cited)


def _is_approved(review: SessionReview, signals: SessionSignals) -> bool:
    """Return whether the person's last words on the work approve of it.

    Words of the first request came before any work, so they approve of none, whatever they say.
    """
    first = min((asked.turn for asked in signals.requests), default=1)
    last = max((words.turn for words in review.person), default=0)
    said = [words.says for words in review.person if words.turn == last]
    return last > first and set(said) == {"approval"}
