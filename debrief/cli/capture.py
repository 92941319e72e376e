"""``debrief code``, ``hooks`` and ``migrate``: sessions with all that is known about them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.completing import starting_with
from debrief.cli.shared import Local, Repo, User, console
from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.snapshots.migration import MigrationStep

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*\Z")


def _plan_ids(root: Path) -> list[str]:
    from debrief.snapshots.plans import plan_ids

    return plan_ids(root)


def code(
    plan_id: Annotated[
        str,
        typer.Argument(
            help="Names the plan: a slug such as retry-queue.",
            autocompletion=starting_with(_plan_ids),
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
    **plan.md** of its worktree, else the repository's own plan.md. Its text without the front
    matter is the tool's first prompt; if it is over 120 kB, the prompt says to read plan.md. The
    plan is copied into the worktree **.debrief/worktrees/PLAN_ID/**, on a branch of its name.

    Prompts are those in **.debrief/prompts/active/TOOL/MODEL/** or **…/TOOL/** (main.md, and one
    file a subagent), else the repository's CLAUDE.md and .claude/agents, or AGENTS.md for droid.
    They are written to **.debrief/sessions/PLAN_ID/** with plan.md and metadata.json before the
    tool starts; its transcript is filed there when it ends. An earlier run's folder is renamed
    to its session's id first.

    The tool is started with DEBRIEF_CLAUDE_COMMAND (claude) or DEBRIEF_DROID_COMMAND (droid); its
    exit code is passed on.
    """
    from debrief.settings import load_settings
    from debrief.snapshots.captures import transcript_folders
    from debrief.snapshots.hook import CAPTURE_VARIABLE
    from debrief.snapshots.migration import move_of_earlier_worktree
    from debrief.snapshots.plans import (
        checked_plan_id,
        file_run,
        only_run_of,
        prepare,
        repository_of,
        worktree_folder,
    )

    settings = load_settings()
    commands = {"claude-code": settings.claude_command, "droid": settings.droid_command}
    if tool not in commands:
        raise InputError(f"tool {tool}", "is not known", f"Known: {', '.join(commands)}.")
    if model and not _MODEL.match(model):
        raise InputError(repr(model), "is no model's name", "Such as opus or sonnet.")
    command = tool_command(tool, commands[tool])
    repository = repository_of(repo)
    folders = transcript_folders(tool, os.environ, Path.home())
    out = console(stderr=True)
    if not worktree_folder(repository.root, checked_plan_id(plan_id)).exists() and (
        move := move_of_earlier_worktree(repository.root, plan_id)
    ):
        raise InputError(f"plan {plan_id}", "has a worktree of an earlier tool", move)
    with only_run_of(repository.root, plan_id):
        run = prepare(repository, plan_id, tool, model or None, transcripts_in=folders)
        out.print(f"worktree  {run.worktree}{'' if run.is_new else ' (there already)'}")
        for name, count in run.with_filters.items():
            files = counted(count, "file")
            out.print(f"filter    {name} was not run for {files}, left as the repository has them")
        out.print(f"prompts   {run.fingerprint}: main and {counted(run.subagents, 'subagent')}")
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


def tool_command(tool: str, setting: str) -> list[str]:
    """Return the program, with its own arguments, that a tool is started with.

    Args:
        tool: its name.
        setting: the command that is configured.

    Raises:
        ConfigurationError: its program is not installed.
    """
    variable = f"DEBRIEF_{tool.partition('-')[0].upper()}_COMMAND"
    try:
        command = shlex.split(setting)
    except ValueError as error:
        raise ConfigurationError(variable, f"is no command: {error}") from error
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise ConfigurationError(
            command[0] if command else variable,
            f"is not installed, and {tool} was to be started with it",
            f"Install it, or set {variable} to its command.",
        )
    return [str(Path(program).absolute()), *command[1:]]


def run_tool(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
    """Run a program in the foreground and return its exit code, 128 + n when signal n ended it.

    What is typed to interrupt it reaches it through the terminal, and does not end this process,
    which still has to file the session; a request to end is passed on.

    Raises:
        ConfigurationError: it cannot be started.
    """
    processes: list[subprocess.Popen[bytes]] = []

    # Functions, so that the program gets its own handling of signals back.
    def ignore(number: int, frame: FrameType | None) -> None:
        return

    def pass_on(number: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(number)

    handlers = {signal.SIGINT: ignore, signal.SIGHUP: ignore, signal.SIGTERM: pass_on}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        processes.append(subprocess.Popen(command, cwd=folder, env={**os.environ, **variables}))
        code = processes[0].wait()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(command[0], f"cannot be started: {reason}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


hooks_app = typer.Typer(
    no_args_is_help=True,
    help="Capture prompts and circumstances from Claude Code's own session-start hook.",
)
_LAST_LINES = 3
_OUTCOMES = {
    "installed": "is installed; every session from now on is captured",
    "updated": "is brought up to date",
    "unchanged": "is there already; nothing was changed",
    "removed": "is removed; everything else in the file was kept",
    "not there": "is not there; nothing was changed",
}


@hooks_app.command("install")
def hooks_install(user: User = False, local: Local = True, repo: Repo = Path()) -> None:
    """Install the hook in a repository's .claude/settings.local.json; all else in it is kept.

    That file is this machine's own and is kept out of git, as the hook names this machine's
    Python. A hook of ours in .claude/settings.json, which is committed, is removed.

    Each session then has its prompts/ and metadata.json in **.debrief/sessions/SESSION_ID/** of
    the repository it runs in. The hook takes a tenth of a second, and says nothing: failures go
    to **~/.debrief/logs/hooks.log**.
    """
    from debrief.snapshots.capture import find_repository, keep_out_of_history
    from debrief.snapshots.hook import check_interpreter, hook_command, install

    if _done_by_one_that_stays("install", user, repo):
        return
    path, *others = _settings_files(user, repo)
    check_interpreter()
    _print_outcome(path, install(path, hook_command()))
    _remove(others)
    repository = None if user else find_repository(repo)
    if repository is not None:
        keep_out_of_history(repository)


@hooks_app.command("remove")
def hooks_remove(user: User = False, local: Local = True, repo: Repo = Path()) -> None:
    """Remove our hook and nothing else."""
    paths = _settings_files(user, repo)
    if not _remove(paths):
        _print_outcome(paths[0], "not there")


@hooks_app.command("status")
def hooks_status(user: User = False, repo: Repo = Path()) -> None:
    """Print where the hook is installed, and what it last failed at; exit code 1 if nowhere."""
    from debrief.snapshots.capture import find_repository
    from debrief.snapshots.hook import hook_command, log_file, status

    if _done_by_one_that_stays("status", user, repo):
        return
    paths = _settings_files(True, repo)
    if not user and find_repository(repo) is not None:
        paths += _settings_files(False, repo)
    statuses = [status(path, hook_command()) for path in paths]
    out = console()
    for hook_status in statuses:
        note = f": {hook_status.note}" if hook_status.note else ""
        out.print(f"{hook_status.path}: {hook_status.state}{note}")
    log = log_file(os.environ)
    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    if lines:
        out.print(f"{log}: {len(lines)} failures, the last:")
        for line in lines[-_LAST_LINES:]:
            out.print(f"  {line}")
    raise typer.Exit(0 if any(status.state == "installed" for status in statuses) else 1)


def _done_by_one_that_stays(command: str, user: bool, repo: Path) -> bool:
    """Have another debrief carry out a command of hooks, where this one lies in a cache.

    Returns:
        False where this one stays, and is to do it itself.

    Raises:
        ConfigurationError: no other one is on the search path.
        click.exceptions.Exit: the other one failed, and said why.
    """
    from debrief.snapshots.hook import is_short_lived, lasting_debrief

    if not is_short_lived(Path(sys.prefix)):
        return False
    arguments = [command, *(["--user"] if user else ["--repo", str(repo)])]
    other = lasting_debrief(os.environ.get("PATH", os.defpath))
    if other is None:
        raise ConfigurationError(
            sys.prefix,
            "is a cache that may be emptied, and the hook would stop with it",
            "Install debrief to stay (uv tool install, with what uvx was given after --from), "
            f"then: debrief hooks {shlex.join(arguments)}",
        )
    if code := subprocess.run([str(other), "hooks", *arguments]).returncode:
        raise typer.Exit(code)
    return True


def _settings_files(user: bool, repo: Path) -> list[Path]:
    """Return the files that the hook may be in, the one that it is installed in first."""
    from debrief.snapshots.hook import settings_file

    if user:
        return [settings_file(user=True)]
    return [settings_file(folder=repo, local=local) for local in (True, False)]


def _remove(paths: list[Path]) -> bool:
    """Remove the hook from each file that has it; return whether one had."""
    from debrief.snapshots.hook import remove

    removed = [path for path in paths if remove(path) == "removed"]
    for path in removed:
        _print_outcome(path, "removed")
    return bool(removed)


def _print_outcome(path: Path, outcome: str) -> None:
    console().print(f"{path}: the hook {_OUTCOMES[outcome]}")


_STYLES = {
    **dict.fromkeys(("move", "key", "copy", "write"), "green"),
    **dict.fromkeys(("differs", "missing"), "yellow"),
}


def migrate(
    path: Annotated[
        Path, typer.Argument(help="A repository with a .weft or .lw_coder folder, or that folder.")
    ] = Path(),
    really: Annotated[
        bool, typer.Option("--apply", help="Do it; without it, only list what would be done.")
    ] = False,
    target: Annotated[
        Path | None,
        typer.Option("--to", help="The .debrief folder to fill; the one beside it if none."),
    ] = None,
) -> None:
    """Take .weft and .lw_coder folders over into .debrief ones; nothing is overwritten.

    Worktrees of plans are moved by git, with their changes. Sessions, training data, judges,
    plans (or tasks) and prompts are copied. Keys in **~/.weft/.env** and **~/.lw_coder/.env** are
    added to **~/.debrief/.env**.

    What a sample lacks is filled in where something shows what it was, and listed in its
    metadata as filled in; the rest is reported as missing, with what would complete it. What the
    lake was made to forget is left behind.
    """
    from debrief.judging.model import load_judges
    from debrief.lake import Lake
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.sessions.forgotten import Forgotten
    from debrief.settings import load_settings, variables
    from debrief.snapshots.capture import HOME, find_repository, keep_out_of_history
    from debrief.snapshots.migration import apply, earlier_folders, plan_keys, plan_migration

    settings = load_settings()
    forgotten = Forgotten.of(Lake(settings.lake), Redactor(key_of(settings)))

    def is_left_out(ids: Iterable[str]) -> bool:
        return any(map(forgotten.session, ids))

    folders = earlier_folders(path)
    homes = {folder: target or folder.with_name(HOME) for folder in folders}
    if target is not None and len({folder.parent for folder in folders}) > 1:
        names = ", ".join(str(folder) for folder in folders)
        raise InputError(str(target), f"cannot be the target of several: {names}", "Name one.")
    out, notes = console(), console(stderr=True)
    counts: Counter[str] = Counter()
    files = worktrees = keys = 0
    failed = False

    def carry_out(steps: Sequence[MigrationStep]) -> None:
        nonlocal files, worktrees, keys, failed
        counts.update(step.action for step in steps)
        if not really:
            return
        done = apply(steps)
        files, worktrees, keys = files + done.files, worktrees + done.worktrees, keys + done.keys
        for failure in done.failures:
            notes.print(f"debrief: {failure}", style="red")
            failed = True

    for folder, home in homes.items():
        out.print(f"{folder} → {home}")
        steps = plan_migration(folder, home, load_judges, is_left_out)
        for step in steps:
            _print_step(step, folder if step.action == "left" else home)
        carry_out(steps)
        repository = find_repository(home.parent)
        if really and repository is not None and repository.root == home.parent.resolve():
            keep_out_of_history(repository)
    if steps := plan_keys(Path.home(), settings.home / ".env", variables()):
        out.print(f"keys → {settings.home / '.env'}")
        for step in steps:
            _print_step(step, settings.home)
        carry_out(steps)
    out.print(", ".join(f"{count} {action}" for action, count in sorted(counts.items())))
    if really:
        done = [counted(files, "file") + " written", counted(worktrees, "worktree") + " moved"]
        where = ", ".join(sorted({str(home) for home in homes.values()}))
        out.print(f"{', '.join(done)} to {where}; {counted(keys, 'key')} added")
        out.print("Nothing was overwritten.")
    elif sum(counts[action] for action in ("move", "key", "copy", "write")):
        out.print("Nothing was written. To do it: the same with --apply")
    else:
        out.print("There is nothing to do.")
    if failed:
        raise typer.Exit(1)


def _print_step(step: MigrationStep, base: Path) -> None:
    """Print what becomes of a file, its path within ``base`` where it is below that."""
    inside = step.target.is_relative_to(base)
    file = step.target.relative_to(base) if inside else step.target
    note = f"  ({step.note})" if step.note else ""
    console().print(f"  {step.action:<8}{file}{note}", style=_STYLES.get(step.action))
