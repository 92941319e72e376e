"""Take what is said to a judge out of the answer that reviews the session: one call for all."""

from __future__ import annotations

from dataclasses import dataclass

from debrief.judging.dspy_judge import DspyJudge
from debrief.judging.model import ChangeContext, Judge, Judgement
from debrief.models.citing import cited_evidence
from debrief.models.language_model import TooLongError
from debrief.scoring.model_scorer import ModelChunkScorer, asked_judges
from debrief.scoring.scorer import DEFAULT
from debrief.sessions.model import Session


def can_ride(judge: Judge, model: str) -> bool:
    """Return whether a judge can be asked in the call that reviews a session: the same model
    answers it, with a feedback and a score."""
    return judge.model == model and not judge.criteria


@dataclass(eq=False, repr=False)
class RidingJudge:
    """Takes judgements out of the answer that reviews the session.

    A judge that was not asked there, or was left without an answer, is asked alone. A refused
    review is final: its judges are not asked again in the run. The stage that scores puts the same
    question, so whichever comes second finds the answer kept.
    """

    scorer: ModelChunkScorer
    alone: DspyJudge
    version: str
    """Of how models are asked."""

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session.

        Tokens and cost are those that were taken for the judge alone: of an answer that reviews as
        well they are in the row of the scores.

        Raises:
            BudgetSpentError: the run may ask no more.
            ModelError: there was no usable answer after all retries.
        """
        return self._rode(judge, session) or self.alone.judge(judge, context, session)

    def _rode(self, judge: Judge, session: Session) -> Judgement | None:
        if judge not in self.scorer.judges:
            return None
        chunks = DEFAULT.chunks_of(session)
        if len(chunks) != 1 or judge not in asked_judges([judge], session, chunks[0]):
            return None
        try:
            read = self.scorer.read(session, chunks[0])
        except TooLongError:
            return None
        said = read.judged.get(judge.name)
        if said is None or not said.feedback:
            return None
        answered_by = read.answer.model
        return Judgement(
            score=said.score,
            feedback=said.feedback,
            cost_usd=0.0,
            answered_by=answered_by if answered_by not in ("", judge.model) else "",
            evidence=cited_evidence(said.feedback),
        )
