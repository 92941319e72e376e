"""``debrief migrate``: folders of earlier tools become ours."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.console import console
from debrief.errors import InputError

_STYLES = {"copy": "green", "write": "green", "differs": "yellow", "missing": "yellow"}


def migrate(
    path: Annotated[
        Path, typer.Argument(help="A repository with a .weft or .lw_coder folder, or that folder.")
    ] = Path(),
    really: Annotated[
        bool, typer.Option("--apply", help="Write; without it, only list what would be written.")
    ] = False,
    target: Annotated[
        Path | None,
        typer.Option("--to", help="The .debrief folder to fill; the one beside it if none."),
    ] = None,
) -> None:
    """Make .debrief folders of .weft and .lw_coder ones by copy; nothing is overwritten.

    Sessions, training data, judges, plans (or tasks) and prompts are taken over. Prompts and
    metadata that a sample lacks are filled in from what lies around it, and listed in its
    metadata as filled in; what nobody can tell is reported as missing.
    """
    from debrief.judging.judge_files import load_judges
    from debrief.snapshots.capture import HOME
    from debrief.snapshots.migration import apply, earlier_folders, plan_migration

    folders = earlier_folders(path)
    homes = {target or folder.with_name(HOME) for folder in folders}
    if target is not None and len({folder.parent for folder in folders}) > 1:
        names = ", ".join(str(folder) for folder in folders)
        raise InputError(str(target), f"cannot be the target of several: {names}", "Name one.")
    out = console()
    counts: Counter[str] = Counter()
    written = 0
    for folder in folders:
        home = target or folder.with_name(HOME)
        out.print(f"{folder} → {home}")
        steps = plan_migration(folder, home, load_judges)
        for step in steps:
            base = folder if step.action == "left" else home
            inside = step.target.is_relative_to(base)
            file = step.target.relative_to(base) if inside else step.target
            note = f"  ({step.note})" if step.note else ""
            style = _STYLES.get(step.action)
            out.print(f"  {step.action:<8}{file}{note}", style=style)
        counts.update(step.action for step in steps)
        if really:
            written += apply(steps)
    out.print(", ".join(f"{count} {action}" for action, count in sorted(counts.items())))
    if really:
        where = ", ".join(str(home) for home in sorted(homes))
        out.print(f"{written} files written to {where}; nothing was overwritten")
    elif counts["copy"] + counts["write"]:
        out.print("Nothing was written. To do it: the same with --apply")
    else:
        out.print("There is nothing to do.")
