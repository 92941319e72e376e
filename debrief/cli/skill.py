"""``debrief skill``: the skill with which a coding agent scores sessions itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from debrief.cli.console import console
from debrief.cli.options import Repo, User

app = typer.Typer(
    no_args_is_help=True, help="The skill with which a coding agent scores sessions itself."
)
NAME = "score-session"


@app.command("install")
def skill_install(user: User = False, repo: Repo = Path()) -> None:
    """Install the skill in a repository's .claude/skills, or with --user for all of them."""
    target, files = _target(user, repo), _files()
    state = "brought up to date" if target.exists() else "installed"
    changed = False
    for name, data in files.items():
        path = target / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            changed = True
    state = state if changed else "is there already; nothing was changed"
    console().print(f"{target}: {state}")
    console().print(f"Claude Code uses it when asked how a session went, or by /{NAME}")


@app.command("remove")
def skill_remove(user: User = False, repo: Repo = Path()) -> None:
    """Remove the skill's own files and nothing else."""
    target = _target(user, repo)
    installed = [target / name for name in _files() if (target / name).is_file()]
    for path in installed:
        path.unlink()
    for folder in (target / "scripts", target):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    state = "removed" if installed else "is not there; nothing was changed"
    console().print(f"{target}: {state}")


def _target(user: bool, repo: Path) -> Path:
    from debrief.snapshots.hooks import settings_file

    return settings_file(user=user, folder=repo).parent / "skills" / NAME


def _files() -> dict[str, bytes]:
    """Return the skill's files by their path, with the command that is running now."""
    from debrief.content import folder

    source = folder("skills") / NAME
    found = sorted(file for file in source.rglob("*") if file.suffix in (".md", ".py"))
    own = Path(sys.executable).with_name("debrief")
    command = [str(own)] if own.exists() else [sys.executable, "-m", "pipelines.command"]
    return {
        **{file.relative_to(source).as_posix(): file.read_bytes() for file in found},
        "scripts/command.json": f"{json.dumps(command)}\n".encode(),
        "scripts/.gitignore": b".gitignore\ncommand.json\n",
    }
