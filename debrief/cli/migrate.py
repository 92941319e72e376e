"""``debrief migrate``: folders of earlier tools become ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from debrief.cli.console import console
from debrief.errors import InputError
from debrief.snapshots.migration import Step, apply, earlier_folders, plan_migration
from debrief.snapshots.repositories import HOME

_STYLES = {"copy": "green", "write": "green", "differs": "yellow", "missing": "yellow"}


def migrate(place: Path, *, target: Path | None, really: bool) -> None:
    """Print what becomes of each file, and do it when it is really wanted.

    Args:
        place: a repository, an earlier tool's folder, or a folder above several.
        target: the ``.debrief`` folder; beside the earlier tool's folder by default.
        really: write; otherwise it is a dry run.

    Raises:
        InputError: there is nothing to migrate, or a file cannot be written.
    """
    from debrief.judging.judge_files import load_judges

    found = earlier_folders(place)
    homes = {target or folder.with_name(HOME) for folder in found}
    if target is not None and len({folder.parent for folder in found}) > 1:
        names = ", ".join(str(folder) for folder in found)
        raise InputError(str(target), f"cannot be the target of several: {names}", "Name one.")
    out = console()
    counts: Counter[str] = Counter()
    written = 0
    for folder in found:
        home = target or folder.with_name(HOME)
        steps = plan_migration(folder, home, load_judges)
        out.print(f"{folder} → {home}", soft_wrap=True)
        _print_steps(steps, home, folder)
        counts.update(step.action for step in steps)
        if really:
            written += apply(steps)
    out.print(", ".join(f"{count} {action}" for action, count in sorted(counts.items())))
    if really:
        where = ", ".join(str(home) for home in sorted(homes))
        out.print(f"{written} files written to {where}; nothing was overwritten", soft_wrap=True)
    elif counts["copy"] + counts["write"]:
        out.print("Nothing was written. To do it: the same with --apply")
    else:
        out.print("There is nothing to do.")


def _print_steps(steps: Sequence[Step], home: Path, folder: Path) -> None:
    out = console()
    for step in steps:
        base = folder if step.action == "left" else home
        path = step.target.relative_to(base) if step.target.is_relative_to(base) else step.target
        note = f"  ({step.note})" if step.note else ""
        style = _STYLES.get(step.action)
        out.print(f"  {step.action:<8}{path}{note}", style=style, soft_wrap=True)
