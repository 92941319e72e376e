"""Something that was called and is not there: a program, a subcommand, a skill, a module."""

from __future__ import annotations

from msgspec import Struct

from debrief.sessions.model import ToolCall
from debrief.signals.excerpts import printed_lines
from debrief.troubles.model import TroubleReason
from debrief.troubles.naming import forms


class Absent(Struct, frozen=True):
    """What is not there, as an error says."""

    reason: TroubleReason
    it: str
    """The missing part alone: of ``rtk bun``, the subcommand."""
    program: str
    """That was called."""
    subject: str

    @property
    def name(self) -> str:
        """Return what a person would call it."""
        return f"{self.program} {self.it}".strip() if self.reason == "subcommand" else self.it

    def is_asked_for_by(self, words: tuple[str, ...]) -> bool:
        """Return whether a simple command surely called what is missing."""
        if self.reason == "program":
            return self.it == self.program
        return self.reason in ("subcommand", "script") and self.it in words


def absent_in(line: str, program: str = "") -> Absent | None:
    """Return what an error says is not there; None where it says no such thing."""
    for form in forms("absent"):
        for pattern in form.patterns:
            if found := pattern.search(line):
                it = found["it"]
                subject = form.subject.format(it=it, program=program).strip()
                return Absent(form.reason, it, program, subject)
    return None


def absent_lines(call: ToolCall) -> list[str]:
    """Return the first lines of a result that say that something is not there."""
    return [line for line in printed_lines((call.result or "")[:600])[:3] if absent_in(line)]
