"""A session as text in a terminal, from what its page is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.rule import Rule
from rich.text import Text

from debrief.cli.assessment_text import cut, print_assessment, print_line
from debrief.markdown import counted
from debrief.view.marks import EvidenceMark, Gap, find
from debrief.view.session import DEEDS, OF_A_FILE, Limits, SessionView, given_shown

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.sessions.model import ToolCall
    from debrief.view.figures import Figure
    from debrief.view.transcript import ShownAgent, ShownTranscript, ShownTurn, Step

_BRIEF = Limits(head=300, tail=300, prose=6_000, lines=30, steps=20)
_MARKED = "black on yellow"
_NAME = 100
"""Characters of a tool's or a subagent's name."""
_LINES = {"added": ("+", "green"), "removed": ("-", "red"), "hunk": ("", "cyan"), "same": (" ", "")}
_STATES = {"done": "✓", "doing": "▸", "open": "○"}
_STATUS = {"failed": "failed", "rejected": "refused", "unanswered": "no answer"}


def print_session(
    out: Console, transcript: ShownTranscript, figure: Figure | None, turn: int | None = None
) -> None:
    """Print a session with its scores; of one turn alone all that it holds, without the scores."""
    limits = _BRIEF if turn is None else OF_A_FILE
    printer = _Printer(out, SessionView(transcript, limits=limits))
    if turn is None:
        print_assessment(out, transcript, figure)
    for shown in transcript.turns:
        if turn in (None, shown.turn.number):
            printer.turn(shown)
    for agent in transcript.stray_agents() if turn is None else ():
        printer.agent(agent, 0)


class _Printer:
    def __init__(self, out: Console, view: SessionView) -> None:
        self._out = out
        self._view = view

    def line(self, text: str | Text, indent: int = 0, style: str = "") -> None:
        print_line(self._out, text, indent, style)

    def turn(self, shown: ShownTurn) -> None:
        turn = shown.turn
        name = f"Turn {turn.number}" if turn.number else "Before the first prompt"
        about = [f"{turn.at:%H:%M}"] if turn.at else []
        about += [counted(turn.images, "image")] if turn.images else []
        about += ["the person went back to before it"] if turn.rewound else []
        about += ["from the session that this is a fork of"] if turn.origin == "inherited" else []
        self._out.print()
        self._out.print(Rule(Text("  ".join([name, *about]), "bold"), align="left"))
        for step in shown.steps:
            self.step(step, 0)

    def step(self, step: Step, indent: int) -> None:
        marks = self._view.marks_of(step)
        if step.call is not None:
            self.call(step, step.call, marks, indent)
        elif step.kind == "prompt":
            prompt = self.words(step.text.strip() or "(no words)", marks)
            prompt.stylize("bold")
            self.line(prompt, indent)
        elif step.kind == "words":
            self._out.print()
            self.line(self.words(step.text, marks, self._view.limits.prose), indent)
        elif step.kind == "person":
            said = self.words(f"{DEEDS[step.deed]}: {step.text}".rstrip(": "), marks)
            said.stylize("yellow")
            self.line(said, indent)
        else:
            names = {"thinking": "Thinking", "expansion": "What the model was given"}
            name = names.get(step.kind, "The conversation was compacted")
            if step.given:
                name = f"{given_shown(step)} (no person’s words)"
            text = step.text if self._view.limits is OF_A_FILE or marks else ""
            first = self._view.first_line(step.text)
            self.line(f"{name}  {first if not text else ''}".rstrip(), indent, "dim italic")
            if text:
                self.line(self.words(self._view.plain(text), marks), indent + 2)
        self.backs(marks, indent)

    def call(self, step: Step, call: ToolCall, marks: Sequence[EvidenceMark], indent: int) -> None:
        shown, agents = self._view.call(call), self._view.agents_of(call)
        status = f"exit {call.exit_code}" if call.exit_code else _STATUS.get(call.status, "")
        counts = f"  +{call.added} −{call.removed}" if call.added or call.removed else ""
        title = self.words(shown.title, marks)
        self.line(
            Text.assemble(
                (f"● {cut(call.name, _NAME)}  ", "cyan"),
                title,
                (counts, "green"),
                (f"  {status}", "red"),
            ),
            indent,
        )
        inner = indent + 4
        if shown.command and shown.command.strip() != shown.title:
            self.line(self.words(shown.command, marks), inner)
        if shown.diff:
            diff = Text("\n").join(
                Text(f"{_LINES[line.kind][0]}{line.text}", _LINES[line.kind][1])
                for line in self._view.lines(shown.diff)
            )
            self.line(_cited(diff, marks), inner)
        if (left := len(shown.diff) - self._view.limits.lines) > 0:
            self.line(f"… {counted(left, 'line')} left out …", inner, "dim italic")
        for item in shown.items:
            self.line(f"{_STATES[item.state]} {item.text}", inner)
        if shown.text:
            self.line(self.words(shown.text, marks), inner)
        if shown.kind in ("web", "other"):
            for field in shown.fields:
                self.line(self.words(f"{field.name}: {field.text}", marks), inner)
        self.result(call, shown.kind, marks, inner)
        for agent in agents:
            self.agent(agent, inner)

    def result(self, call: ToolCall, kind: str, marks: Sequence[EvidenceMark], indent: int) -> None:
        result = self._view.plain(call.result or "").strip("\n")
        if kind in ("edit", "todo") and call.status == "ok":
            return
        is_whole = self._view.limits is OF_A_FILE or bool(marks)
        if kind in ("read", "search") and call.status == "ok" and not is_whole:
            self.line(counted(result.count("\n") + bool(result), "line"), indent, "dim")
        elif result:
            text = self.words(result, marks)
            text.stylize("dim")
            self.line(text, indent)

    def agent(self, agent: ShownAgent, indent: int) -> None:
        name = cut(agent.agent.type or "agent", _NAME)
        self.line(f"Subagent {name}: {self._view.work(agent)}", indent, "magenta")
        if indent > 16:
            return
        steps = self._view.shown_of(agent)
        for step in steps:
            self.step(step, indent + 2)
        if left := len(agent.steps) - len(steps):
            self.line(f"… {counted(left, 'step')} left out …", indent + 2, "dim italic")

    def words(self, text: str, marks: Sequence[EvidenceMark], head: int | None = None) -> Text:
        """Return a text as far as it is shown, with what reasons cite standing out."""
        made = Text()
        for part in self._view.clip(text, marks, head):
            if isinstance(part, Gap):
                made.append(f"\n… {counted(part.characters, 'character')} left out …\n", "italic")
            else:
                made.append(part)
        return _cited(made, marks)

    def backs(self, marks: Sequence[EvidenceMark], indent: int) -> None:
        for mark in marks:
            names = ", ".join(back.name for back in mark.backs)
            self.line(f"↖ evidence for {names}", indent + 4, "yellow")


def _cited(text: Text, marks: Sequence[EvidenceMark]) -> Text:
    """Let the words that reasons cite stand out."""
    for mark in marks:
        place = find(text.plain, mark.quote)
        if place is not None:
            text.stylize(_MARKED, *place)
    return text
