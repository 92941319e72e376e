"""``debrief code``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.commands.options import Repo
from debrief.cli.console import told

app = typer.Typer()


def _plan_ids(incomplete: str) -> list[str]:
    from debrief.snapshots.plans import plan_ids
    from debrief.snapshots.repositories import find_repository

    repository = find_repository(Path())
    ids = plan_ids(repository.root) if repository is not None else []
    return [plan_id for plan_id in ids if plan_id.startswith(incomplete)]


@app.command()
@told
def code(
    plan_id: Annotated[
        str,
        typer.Argument(
            help="Names the plan: a slug such as retry-queue.", autocompletion=_plan_ids
        ),
    ],
    extra: Annotated[
        list[str] | None, typer.Argument(help="After --: passed on to the tool as it is.")
    ] = None,
    tool: Annotated[str, typer.Option(help="claude-code or droid.")] = "claude-code",
    model: Annotated[
        str, typer.Option(help="As the tool names it, such as opus; its own default if none.")
    ] = "",
    repo: Repo = Path(),
) -> None:
    """Carry out a plan with a coding agent in a worktree of its own, and capture the session.

    The plan is **.debrief/plans/PLAN_ID.md**, else **.debrief/plans/PLAN_ID/plan.md**, else the
    **plan.md** of its worktree, else the repository's own plan.md. It is copied into the
    worktree **.debrief/worktrees/PLAN_ID/**, on a branch of its name.

    Prompts are those in **.debrief/prompts/active/TOOL/MODEL/** or **…/TOOL/** (main.md, and one
    file a subagent), else the repository's CLAUDE.md and .claude/agents, or AGENTS.md for droid.
    They are written to **.debrief/sessions/PLAN_ID/** with metadata.json before the tool starts;
    its transcript is filed there when it ends. An earlier run's folder is renamed to its
    session's id first.

    The tool is started with DEBRIEF_CLAUDE_COMMAND (claude) or DEBRIEF_DROID_COMMAND (droid); its
    exit code is passed on.
    """
    from debrief.cli.code import code_plan

    raise typer.Exit(
        code_plan(plan_id, tool=tool, model=model or None, folder=repo, extra=extra or [])
    )
