"""Ask a model in plain text, read its answer, and ask again when the answer is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from debrief.models.answers import Answer, ask_until_read
from debrief.models.fencing import marker_of, new_marker
from debrief.models.templates import load_template, render

Ask = Callable[[str], Answer]
"""Sends a prompt and returns the answer; raises a DebriefError when there is none."""

Value = TypeVar("Value")


class PromptedModel(Struct, frozen=True):
    """A model, and what makes its prompts."""

    name: str
    """As rows tell it."""
    ask: Ask
    secret: bytes = b""
    """Of this machine. With it the marker around the same data is the same in every run, so that
    answers can be kept by their prompt, and still nobody else can know it. Without it every
    marker is drawn anew."""

    def read(
        self, prompt: str, parse: Callable[[str], Value], *, about: str
    ) -> tuple[Value, Answer]:
        """Ask, read the answer, and ask again with the reason when it is refused.

        Returns:
            What was read, and the answer with what all calls for it took.

        Raises:
            ModelError: no answer was usable after three calls.
            DebriefError: the model could not be asked.
        """

        def ask(reason: str) -> Answer:
            if not reason:
                return self.ask(prompt)
            again = render(load_template("rubric_refusal"), {"reason": reason})
            return self.ask(f"{prompt.rstrip()}\n\n{again}")

        return ask_until_read(ask, lambda answer: parse(answer.text), model=self.name, about=about)

    def marker(self, *parts: str) -> str:
        """Return the marker around data that ``parts`` identify."""
        return marker_of(self.secret, *parts) if self.secret else new_marker()
