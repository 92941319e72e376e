"""``debrief advice``: what goes wrong again and again, and the lines that stop it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import (
    DryRun,
    LakeUrl,
    MaxCost,
    Yes,
    checked_limit,
    chosen,
    console,
    cost_text,
    print_json,
    print_unwrapped,
    warn,
)
from debrief.errors import InputError, without_controls
from debrief.markdown import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debrief.lake import Lake
    from debrief.troubles.advising import AdvisedLine
    from debrief.troubles.model import LineEffect, Trouble

FORMS = dict.fromkeys(("text", "markdown", "json"))
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
    helped: Annotated[
        bool,
        typer.Option("--helped", help="Compare sessions before and after lines came in instead."),
    ] = False,
    repository: Annotated[
        str, typer.Option(help="As sessions name it; all, or with --patch the file's own.")
    ] = "",
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
    model: Annotated[
        str, typer.Option(help="A model that words the lines, from the same evidence.")
    ] = "",
    max_cost: MaxCost = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    lake: LakeUrl = "",
) -> None:
    """Show what goes wrong again and again, what it costs, and the line that stops it.

    The lines are for CLAUDE.md or AGENTS.md and name the command, the file or the words of the
    evidence. Where the evidence shows no remedy there is no line.
    """
    from debrief.conversion import open_lake
    from debrief.settings import load_settings
    from debrief.troubles.advising import advised_lines

    chosen("--format", form, FORMS)
    if patch is not None and not patch.parent.is_dir():
        raise InputError(str(patch), "is in a folder that does not exist", "Name another file.")
    store = open_lake(lake or load_settings().lake)
    if helped:
        _show_effects(store, repository, form)
        return
    troubles = _troubles(store, repository)
    if patch is not None:
        troubles = _of_one(troubles, repository, patch)
    advised = advised_lines(troubles)
    if model:
        limit = checked_limit(max_cost)
        advised = _worded(advised, model, limit, yes=yes, dry_run=dry_run)
    if patch is not None:
        _print_patch(advised, patch)
    elif form == "json":
        print_json([{"line": line.line, "trouble": line.trouble} for line in advised])
    else:
        _print_advice(store, advised, form)


def _troubles(store: Lake, repository: str) -> list[Trouble]:
    from debrief.troubles.model import ALL, TROUBLES, Trouble

    troubles = list(store.read(TROUBLES, ALL, Trouble))
    if store.stamp(TROUBLES, ALL) is None:
        raise InputError(store.url, "was not searched for troubles yet", _RUN_FIRST)
    return _of_repository(troubles, repository)


def _of_repository(troubles: list[Trouble], repository: str) -> list[Trouble]:
    """Return those of a repository, which may be named without its owner; all for none."""
    if not repository:
        return troubles
    named = {trouble.repository for trouble in troubles}
    if repository not in named:
        named = {each for each in named if each.rpartition("/")[2] == repository}
        if len(named) != 1:
            known = ", ".join(
                sorted({trouble.repository for trouble in troubles if trouble.repository})
            )
            raise InputError(repository, "has no troubles here", f"Known: {known or 'none'}.")
        repository = named.pop()
    return [trouble for trouble in troubles if trouble.repository == repository]


def _of_one(troubles: list[Trouble], repository: str, patch: Path) -> list[Trouble]:
    """Return the troubles of the repository that a file is of: a patch mixes none."""
    from debrief.snapshots.clones import names_of

    repositories = {trouble.repository for trouble in troubles}
    if repository or len(repositories) < 2:
        return troubles
    top = next((parent for parent in patch.resolve().parents if (parent / ".git").exists()), None)
    names = names_of(top) if top is not None else set()
    own = {
        repository for repository in repositories if repository.rpartition("/")[2].lower() in names
    }
    if len(own) != 1:
        known = ", ".join(sorted(repository for repository in repositories if repository))
        raise InputError(str(patch), "is in no repository with troubles", f"--repository: {known}.")
    return [trouble for trouble in troubles if trouble.repository in own]


def _worded(
    advised: list[AdvisedLine], model: str, max_cost: float | None, *, yes: bool, dry_run: bool
) -> list[AdvisedLine]:
    """Return the lines as a model words them; what that costs is said first."""
    from msgspec import structs

    from debrief.cli.asking import agreed
    from debrief.evaluators import Evaluators
    from debrief.models.prompting import PromptedModel
    from debrief.redaction.redactor import key_of
    from debrief.settings import load_settings
    from debrief.troubles.advising import MOST
    from debrief.troubles.wording import worded_or_own

    settings = load_settings().with_given(model=model, max_cost_usd=max_cost)
    shown: dict[str, int] = {}
    first = []
    for one in advised:
        shown[one.trouble.repository] = shown.get(one.trouble.repository, 0) + 1
        first.append(shown[one.trouble.repository] <= MOST)

    def ask(by: Evaluators) -> list[AdvisedLine]:
        assert by.models is not None
        asked = PromptedModel(by.name, by.models.get(by.name).ask, key_of(settings))
        lines = []
        for one, is_asked in zip(advised, first, strict=True):
            line, refused = one.line, ""
            if is_asked:
                line, refused = worded_or_own(one.trouble, asked, one.line)
            if refused and not by.dry_run:
                warn(f"{by.name} worded no line of trouble {one.trouble.id}: {refused}")
            lines.append(structs.replace(one, line=line))
        return lines

    asking = agreed(settings, ask, yes, dry_run=dry_run)
    found = ask(asking)
    spent = asking.spent
    console(stderr=True).print(
        f"{counted(spent.calls, 'question')}, {cost_text(spent.usage.cost_usd)}."
    )
    return found


def _print_patch(advised: Sequence[AdvisedLine], patch: Path) -> None:
    from debrief.troubles.advising import patch_for, with_lines

    text = patch.read_bytes().decode("utf-8", "replace") if patch.is_file() else None
    made = patch_for(advised, os.path.relpath(patch), text)
    if made:
        print(without_controls(made), end="")
    else:
        has = "has every line already" if with_lines(advised) else "needs no line: none is known"
        console(stderr=True).print(f"{patch} {has}.")


def _print_advice(store: Lake, advised: Sequence[AdvisedLine], form: str) -> None:
    from rich.text import Text

    from debrief.troubles.advising import advice_markdown, shown_repository, with_lines
    from debrief.troubles.model import KINDS_SHOWN

    if not advised:
        console().print("No trouble: nothing went wrong often enough in one repository.")
        return
    if form == "markdown":
        print(advice_markdown(advised))
        return
    out, repository = console(), None
    for line in advised:
        trouble = line.trouble
        if trouble.repository != repository:
            out.print(Text(f"\n{shown_repository(trouble.repository)}".lstrip("\n"), style="bold"))
            repository = trouble.repository
        kind = KINDS_SHOWN[trouble.kind].capitalize()
        out.print(f"  {kind}: {' '.join(trouble.subject.split())}")
        out.print(Text(f"    {line.evidence}", style="dim"))
        if line.line:
            out.print(Text(f"    {line.line}", style="green"))
    if advised:
        out.print(Text("\nCounted is what surely is the same, so there may be more.", style="dim"))
    if with_lines(advised):
        out.print("As a patch: debrief advice --patch CLAUDE.md | git apply")


def _show_effects(store: Lake, repository: str, form: str) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from debrief.troubles.helped import effects_markdown, shown_effect
    from debrief.troubles.model import ALL, EFFECTS, LineEffect

    if store.stamp(EFFECTS, ALL) is None:
        raise InputError(store.url, "was not searched for lines yet", _RUN_FIRST)
    effects: list[LineEffect] = [
        row
        for row in store.read(EFFECTS, ALL, LineEffect)
        if not repository or repository in (row.repository, row.repository.rpartition("/")[2])
    ]
    if form == "json":
        print_json(effects)
    elif form == "markdown":
        print(without_controls(effects_markdown(effects)))
    elif not effects:
        console().print("No prompt file that sessions had holds a line about a trouble.")
    else:
        table = Table(box=box.SIMPLE_HEAD)
        for heading in ("repository", "line", "since", "before", "after", "change", "helped?"):
            table.add_column(heading)
        for row in effects:
            table.add_row(*(Text(cell) for cell in shown_effect(row)))
        print_unwrapped(console(), table)
