"""``debrief code``: carry out a plan with a coding agent, everything about the session captured."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from debrief.cli.console import console
from debrief.errors import DebriefError, InputError
from debrief.settings import load_settings
from debrief.snapshots.capture import file_run, only_run_of, prepare, repository_of
from debrief.snapshots.filing import transcript_folders
from debrief.snapshots.hook import CAPTURE_VARIABLE
from debrief.snapshots.prompts import CLAUDE_CODE
from debrief.snapshots.running import COMMANDS, start, tool_command

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*\Z")


def code_plan(
    plan_id: str, *, tool: str, model: str | None, folder: Path, extra: Sequence[str] = ()
) -> int:
    """Carry out a plan; return the tool's exit code.

    Args:
        plan_id: a slug; names the plan's file, branch, worktree and capture.
        tool: ``claude-code`` or ``droid``.
        model: as the tool names it; None for its default.
        folder: inside the plan's repository.
        extra: passed on to the tool, before the opening prompt.

    Raises:
        DebriefError: anything is missing or wrong before the tool starts.
    """
    settings = load_settings()
    if tool not in COMMANDS:
        raise InputError(f"tool {tool}", "is not known", f"Known: {', '.join(COMMANDS)}.")
    if model is not None and not _MODEL.match(model):
        raise InputError(repr(model), "is no model's name", "Such as opus or sonnet.")
    command = tool_command(
        tool, settings.claude_command if tool == CLAUDE_CODE else settings.droid_command
    )
    repository = repository_of(folder)
    places = transcript_folders(tool, os.environ, Path.home())
    out = console(stderr=True)
    with only_run_of(repository.root, plan_id):
        run = prepare(repository, plan_id, tool, model, transcripts_in=places)
        others = "" if run.subagents == 1 else "s"
        out.print(f"worktree  {run.worktree}{'' if run.is_new else ' (there already)'}")
        out.print(f"prompts   {run.fingerprint}: main and {run.subagents} subagent{others}")
        code = start(
            [*command, *run.arguments[:-1], *extra, run.arguments[-1]],
            run.worktree,
            {CAPTURE_VARIABLE: str(run.capture)},
        )
        try:
            places = transcript_folders(tool, os.environ, Path.home())
            ids = file_run(run, places)
        except (DebriefError, OSError, ValueError) as error:
            out.print(f"debrief: the session could not be filed: {error}", style="red")
            return code or 1
    if ids:
        out.print(f"filed     {', '.join(ids)} under {run.capture}")
    else:
        out.print(f"debrief: {tool} left no transcript of this worktree; the capture has none")
    return code
