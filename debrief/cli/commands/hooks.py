"""``debrief hooks``."""

from __future__ import annotations

from pathlib import Path

import typer

from debrief.cli.commands.options import Local, Repo, User
from debrief.cli.console import told

app = typer.Typer(
    no_args_is_help=True,
    help="Capture prompts and circumstances from Claude Code's own session-start hook.",
)


@app.command("install")
@told
def hooks_install(user: User = False, local: Local = False, repo: Repo = Path()) -> None:
    """Install the hook in a repository's .claude/settings.json; all else in it is kept.

    Each session then has its prompts/ and metadata.json in **.debrief/sessions/SESSION_ID/** of
    the repository it runs in. The hook takes a tenth of a second, and says nothing: failures go
    to **~/.debrief/logs/hooks.log**.
    """
    from debrief.cli.hooks import install_hook

    install_hook(user=user, local=local, folder=repo)


@app.command("remove")
@told
def hooks_remove(user: User = False, local: Local = False, repo: Repo = Path()) -> None:
    """Remove our hook and nothing else."""
    from debrief.cli.hooks import remove_hook

    remove_hook(user=user, local=local, folder=repo)


@app.command("status")
@told
def hooks_status(user: User = False, repo: Repo = Path()) -> None:
    """Tell where the hook is installed, and what it last failed at; exit code 1 if nowhere."""
    from debrief.cli.hooks import show_hooks

    raise typer.Exit(show_hooks(user=user, folder=repo))
