"""``debrief code``: carry out a plan with a coding agent, everything about the session captured."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.console import console
from debrief.cli.options import Repo
from debrief.errors import DebriefError, InputError

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*\Z")


def _plan_ids(incomplete: str) -> list[str]:
    from debrief.snapshots.capture import find_repository
    from debrief.snapshots.plans import plan_ids

    repository = find_repository(Path())
    ids = plan_ids(repository.root) if repository is not None else []
    return [plan_id for plan_id in ids if plan_id.startswith(incomplete)]


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
    from debrief.settings import load_settings
    from debrief.snapshots.capture import CLAUDE_CODE
    from debrief.snapshots.hook import CAPTURE_VARIABLE
    from debrief.snapshots.plans import file_run, only_run_of, prepare, repository_of
    from debrief.snapshots.transcripts import COMMANDS, run_tool, tool_command, transcript_folders

    settings = load_settings()
    if tool not in COMMANDS:
        raise InputError(f"tool {tool}", "is not known", f"Known: {', '.join(COMMANDS)}.")
    if model and not _MODEL.match(model):
        raise InputError(repr(model), "is no model's name", "Such as opus or sonnet.")
    command = tool_command(
        tool, settings.claude_command if tool == CLAUDE_CODE else settings.droid_command
    )
    repository = repository_of(repo)
    folders = transcript_folders(tool, os.environ, Path.home())
    out = console(stderr=True)
    with only_run_of(repository.root, plan_id):
        run = prepare(repository, plan_id, tool, model or None, transcripts_in=folders)
        plural = "" if run.subagents == 1 else "s"
        out.print(f"worktree  {run.worktree}{'' if run.is_new else ' (there already)'}")
        out.print(f"prompts   {run.fingerprint}: main and {run.subagents} subagent{plural}")
        exit_code = run_tool(
            [*command, *run.arguments[:-1], *(extra or ()), run.arguments[-1]],
            run.worktree,
            {CAPTURE_VARIABLE: str(run.capture)},
        )
        try:
            ids = file_run(run, transcript_folders(tool, os.environ, Path.home()))
        except (DebriefError, OSError, ValueError) as error:
            out.print(f"debrief: the session could not be filed: {error}", style="red")
            raise typer.Exit(exit_code or 1) from None
    if ids:
        out.print(f"filed     {', '.join(ids)} under {run.capture}")
    else:
        out.print(f"debrief: {tool} left no transcript of this worktree; the capture has none")
    raise typer.Exit(exit_code)
