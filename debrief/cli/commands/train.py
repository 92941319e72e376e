"""``debrief train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.commands.options import LakeUrl, Repo
from debrief.cli.console import told

app = typer.Typer()


@app.command()
@told
def train(
    task: Annotated[str, typer.Option(help="Only samples of this task.")] = "",
    tool: Annotated[str, typer.Option(help="Only samples of this tool.")] = "",
    model: Annotated[str, typer.Option(help="Only sessions that this model answered.")] = "",
    fingerprint: Annotated[
        str, typer.Option(help="Only this prompt fingerprint, or pair with an eval fingerprint.")
    ] = "",
    ask: Annotated[
        str, typer.Option(help="The language model that does it; DEBRIEF_MODEL if none.")
    ] = "",
    offline: Annotated[
        bool, typer.Option("--offline", help="Says that this cannot be had without a model.")
    ] = False,
    trials: Annotated[int, typer.Option(min=4, help="How often prompts may be tried.")] = 60,
    samples: Annotated[
        int, typer.Option(min=1, help="Most samples of each side of the split.")
    ] = 24,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how much would be asked, and ask nothing.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="In USD: no new call once so much is spent.")
    ] = None,
    lake: LakeUrl = "",
    repo: Repo = Path(),
) -> None:
    """Propose better prompts from training samples, and show before and after on held-out ones.

    Samples are those of the lake's training sets that ran with one known set of prompts. GEPA
    rewrites the main prompt and the subagents'; what it proposes is written to
    **.debrief/prompts/candidates/TOOL/FINGERPRINT/**, beside the active prompts and never over
    them. What was answered once is not asked again.
    """
    from debrief.cli.train import TrainWish
    from debrief.cli.train import train as train_prompts
    from debrief.training.lessons import LessonFilter

    train_prompts(
        TrainWish(
            lake=lake,
            samples=LessonFilter(task=task, tool=tool, model=model, fingerprint=fingerprint),
            offline=offline,
            ask=ask,
            trials=trials,
            most_samples=samples,
            max_cost_usd=max_cost,
            dry_run=dry_run,
            folder=repo,
        )
    )
