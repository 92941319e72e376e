"""``debrief hooks``: the capture for people who start their tool themselves."""

from __future__ import annotations

import os
from pathlib import Path

from debrief.cli.console import console
from debrief.snapshots.hook import log_file
from debrief.snapshots.hooks import (
    HookStatus,
    check_interpreter,
    hook_command,
    install,
    remove,
    settings_file,
    status,
)

_LAST_LINES = 3
_SAID = {
    "installed": "installed; every session from now on is captured",
    "updated": "brought up to date",
    "unchanged": "is there already; nothing was changed",
    "removed": "removed; everything else in the file was kept",
    "not there": "is not there; nothing was changed",
}


def install_hook(*, user: bool, local: bool, folder: Path) -> None:
    """Put the hook into a settings file."""
    path = settings_file(user=user, local=local, folder=folder)
    check_interpreter()
    _say(path, _SAID[install(path, hook_command())])


def remove_hook(*, user: bool, local: bool, folder: Path) -> None:
    """Take the hook out of a settings file."""
    path = settings_file(user=user, local=local, folder=folder)
    _say(path, _SAID[remove(path)])


def show_hooks(*, user: bool, folder: Path) -> int:
    """Print where the hook is, and what it last complained of; 1 when it is nowhere."""
    out = console()
    found = _statuses(user, folder)
    for each in found:
        note = f": {each.note}" if each.note else ""
        out.print(f"{each.path}: {each.state}{note}", soft_wrap=True)
    log = log_file(os.environ)
    lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
    if lines:
        out.print(f"{log}: {len(lines)} failures, the last:")
        for line in lines[-_LAST_LINES:]:
            out.print(f"  {line}", soft_wrap=True)
    return 0 if any(each.state == "installed" for each in found) else 1


def _statuses(user: bool, folder: Path) -> list[HookStatus]:
    from debrief.snapshots.repositories import find_repository

    paths = [settings_file(user=True)]
    if not user and find_repository(folder) is not None:
        paths += [settings_file(folder=folder, local=local) for local in (False, True)]
    command = hook_command()
    return [status(path, command) for path in paths]


def _say(path: Path, what: str) -> None:
    console().print(f"{path}: the hook {what}", soft_wrap=True)
