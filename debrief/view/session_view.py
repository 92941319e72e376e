"""What the templates of a session ask for: how much is shown, what is unfolded, what links where.

The page and the saved file use the same templates; a file has no other pages to lead to, and shows
more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from debrief.markdown import counted, shorten
from debrief.sessions.model import ToolCall, Turn
from debrief.view.assessment import Assessment, ShownReason, reasons_of
from debrief.view.calls import DiffLine, ShownCall, shown_call
from debrief.view.marking import EvidenceMark, Gap, clipped
from debrief.view.templating import markdown
from debrief.view.transcript import CitedPlace, Part, ShownAgent, ShownTranscript, Step, anchor_of

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)")
_DEEDS = {
    "interruption": "Interrupted",
    "rejection": "Refused",
    "answer": "Answered",
    "remark": "Said meanwhile",
    "slash_command": "Command",
}
_OPEN_LINES = 40
"""Lines of a diff, or of what a failed call printed, that are shown without a click."""
_LONGEST_LINE = 2_000
_FIRST_WORDS = 110


class Limits(Struct, frozen=True, kw_only=True):
    """How much is shown of what may be of any length."""

    head: int = 4_000
    """Characters of the beginning of an output or a prompt."""
    tail: int = 2_000
    """Characters of its end."""
    prose: int = 30_000
    """Characters of Markdown."""
    lines: int = 400
    """Lines of a diff."""
    steps: int = 60
    """Steps of a subagent within the session that it worked for."""


OF_A_FILE = Limits(head=30_000, tail=20_000, prose=200_000, lines=5_000, steps=100_000)


class SessionView:
    """A session for the templates.

    Args:
        transcript: what is shown.
        assessment: what was said of it.
        path: of its page, up to where the query goes on; empty in a file.
        shown: the numbers of the parts that are on the page.
        limits: how much is shown.
    """

    def __init__(
        self,
        transcript: ShownTranscript,
        assessment: Assessment,
        path: str = "",
        shown: Sequence[int] = (),
        limits: Limits | None = None,
    ) -> None:
        self.transcript = transcript
        self.assessment = assessment
        self.reasons = reasons_of(assessment)
        self.session = transcript.session
        self.path = path
        self._shown = frozenset(shown)
        self.limits = limits or Limits()
        self.marks_of = transcript.marks_of
        self.agents_of = transcript.agents_of

    def group(self, name: str) -> list[ShownReason]:
        """Return the reasons of one kind."""
        return [reason for reason in self.reasons if reason.group == name]

    def places(self, reason: ShownReason) -> list[CitedPlace]:
        """Return where a reason is seen, each place once."""
        return self.transcript.places.get(reason.id, [])

    def call(self, call: ToolCall) -> ShownCall:
        """Return what is shown of a call beside its result."""
        has_agent = bool(self.agents_of(call))
        return shown_call(call, self.session.cwd, has_agent=has_agent)

    def is_open(self, call: ToolCall, shown: ShownCall) -> bool:
        """Return whether a call is unfolded from the start: what people want to see of it is
        short, and not the usual."""
        if shown.kind in ("todo", "plan", "question"):
            return len(shown.items) != 1
        if shown.kind == "edit":
            return len(shown.diff) <= _OPEN_LINES
        is_wrong = call.status in ("failed", "rejected") or bool(call.exit_code)
        return is_wrong and (call.result or "").count("\n") <= _OPEN_LINES

    def clip(
        self, text: str, marks: Sequence[EvidenceMark], head: int | None = None
    ) -> list[str | Gap]:
        """Return what is shown of a long text, and how much of it is not.

        Args:
            text: however long.
            marks: in it.
            head: characters of its beginning; None: as the limits say.
        """
        quotes = [mark.quote for mark in marks]
        return clipped(text, head or self.limits.head, self.limits.tail, quotes)

    def plain(self, output: str) -> str:
        """Return what a command printed without what colours a terminal."""
        return _ANSI.sub("", output) if "\x1b" in output or "\r" in output else output

    def markdown(self, text: str) -> Markup:
        """Return Markdown as HTML, cut where it is very long."""
        left = len(text) - self.limits.prose
        note = f"\n\n… {counted(left, 'character')} left out …" if left > 0 else ""
        return markdown(text[: self.limits.prose] + note)

    def lines(self, diff: Sequence[DiffLine]) -> list[DiffLine]:
        """Return the lines of a diff that are shown."""
        return [
            line
            if len(line.text) <= _LONGEST_LINE
            else DiffLine(line.kind, f"{line.text[:_LONGEST_LINE]}…")
            for line in diff[: self.limits.lines]
        ]

    def lines_left_out(self, diff: Sequence[DiffLine]) -> int:
        """Return how many lines of a diff are not shown."""
        return max(0, len(diff) - self.limits.lines)

    def first_line(self, text: str) -> str:
        """Return the beginning of a text on one line."""
        return shorten(text[: 4 * _FIRST_WORDS], _FIRST_WORDS)

    def deed(self, kind: str) -> str:
        """Return what the person did, in words."""
        return _DEEDS[kind]

    def work(self, agent: ShownAgent) -> str:
        """Return how much a subagent did."""
        calls = sum(len(message.calls) for message in agent.agent.messages)
        messages = counted(len(agent.agent.messages), "message")
        return f"{messages}, {counted(calls, 'call')}"

    def has_marks(self, agent: ShownAgent) -> bool:
        """Return whether a reason cites a subagent's work."""
        return any(self.marks_of(step) for step in agent.steps)

    def shown_of(self, agent: ShownAgent) -> Sequence[Step]:
        """Return the steps of a subagent that are shown at its call: the first, and on to the last
        that a reason cites."""
        cited = (place for place, step in enumerate(agent.steps, 1) if self.marks_of(step))
        return agent.steps[: max(self.limits.steps, *cited, 0)]

    def left_of(self, agent: ShownAgent) -> int:
        """Return how many steps of a subagent are not shown at its call."""
        return len(agent.steps) - len(self.shown_of(agent))

    def anchor(self, turn: Turn, step: Step) -> str:
        """Return the id of a step's element; empty for none."""
        return anchor_of(turn, step)

    def mark_href(self, mark: EvidenceMark) -> str:
        """Return the address of a mark."""
        return self.href(mark.anchor)

    def turn_href(self, number: int) -> str:
        """Return the address of a turn."""
        return self.href(f"turn-{number}")

    def href(self, anchor: str) -> str:
        """Return the address of an anchor, on this page or in another part of the transcript."""
        part = self.transcript.part_with(anchor)
        if not self.path or part is None or part.number in self._shown:
            return f"#{anchor}"
        return f"{self.path}at={anchor}#{anchor}"

    def part_href(self, part: Part, *, fragment: bool = False) -> str:
        """Return the address of a part: a page that begins with it, or its HTML alone."""
        return f"{self.path}part={part.number}{'&fragment=1' * fragment}"

    def whole_href(self, anchor: str) -> str:
        """Return the address of a call's or a prompt's whole text; empty in a file."""
        return f"{self.path}whole={anchor}" if self.path else ""

    def agent_href(self, agent: ShownAgent) -> str:
        """Return the address of a subagent's own page."""
        return f"{self.path.partition('?')[0]}?agent={agent.number}"
