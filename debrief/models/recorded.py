"""Answer from a file of recorded answers, as a model that is always there and always the same.

The demo's sessions are judged by it. A question is known by what it is about, so an answer stays
in use when the words of a prompt change; it is read and checked as any model's.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from debrief.content import folder
from debrief.errors import ConfigurationError
from debrief.models.subject import question_about

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

PREFIX = "recorded/"
"""Begins the names of recorded models: ``recorded/NAME`` answers from ``answers/NAME.jsonl``."""
SUFFIX = ".jsonl"


def is_recorded(model: str) -> bool:
    """Return whether a model is a file of recorded answers, which nobody pays for."""
    return model.startswith(PREFIX)


class RecordedAnswer(Struct, frozen=True, kw_only=True):
    """One line of a file of recorded answers."""

    about: str
    """What the question is about, such as ``rubric names-the-file in session 3f2a``."""
    answer: str
    by: str
    """Who wrote the answer: a model's name."""
    on: str
    """The day, ``2026-11-29``."""
    form: str
    """The version of the prompt that was answered."""


class RecordedEngine:
    """Gives the recorded answer to each question.

    Args:
        name: the model's name, with its prefix.

    Raises:
        ConfigurationError: there are no answers of that name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._answers = {row.about: row.answer for row in recorded_answers(name)}

    def complete(self, request: Request) -> Response:
        """Answer one request.

        Raises:
            LM15Error: no answer is recorded for it.
        """
        from dspy import lm15

        about = question_about()
        answer = self._answers.get(about)
        if answer is None:
            raise lm15.InvalidRequestError(f"no answer is recorded {about}")
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant(answer),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=0, output_tokens=0, total_tokens=0),
            provider_data={"usage": {"cost": 0.0}},
        )


@cache
def recorded_answers(name: str) -> tuple[RecordedAnswer, ...]:
    """Return the answers of a recorded model.

    Raises:
        ConfigurationError: there is no such file, or a line of it is wrong.
    """
    path = folder("answers") / f"{name.removeprefix(PREFIX)}{SUFFIX}"
    try:
        lines = path.read_bytes().splitlines()
        return tuple(msgspec.json.decode(line, type=RecordedAnswer) for line in lines if line)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(name, f"{path}: {error}", "Name another model") from None
