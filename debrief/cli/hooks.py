"""``debrief hooks``: the capture for people who start their tool themselves."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from debrief.cli.console import console
from debrief.cli.options import Local, Repo, User

app = typer.Typer(
    no_args_is_help=True,
    help="Capture prompts and circumstances from Claude Code's own session-start hook.",
)
_LAST_LINES = 3
_OUTCOMES = {
    "installed": "installed; every session from now on is captured",
    "updated": "brought up to date",
    "unchanged": "is there already; nothing was changed",
    "removed": "removed; everything else in the file was kept",
    "not there": "is not there; nothing was changed",
}


@app.command("install")
def hooks_install(user: User = False, local: Local = False, repo: Repo = Path()) -> None:
    """Install the hook in a repository's .claude/settings.json; all else in it is kept.

    Each session then has its prompts/ and metadata.json in **.debrief/sessions/SESSION_ID/** of
    the repository it runs in. The hook takes a tenth of a second, and says nothing: failures go
    to **~/.debrief/logs/hooks.log**.
    """
    from debrief.snapshots.hooks import check_interpreter, hook_command, install, settings_file

    path = settings_file(user=user, local=local, folder=repo)
    check_interpreter()
    _print_outcome(path, install(path, hook_command()))


@app.command("remove")
def hooks_remove(user: User = False, local: Local = False, repo: Repo = Path()) -> None:
    """Remove our hook and nothing else."""
    from debrief.snapshots.hooks import remove, settings_file

    path = settings_file(user=user, local=local, folder=repo)
    _print_outcome(path, remove(path))


@app.command("status")
def hooks_status(user: User = False, repo: Repo = Path()) -> None:
    """Print where the hook is installed, and what it last failed at; exit code 1 if nowhere."""
    from debrief.snapshots.capture import find_repository
    from debrief.snapshots.hook import log_file
    from debrief.snapshots.hooks import hook_command, settings_file, status

    paths = [settings_file(user=True)]
    if not user and find_repository(repo) is not None:
        paths += [settings_file(folder=repo, local=local) for local in (False, True)]
    statuses = [status(path, hook_command()) for path in paths]
    out = console()
    for each in statuses:
        note = f": {each.note}" if each.note else ""
        out.print(f"{each.path}: {each.state}{note}")
    log = log_file(os.environ)
    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    if lines:
        out.print(f"{log}: {len(lines)} failures, the last:")
        for line in lines[-_LAST_LINES:]:
            out.print(f"  {line}")
    raise typer.Exit(0 if any(each.state == "installed" for each in statuses) else 1)


def _print_outcome(path: Path, outcome: str) -> None:
    console().print(f"{path}: the hook {_OUTCOMES[outcome]}")
