"""``debrief eval``, and ``debrief judge``, which is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.commands.options import Repo
from debrief.cli.console import told

app = typer.Typer()


def _worktree_ids(incomplete: str) -> list[str]:
    from debrief.cli.completion import worktree_ids

    return [plan_id for plan_id in worktree_ids(Path()) if plan_id.startswith(incomplete)]


@app.command("eval")
@app.command("judge", help="The same as **eval**.")
@told
def evaluate(
    plan_id: Annotated[
        str,
        typer.Argument(help="A plan that has a worktree.", autocompletion=_worktree_ids),
    ],
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no model: the deterministic offline evaluator.")
    ] = False,
    model: Annotated[
        str, typer.Option(help="Answers for every judge; by default the model that each names.")
    ] = "",
    judge: Annotated[
        list[str] | None, typer.Option(help="Only this judge; may be given more than once.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    export: Annotated[
        bool, typer.Option("--export", help="Write .debrief/training_data/PLAN_ID/.")
    ] = False,
    tests: Annotated[
        str, typer.Option(help="A command; run before and after the change, for the export.")
    ] = "",
    feedback: Annotated[
        str | None, typer.Option(help="Your own words on the work, for the export.")
    ] = None,
    edit: Annotated[
        bool, typer.Option("--edit", help="Write your own words in an editor instead.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and ask nothing.")
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(help="In USD: no new call once so much is spent.")
    ] = None,
    repo: Repo = Path(),
) -> None:
    """Judge what was done in a plan's worktree: a score and feedback of each judge.

    Judged is **.debrief/worktrees/PLAN_ID/**: its plan.md, git status, git diff HEAD (from the
    plan's git_sha on, where work was committed since), new files and changed files in full,
    secrets taken out. All judges work at once; at the first that fails the command stops, with
    an exit code that is not 0. Judges are **.debrief/judges/*.md**, else the project's own.
    Answers are kept: the same work is not judged twice.
    """
    from debrief.cli.eval import Wish, evaluate_plan

    evaluate_plan(
        Wish(
            plan_id=plan_id,
            folder=repo,
            offline=offline,
            model=model,
            judges=tuple(judge or ()),
            as_json=as_json,
            export=export,
            tests=tests,
            feedback=feedback,
            edit=edit,
            dry_run=dry_run,
            max_cost_usd=max_cost,
        )
    )
