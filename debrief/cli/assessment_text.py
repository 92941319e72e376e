"""Scores, verdict and reasons of a session as terminal text, for ``debrief score`` and ``show``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from debrief.execution.comparing import compared_tests
from debrief.execution.shown import check_shown, reason_shown, tree_shown
from debrief.markdown import counted, shorten
from debrief.scoring.verdict import basis_with_turns
from debrief.view.assessment import OF_READING, OF_SIGNALS

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.execution.model import Execution
    from debrief.scoring.llm_review import TrainOn
    from debrief.view.assessment import ShownReason
    from debrief.view.figures import Figure
    from debrief.view.transcript import CitedPlace, ShownTranscript

_LONGEST = 4_000
"""Characters of what is said in one line."""
_QUOTE = 90
_QUOTED = 4
"""Places of a reason that are shown with their words; of the others the turns alone."""
_TESTS = 20
"""Tests of a check that are shown."""
_VERDICT_STYLES = {"good": "bold green", "fair": "bold yellow", "bad": "bold red"}


def print_line(out: Console, text: str | Text, indent: int = 0, style: str = "") -> None:
    """Print a text, indented; the lines after a break are indented too."""
    shown = Text(cut(text, _LONGEST), style) if isinstance(text, str) else text
    out.print(Padding(shown, (0, 0, 0, indent), expand=False), soft_wrap=False)


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, with an ellipsis where it was longer."""
    return text if len(text) <= most else f"{text[:most]}…"


def print_assessment(out: Console, transcript: ShownTranscript, figure: Figure | None) -> None:
    """Print a session's head: what it is, its verdict, its signals, and all reasons with their
    evidence.

    Args:
        out: the terminal.
        transcript: the session with what was said of it.
        figure: what it took; None where that is not shown.
    """
    session, said = transcript.session, transcript.assessment
    main, verdict = said.main, said.verdict
    print_line(out, transcript.title, style="bold")
    took = f"{session.started:%Y-%m-%d %H:%M} UTC, {counted(session.prompt_count, 'turn')}"
    lines = f"+{session.lines_added} −{session.lines_removed} lines"
    print_line(out, f"{session.id}  {session.tool}, {session.task}, {took}, {lines}", style="dim")
    if session.relative_of:
        print_line(out, f"a fork of {session.relative_of}", style="dim")
    if figure is not None:
        cost = f", about ${figure.cost:.2f}" if figure.cost else ""
        context = f"context up to {figure.largest:,}"
        print_line(out, f"{figure.tokens:,} tokens{cost}; {context}", style="dim")
    for label in said.labels:
        print_line(out, f"label  {label}")
    for warning in said.warnings:
        print_line(out, warning, style="yellow")
    style = _VERDICT_STYLES.get(said.verdict_tone, "bold cyan")
    print_line(out, Text.assemble(("verdict  ", "bold"), (said.verdict_label, style)))
    if verdict is not None:
        print_line(out, basis_with_turns(verdict), 4)
    if main is not None and main.status == "failed":
        print_line(out, f"the review by {main.model} failed: {main.failure}", 4, "red")
    if main is not None and said.review_shown:
        print_line(out, f"{main.model}: {said.review_shown}", 4, "dim")
    by = main.model if main is not None else ""
    reasons = [reason for reason in transcript.reasons if reason.group != "verdict"]
    signals = [reason for reason in reasons if reason.group in OF_SIGNALS]
    if signals:
        print_line(out, Text("signals", "bold"))
    for reason in signals:
        print_line(out, reason.text, 4)
    if said.execution is not None:
        _print_execution(out, said.execution)
    for reason in (reason for reason in reasons if reason.group in OF_READING):
        _print_reason(out, reason, transcript.places.get(reason.id, ()), by)
    if said.review is not None and said.review.train is not None:
        _print_train(out, said.review.train)
    rest = {*OF_SIGNALS, *OF_READING}
    for reason in (reason for reason in reasons if reason.group not in rest):
        _print_reason(out, reason, transcript.places.get(reason.id, ()), by)
    for number in said.figures:
        print_line(out, f"{number.name} {number.shown}", style="dim")


def _print_execution(out: Console, row: Execution) -> None:
    print_line(out, Text("run again, before and after its change", "bold"))
    tree = "" if row.tree is None else tree_shown(row.tree)
    for words in filter(None, (reason_shown(row), tree)):
        print_line(out, words, 4)
    for check in row.checks:
        print_line(out, f"{check.check.command}  {check_shown(check)}", 4)
        changed = [test for test in compared_tests(check) if test.changed]
        for test in changed[:_TESTS]:
            print_line(out, f"{test.name}: {test.before or '–'} → {test.after or '–'}", 8)
        if len(changed) > _TESTS:
            more = counted(len(changed) - _TESTS, "more test")
            print_line(out, f"… and {more}", 8, "dim italic")


def _print_train(out: Console, train: TrainOn) -> None:
    words = {"all": "all of it", "none": "nothing of it", "parts": _turns(train.turns)}
    print_line(out, Text.assemble(("train on  ", "bold"), words[train.what]))


def _print_reason(
    out: Console, reason: ShownReason, places: Sequence[CitedPlace], main: str
) -> None:
    is_by_other = reason.by not in ("", main) and reason.group != "other"
    by = f"by {reason.by}" if is_by_other else ""
    weight = f"weight {reason.weight:.2f}" if reason.weight is not None else ""
    heading = ((reason.name, "bold"), (reason.shown, "bold cyan"), (by, "dim"), (weight, "dim"))
    print_line(out, Text("  ").join(Text(*part) for part in heading if part[0]))
    asked = f"turn {reason.turn}: " if reason.turn else ""
    instead = f"instead: {reason.instead}" if reason.instead else ""
    texts = (reason.failure, "red"), (reason.text and f"{asked}{reason.text}", ""), (instead, "")
    for words, style in texts:
        if words:
            print_line(out, words, 4, style)
    quoted = [place for place in places if place.quote and place.quote not in reason.text]
    for place in quoted[:_QUOTED]:
        print_line(out, f"seen in turn {place.turn}: “{shorten(place.quote, _QUOTE)}”", 4, "dim")
    rest = [place for place in places if place not in quoted[:_QUOTED]]
    if rest and reason.group not in ("request", "claim"):
        turns = ", ".join(dict.fromkeys(str(place.turn) for place in rest))
        print_line(out, f"seen in turn {turns}", 4, "dim")


def _turns(ranges: Iterable[tuple[int, int]]) -> str:
    turns = (f"{first}" if first == last else f"{first} to {last}" for first, last in ranges)
    return f"turns {', '.join(turns)}"
