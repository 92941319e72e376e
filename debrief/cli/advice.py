"""``debrief advice``: recurring friction, and the lines that stop it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.presenter import Form, print_report
from debrief.cli.shared import LakeUrl, console
from debrief.errors import InputError, without_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debrief.friction.schema import LineEffect, RecurringFriction
    from debrief.lake import Lake

_RUN_FIRST = "Run: debrief run --no-model"


def advice(
    patch: Annotated[
        Path | None,
        typer.Option(
            "--patch",
            metavar="FILE",
            help="Print a unified diff that adds the lines to this file, such as CLAUDE.md or "
            "AGENTS.md, for git apply.",
        ),
    ] = None,
    effects: Annotated[
        bool,
        typer.Option("--effects", help="Compare sessions before and after lines came in instead."),
    ] = False,
    repository: Annotated[
        str, typer.Option(help="As sessions name it; all, or with --patch the file's own.")
    ] = "",
    form: Form = "text",
    lake: LakeUrl = "",
) -> None:
    """Show recurring friction, what it costs, and the line that stops it.

    The lines are for CLAUDE.md or AGENTS.md. Each names what was seen to work in two sessions or
    more. `debrief run` finds it; with a model, also in what reviews noted.
    """
    from debrief.conversion import open_lake
    from debrief.settings import load_settings

    if patch is not None and not patch.parent.is_dir():
        raise InputError(str(patch), "is in a folder that does not exist", "Name another file.")
    store = open_lake(lake or load_settings().lake)
    if effects:
        _show_effects(store, repository, form)
        return
    frictions = _frictions(store, repository)
    if patch is not None:
        _print_patch(_of_one(frictions, repository, patch), patch)
    else:
        print_report(form, frictions, lambda: _page(frictions))
        if form == "text" and frictions:
            console().print("As a patch: debrief advice --patch CLAUDE.md | git apply")


def _frictions(store: Lake, repository: str) -> list[RecurringFriction]:
    """Return those of a repository, which may be named without its owner; all for none."""
    from debrief.friction.schema import ALL, RECURRING, RecurringFriction

    if store.stamp(RECURRING, ALL) is None:
        raise InputError(store.url, "was not searched for friction yet", _RUN_FIRST)
    rows = list(store.read(RECURRING, ALL, RecurringFriction))
    if not repository:
        return rows
    named = {row.repository for row in rows}
    if repository not in named:
        named = {each for each in named if each.rpartition("/")[2] == repository}
        if len(named) != 1:
            known = ", ".join(sorted({row.repository for row in rows}))
            raise InputError(repository, "has no recurring friction", f"Known: {known or 'none'}.")
        repository = named.pop()
    return [row for row in rows if row.repository == repository]


def _of_one(
    frictions: list[RecurringFriction], repository: str, patch: Path
) -> list[RecurringFriction]:
    """Return those of the repository that a file is of: a patch mixes none."""
    from debrief.snapshots.clones import names_of

    repositories = {row.repository for row in frictions}
    if repository or len(repositories) < 2:
        return frictions
    top = next((parent for parent in patch.resolve().parents if (parent / ".git").exists()), None)
    names = names_of(top) if top is not None else set()
    own = {each for each in repositories if each.rpartition("/")[2].lower() in names}
    if len(own) != 1:
        known = ", ".join(sorted(repositories))
        raise InputError(
            str(patch), "is in no repository with recurring friction", f"--repository: {known}."
        )
    return [row for row in frictions if row.repository in own]


def _print_patch(frictions: Sequence[RecurringFriction], patch: Path) -> None:
    from debrief.friction.advice import patch_for

    text = patch.read_bytes().decode("utf-8", "replace") if patch.is_file() else None
    if made := patch_for(frictions, os.path.relpath(patch), text):
        print(without_controls(made), end="")
    else:
        has = "has every line already" if frictions else "needs no line: none is known"
        console(stderr=True).print(f"{patch} {has}.")


def _page(frictions: Sequence[RecurringFriction]) -> str:
    from debrief.friction.advice import advice_markdown

    return advice_markdown(frictions) or "No friction recurs, as far as can be told."


def _show_effects(store: Lake, repository: str, form: Form) -> None:
    from debrief.friction.line_effects import effects_markdown
    from debrief.friction.schema import ALL, EFFECTS, LineEffect

    if store.stamp(EFFECTS, ALL) is None:
        raise InputError(store.url, "was not searched for lines yet", _RUN_FIRST)
    effects: list[LineEffect] = [
        row
        for row in store.read(EFFECTS, ALL, LineEffect)
        if not repository or repository in (row.repository, row.repository.rpartition("/")[2])
    ]
    print_report(form, effects, lambda: effects_markdown(effects))
