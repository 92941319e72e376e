"""What judges said, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from debrief.judging.evaluation import weighted_average
from debrief.models.fencing import make_visible

if TYPE_CHECKING:
    from rich.console import Console

    from debrief.evaluators import Evaluators
    from debrief.judging.model import JudgeEvaluation
    from debrief.judging.worktree import WorktreeChanges

_BAR = 20


def print_verdicts(
    plan_id: str,
    changes: WorktreeChanges,
    rows: Sequence[JudgeEvaluation],
    evaluators: Evaluators,
    out: Console,
) -> None:
    """Print each judge's score and feedback, then the weighted average and what it took."""
    out.print(Text.assemble(("Plan ", "dim"), (plan_id, "bold")))
    out.print(Text.assemble(("Worktree ", "dim"), changes.folder), soft_wrap=True)
    files = len(changes.files) + len(changes.named)
    since = f"since {changes.base[:12]}"
    noun = "file" if files == 1 else "files"
    out.print(Text.assemble(("Changed ", "dim"), f"{files} {noun} {since}"))
    for row in rows:
        out.print()
        out.print(Rule(Text(row.judge, "bold"), align="left", style="dim"))
        by = row.answered_by or row.model
        out.print(_score(row.score or 0.0).append(f"   weight {row.weight:g}, {by}", "dim"))
        out.print()
        out.print(Padding(Text(make_visible(row.feedback.strip())), (0, 2)))
    average = weighted_average(rows)
    out.print()
    out.print(Rule(style="dim"))
    if average is not None:
        out.print(Text("Weighted average  ", "bold").append_text(_score(average)))
    out.print(Text(f"eval fingerprint {evaluators.eval_fingerprint}; {_taken(evaluators)}", "dim"))


def _score(score: float) -> Text:
    colour = "green" if score >= 0.7 else "yellow" if score >= 0.4 else "red"
    filled = round(score * _BAR)
    text = Text(f"{score:.2f} ", f"bold {colour}")
    return text.append("━" * filled, colour).append("─" * (_BAR - filled), "dim")


def _taken(evaluators: Evaluators) -> str:
    if evaluators.models is None:
        return "answered offline, without a model"
    spent = evaluators.spent
    cost = spent.usage.cost_usd
    price = "cost not known" if cost is None else f"${cost:.4f}"
    tokens = spent.usage.input_tokens + spent.usage.output_tokens
    said = f"{spent.calls} answers, {tokens:,} tokens, {price}" if spent.calls else "no call"
    return f"{said}, {spent.recalled} out of the cache" if spent.recalled else said
