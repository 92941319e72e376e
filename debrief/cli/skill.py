"""``debrief skill``: the skill folder that lets a coding agent score sessions itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from debrief.cli.console import console
from debrief.content import folder as content
from debrief.snapshots.hooks import settings_file

NAME = "score-session"
_COMMAND = "scripts/command.json"


def install_skill(*, user: bool, folder: Path) -> None:
    """Copy the skill's files into a skills folder; other files there are left alone."""
    target = skill_folder(user=user, folder=folder)
    files = _files()
    changed = [name for name, data in files.items() if _bytes(target / name) != data]
    state = "installed" if not target.exists() else "brought up to date"
    for name in changed:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(files[name])
    state = state if changed else "is there already; nothing was changed"
    console().print(f"{target}: {state}", soft_wrap=True)
    console().print(f"Claude Code uses it when asked how a session went, or by /{NAME}")


def remove_skill(*, user: bool, folder: Path) -> None:
    """Remove the skill's files, and its folders where nothing else is in them."""
    target = skill_folder(user=user, folder=folder)
    there = [name for name in _files() if (target / name).is_file()]
    for name in there:
        (target / name).unlink()
    for place in (target / "scripts", target):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
    state = "removed" if there else "is not there; nothing was changed"
    console().print(f"{target}: {state}", soft_wrap=True)


def skill_folder(*, user: bool, folder: Path) -> Path:
    """Return where the skill belongs: the user's skills, else those of a repository.

    Raises:
        ConfigurationError: ``folder`` lies in no repository.
    """
    return settings_file(user=user, folder=folder).parent / "skills" / NAME


def _files() -> Mapping[str, bytes]:
    """Return the skill's files by their path, with the command that is running now."""
    source = content("skills") / NAME
    found = sorted(file for file in source.rglob("*") if file.suffix in (".md", ".py"))
    files = {file.relative_to(source).as_posix(): file.read_bytes() for file in found}
    own = Path(sys.executable).with_name("debrief")
    command = [str(own)] if own.exists() else [sys.executable, "-m", "pipelines.command"]
    of_this_machine = {
        _COMMAND: f"{json.dumps(command)}\n".encode(),
        "scripts/.gitignore": b".gitignore\ncommand.json\n",
    }
    return {**files, **of_this_machine}


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
