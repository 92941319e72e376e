"""Put a judge's questions into the call that scores the session: one call instead of several."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from debrief.judging.dspy_judge import DspyJudge, distance
from debrief.judging.model import ChangeContext, Judge, Judgement
from debrief.models.answers import NoAnswerError
from debrief.models.citing import cited_evidence
from debrief.models.language_model import TooLongError
from debrief.scoring.model_scorer import ModelChunkScorer
from debrief.scoring.scorer import DEFAULT
from debrief.sessions.model import Session


def can_ride(judge: Judge, model: str) -> bool:
    """Return whether a judge's questions fit into the call that scores: the same model answers
    them, with a feedback and a score."""
    return judge.model == model and not judge.criteria


@dataclass(eq=False, repr=False)
class RidingJudge:
    """Takes what is said to a judge out of the answer that scores the session; where the judge's
    questions did not ride, or were left without an answer, the judge is asked alone.

    The stage that scores puts the same question, so whichever comes second finds the answer kept.
    """

    scorer: ModelChunkScorer
    alone: DspyJudge
    version: str
    """Of how models are asked."""

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session.

        Tokens and cost are those that were taken for the judge alone: of an answer that scores as
        well they are in the row of the scores.

        Raises:
            BudgetSpentError: the run may ask no more.
            ModelError: there was no usable answer after all retries.
        """
        return self._rode(judge, session) or self.alone.judge(judge, context, session)

    def _rode(self, judge: Judge, session: Session) -> Judgement | None:
        chunks = DEFAULT.chunks_of(session) if judge in self.scorer.judges else []
        if len(chunks) != 1:
            return None
        try:
            read = self.scorer.read(session, chunks[0])
        except (NoAnswerError, TooLongError):
            return None
        said = [
            (each.judged[judge.name], each.answer) for each in read if judge.name in each.judged
        ]
        if len(said) < len(read) or not all(found.feedback for found, _ in said):
            return None
        scores = [found.score for found, _ in said if found.score is not None]
        mean = fmean(scores) if 2 * len(scores) >= len(said) else None
        found, answer = min(said, key=lambda one: distance(one[0].score, mean))
        return Judgement(
            score=mean,
            feedback=found.feedback,
            samples=len(said),
            **(interval_of(scores) if mean is not None else {}),
            cost_usd=0.0,
            answered_by=answer.model if answer.model not in ("", judge.model) else "",
            evidence=cited_evidence(found.feedback),
        )
