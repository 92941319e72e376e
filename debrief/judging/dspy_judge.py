"""A judge answered by a language model, as a DSPy program.

DSPy rather than a prompt of our own: the judge's Markdown becomes the signature's instructions
by ``.with_instructions()``, so a judge stays a text that people edit and an optimiser can later
improve, and the form of inputs and outputs is kept apart from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from debrief.errors import ModelError
from debrief.judging.model import ChangeContext, Judge, Judgement
from debrief.models.language_model import LanguageModel, failures_named, usage_of
from debrief.sessions.model import Session

if TYPE_CHECKING:
    import dspy

ATTEMPTS = 3
"""Calls for one judgement at most: an answer that cannot be used is asked for again."""


class DspyJudge:
    """Answers for every judge with the model that the judge names.

    Args:
        models: gives the model of a name; asked once a judgement.
    """

    def __init__(self, models: Callable[[str], LanguageModel]) -> None:
        self._models = models

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session.

        Raises:
            ModelError: there was no usable answer after all retries.
        """
        import dspy

        lm = self._models(judge.model).new_lm()
        program = dspy.Predict(signature(judge.body))
        with failures_named(judge.model), dspy.context(lm=lm):
            said = _usable(program, context, judge.model)
        usage = usage_of(lm)
        return Judgement(
            score=float(said.score),
            feedback=str(said.feedback),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_usd=usage.cost_usd,
        )


def signature(instructions: str) -> type[dspy.Signature]:
    """Return the judges' signature with a judge's instructions."""
    made: type[dspy.Signature] = _base_signature().with_instructions(instructions)
    return made


def _usable(program: Any, context: ChangeContext, model: str) -> Any:
    from dspy.utils.exceptions import AdapterParseError

    reason = ""
    for _ in range(ATTEMPTS):
        try:
            said = program(plan_content=context.plan_content, git_changes=context.git_changes)
        except AdapterParseError as error:
            reason = f"an answer that cannot be read: {' '.join(str(error).split())[:300]}"
            continue
        score = said.score
        if isinstance(score, float) and math.isfinite(score) and 0.0 <= score <= 1.0:
            return said
        reason = f"a score of {score!r}, which is not from 0 to 1"
    raise ModelError(model, f"gave, {ATTEMPTS} times, {reason}", "The next run asks again.")


@cache
def _base_signature() -> type[dspy.Signature]:
    import dspy

    class JudgeSignature(dspy.Signature):  # type: ignore[misc]
        """Judge a change."""

        plan_content: str = dspy.InputField(desc="Plan content")
        git_changes: str = dspy.InputField(desc="Git changes")
        score: float = dspy.OutputField(desc="Score from 0.0 to 1.0")
        feedback: str = dspy.OutputField(desc="Detailed feedback")

    return JudgeSignature
