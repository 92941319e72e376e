"""``debrief tasks``: sessions as tasks that can be run again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import LakeUrl, console, exactly, existing_lake
from debrief.errors import InputError
from debrief.markdown import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debrief.tasks.publishing import PublishedTasks, TaskCandidate


def tasks(
    to: Annotated[Path, typer.Option("--to", help="The folder that the tasks are written to.")],
    repositories: Annotated[
        list[Path] | None,
        typer.Option(
            "--repositories",
            help="A clone of a repository that sessions worked in, or a folder that holds such; "
            "may be given more than once. Default: DEBRIEF_CLONES.",
        ),
    ] = None,
    decontaminate: Annotated[
        Path | None,
        typer.Option(
            "--decontaminate",
            help="Leave out sessions that hold problems of benchmarks: a JSONL file of these.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask whether the commands may run.")
    ] = False,
    lake: LakeUrl = "",
) -> None:
    """Write a task in Harbor's form for each session whose check is proven.

    Of sessions that **debrief execute** ran, each whose checks tell its change from its base makes
    a task: the person's request, the repository as it was, the checks as tests, and the change as
    solution. Its own scripts are run in the sandbox, three times: without any change they must
    give 0, with the solution 1. What is not proven is listed in **not_proven.jsonl** with its
    reason.
    """
    from debrief.conversion import open_lake
    from debrief.execution.executing import prepared_folder, redacting
    from debrief.execution.sandbox import find_sandbox
    from debrief.redaction.redactor import redactor_of
    from debrief.settings import load_settings
    from debrief.snapshots.clones import find_clones
    from debrief.tasks.equipping import Equipment
    from debrief.tasks.model import FORM
    from debrief.tasks.publishing import candidates_in, publish_tasks
    from debrief.training.contamination import read_problems
    from debrief.training.publishing.exported import note_export

    settings = load_settings()
    opened = open_lake(existing_lake(lake) or settings.lake)
    sandbox = find_sandbox()
    problems = read_problems(decontaminate) if decontaminate else None
    candidates, _ = candidates_in(opened)
    _ask(candidates, yes)
    note_export(opened, str(to), FORM)
    screen = console(stderr=True)
    done = publish_tasks(
        opened,
        to,
        find_clones(repositories or settings.clones),
        Equipment(sandbox, prepared_folder(settings)),
        redacting(redactor_of(settings)),
        problems,
        lambda session_id, outcome: screen.print(f"{session_id}  {outcome}"),
    )
    _print(done)


def _ask(candidates: Sequence[TaskCandidate], yes: bool) -> None:
    """Say which commands would run, and go on once that is agreed to.

    Raises:
        InputError: nobody is there to be asked.
        click.Abort: the person does not want to go on.
    """
    from debrief.tasks.choosing import checks_of

    places = sorted({candidate.head.repository for candidate in candidates})
    commands = sorted(
        {check.command for candidate in candidates for check in checks_of(candidate.execution)}
    )
    out = console(stderr=True)
    where = ", ".join(map(exactly, places))
    out.print(
        f"{counted(len(candidates), 'session')} of {where} may make a task. In a sandbox without "
        "network run, six times for each session:"
    )
    for command in commands:
        out.print(f"  {exactly(command)}")
    if candidates and not yes:
        if not sys.stdin.isatty():
            raise InputError("the commands", "were not run", "Add --yes to go on.")
        typer.confirm("Go on?", abort=True, err=True)


def _print(done: PublishedTasks) -> None:
    out = console()
    out.print(f"{counted(len(done.tasks), 'proven task')}")
    for reason, count in done.reasons.most_common():
        out.print(f"no task: {count} of {len(done.tasks) + len(done.not_proven)}: {reason}")
    note = "" if done.changed else " (nothing had changed)"
    out.print(f"Everything is in {done.target}{note}")
