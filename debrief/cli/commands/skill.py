"""``debrief skill``."""

from __future__ import annotations

from pathlib import Path

import typer

from debrief.cli.commands.options import Repo, User
from debrief.cli.console import told

app = typer.Typer(
    no_args_is_help=True,
    help="The skill with which a coding agent scores sessions itself.",
)


@app.command("install")
@told
def skill_install(user: User = False, repo: Repo = Path()) -> None:
    """Install the skill in a repository's .claude/skills, or with --user for all of them."""
    from debrief.cli.skill import install_skill

    install_skill(user=user, folder=repo)


@app.command("remove")
@told
def skill_remove(user: User = False, repo: Repo = Path()) -> None:
    """Remove the skill's own files and nothing else."""
    from debrief.cli.skill import remove_skill

    remove_skill(user=user, folder=repo)
