"""Something that was called and is not there: a program, a subcommand, a script, a module."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from msgspec import Struct

from debrief.friction.normalize import program_of, tables
from debrief.sessions.model import ToolCall
from debrief.signals.excerpts import printed_lines

Part = Literal["program", "subcommand", "script", "python_module"]


class NotFound(Struct, frozen=True):
    """What is not there, as an error says."""

    part: Part
    it: str
    """The missing part alone: of ``rtk bun``, the subcommand."""
    program: str
    """That was called."""
    what: str
    """In words, the same each time."""

    @property
    def name(self) -> str:
        """Return what a person would call it."""
        return f"{self.program} {self.it}".strip() if self.part == "subcommand" else self.it

    def is_called_by(self, words: tuple[str, ...]) -> bool:
        """Return whether a simple command surely called what is missing."""
        return self.it == program_of(words) if self.part == "program" else self.it in words


def not_found_in(line: str, program: str = "") -> NotFound | None:
    """Return what an error says is not there; None where it says no such thing."""
    for part, what, forms in _forms():
        for form in forms:
            if found := form.search(line):
                it = found["it"]
                text = what.format(it=it, program=program).strip()
                return NotFound(part, it, program, text)
    return None


def not_found_lines(call: ToolCall) -> list[str]:
    """Return those of a result's first lines that say that something is not there."""
    return [line for line in printed_lines((call.result or "")[:600])[:3] if not_found_in(line)]


@cache
def _forms() -> tuple[tuple[Part, str, tuple[re.Pattern[str], ...]], ...]:
    return tuple(
        (each["part"], each["what"], tuple(re.compile(f, re.IGNORECASE) for f in each["forms"]))
        for each in tables()["not_found"]
    )
