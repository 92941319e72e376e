"""A session as text in a terminal, from what its page is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from debrief.execution.comparing import compared_tests
from debrief.execution.shown import check_shown, reason_shown, tree_shown
from debrief.markdown import counted
from debrief.scoring.verdict import ground_with_turns
from debrief.view.reasons import OF_READING, EvidenceMark, Gap, find
from debrief.view.session import DEEDS, OF_A_FILE, Limits, SessionView, given_shown, shown_title

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.execution.model import Execution
    from debrief.scoring.reading import TrainOn
    from debrief.sessions.model import ToolCall
    from debrief.view.figures import Figure
    from debrief.view.reasons import ShownReason
    from debrief.view.transcript import ShownAgent, ShownTranscript, ShownTurn, Step

_BRIEF = Limits(head=300, tail=300, prose=6_000, lines=30, steps=20)
_MARKED = "black on yellow"
_NAME, _LONGEST = 100, 4_000
"""Characters of a name, and of what else is said in one line."""
_LINES = {"added": ("+", "green"), "removed": ("-", "red"), "hunk": ("", "cyan"), "same": (" ", "")}
_TESTS = 20
"""Tests of a check that are shown."""
_STATES = {"done": "✓", "doing": "▸", "open": "○"}
_STATUS = {"failed": "failed", "rejected": "refused", "unanswered": "no answer"}


def print_session(
    out: Console, transcript: ShownTranscript, figure: Figure | None, turn: int | None = None
) -> None:
    """Print a session with its scores; of one turn alone all that it holds, without the scores."""
    limits = _BRIEF if turn is None else OF_A_FILE
    printer = _Printer(out, SessionView(transcript, limits=limits))
    if turn is None:
        printer.head(transcript, figure)
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
        shown = Text(_cut(text, _LONGEST), style) if isinstance(text, str) else text
        self._out.print(Padding(shown, (0, 0, 0, indent)), soft_wrap=False)

    def head(self, transcript: ShownTranscript, figure: Figure | None) -> None:
        session, main = transcript.session, transcript.assessment.main
        self.line(shown_title(session), style="bold")
        took = f"{session.started:%Y-%m-%d %H:%M} UTC, {counted(session.prompt_count, 'turn')}"
        lines = f"+{session.lines_added} −{session.lines_removed} lines"
        self.line(f"{session.id}  {session.tool}, {session.task}, {took}, {lines}", style="dim")
        if session.relative_of:
            self.line(f"a fork of {session.relative_of}", style="dim")
        if figure is not None:
            cost = f", about ${figure.cost:.2f}" if figure.cost else ""
            context = f"context up to {figure.largest:,}"
            self.line(f"{figure.tokens:,} tokens{cost}; {context}", style="dim")
        for label in transcript.assessment.labels:
            self.line(f"label  {label}")
        if transcript.assessment.warning:
            self.line(transcript.assessment.warning, style="yellow")
        if main is None:
            self.line("Nobody has scored it; --offline does.", style="dim")
            return
        if main.status == "failed":
            self.line(f"could not be scored: {main.failure}", style="red")
        verdict = transcript.assessment.verdict
        if verdict is not None:
            self.line(Text.assemble(("verdict  ", "bold"), (verdict.shown, "bold cyan")))
            self.line(ground_with_turns(verdict), 4)
        if transcript.assessment.reading_shown:
            self.line(f"{main.model}: {transcript.assessment.reading_shown}", 4, "dim")
        if transcript.assessment.execution is not None:
            self.execution(transcript.assessment.execution)
        read = transcript.assessment.reading
        reasons = [reason for reason in transcript.reasons if reason.group != "verdict"]
        for reason in (one for one in reasons if one.group in OF_READING):
            self.reason(reason, main.model)
        if read is not None and read.train is not None:
            self.train(read.train)
        for reason in (one for one in reasons if one.group not in OF_READING):
            self.reason(reason, main.model)
        if main.status == "ok":
            mean = transcript.assessment.mean_shown
            self.line(f"mean of the dimensions {mean}, scored by {main.model}", style="dim")

    def execution(self, row: Execution) -> None:
        self.line(Text("run again, before and after its change", "bold"))
        tree = "" if row.tree is None else tree_shown(row.tree)
        for said in filter(None, (reason_shown(row), tree)):
            self.line(said, 4)
        for check in row.checks:
            self.line(f"{check.check.command}  {check_shown(check)}", 4)
            changed = [test for test in compared_tests(check) if test.changed]
            for test in changed[:_TESTS]:
                self.line(f"{test.name}: {test.before or '–'} → {test.after or '–'}", 8)
            if len(changed) > _TESTS:
                self.line(f"… and {counted(len(changed) - _TESTS, 'more test')}", 8, "dim italic")

    def train(self, train: TrainOn) -> None:
        said = {"all": "all of it", "none": "nothing of it", "parts": _turns(train.turns)}
        self.line(Text.assemble(("train on  ", "bold"), said[train.what]))

    def reason(self, reason: ShownReason, main: str) -> None:
        name = f"{reason.group}: {reason.name}" if reason.group == "trouble" else reason.name
        is_by_other = reason.by not in ("", main) and reason.group != "other"
        by = f"  by {reason.by}" if is_by_other else ""
        self.line(Text.assemble((f"{name}  ", "bold"), (reason.shown, "bold cyan"), (by, "dim")))
        asked = f"turn {reason.turn}: " if reason.turn else ""
        rule = f"rule: {reason.rule}" if reason.rule else ""
        said = (reason.failure, "red"), (reason.text and f"{asked}{reason.text}", ""), (rule, "")
        for words, style in said:
            if words:
                self.line(words, 4, style)
        places = self._view.transcript.places.get(reason.id, [])
        if reason.group in ("request", "claim"):
            for place in places:
                if place.quote not in reason.text:
                    quote = self._view.first_line(place.quote)
                    self.line(f"shown by turn {place.turn}: “{quote}”", 4, "dim")
        elif places:
            turns = ", ".join(dict.fromkeys(str(place.turn) for place in places))
            self.line(f"seen in turn {turns}", 4, "dim")

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
                (f"● {_cut(call.name, _NAME)}  ", "cyan"),
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
        name = _cut(agent.agent.type or "agent", _NAME)
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


def _turns(ranges: Iterable[tuple[int, int]]) -> str:
    each = (f"{first}" if first == last else f"{first} to {last}" for first, last in ranges)
    return f"turns {', '.join(each)}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
