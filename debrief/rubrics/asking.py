"""Asking a model until its answer can be read: at most twice again, told what was wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from debrief.errors import ModelError
from debrief.models.answers import AnswerError
from debrief.models.language_model import Answer, accepted
from debrief.rubrics.templates import load_template, render

ATTEMPTS = 3
"""Calls for one question at most: the first, and two with the refusal told."""

Ask = Callable[[str], Answer]
"""Sends a prompt and returns the answer; raises a DebriefError when there is none."""

Value = TypeVar("Value")


class Asked(Struct, Generic[Value], frozen=True, kw_only=True):
    """What was read out of the answer that was usable, and what all calls for it came to."""

    value: Value
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


def ask_until_read(
    ask: Ask, prompt: str, read: Callable[[str], Value], *, model: str, about: str
) -> Asked[Value]:
    """Ask, read the answer, and ask again with the reason when it is refused.

    Args:
        ask: the door to the model.
        prompt: the question.
        read: raises AnswerError for an answer that cannot be used.
        model: its name, for the error.
        about: what the question is about, for the error.

    Raises:
        ModelError: no answer was usable after three calls.
        DebriefError: the model could not be asked.
    """
    answers: list[Answer] = []
    reason = ""
    for _ in range(ATTEMPTS):
        told = render(load_template("rubric_refusal"), {"reason": reason}) if reason else ""
        answers.append(ask(f"{prompt.rstrip()}\n\n{told}" if told else prompt))
        try:
            value = read(answers[-1].text)
        except AnswerError as error:
            reason = error.reason
            continue
        whole = accepted(answers)
        return Asked(
            value=value,
            input_tokens=whole.input_tokens,
            output_tokens=whole.output_tokens,
            cost_usd=whole.cost_usd,
        )
    raise ModelError(
        model,
        f"gave no usable answer about {about} in {ATTEMPTS} calls: {reason}",
        "It is asked again by the next run.",
    )
