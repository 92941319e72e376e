"""``debrief judges`` and ``debrief rubrics``: what sessions are judged by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from debrief.cli.presenter import Form, print_report
from debrief.cli.shared import (
    AsJson,
    LakeUrl,
    Repo,
    chosen,
    console,
    existing_lake,
    print_json,
)
from debrief.errors import InputError

if TYPE_CHECKING:
    from debrief.certification import Certificate
    from debrief.lake import Lake
    from debrief.rubrics.linting import Lintable
    from debrief.rubrics.model import Rubric

judges_app = typer.Typer(
    no_args_is_help=True,
    help="The judges that are in force and what reviewers are worth: list, certify, write one.",
)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")


@judges_app.command("list")
def judges_list(repo: Repo = Path()) -> None:
    """List the judges in force, with their weights and models."""

    from debrief.judging.model import load_judges
    from debrief.snapshots.fingerprint import compute_eval_fingerprint

    folder = _judges_in_force(repo)
    judges = load_judges(folder)
    table = Table(box=box.SIMPLE_HEAD, title=f"Judges in {folder}", title_justify="left")
    for heading in ("judge", "weight", "share", "model", "words"):
        table.add_column(heading, justify="left" if heading in ("judge", "model") else "right")
    whole = sum(judge.weight for judge in judges) or 1.0
    for judge in judges:
        share, words = f"{judge.weight / whole:.0%}", str(len(judge.body.split()))
        table.add_row(Text(judge.name), f"{judge.weight:g}", share, Text(judge.model), words)
    console().print(table)
    console().print(f"eval fingerprint {compute_eval_fingerprint(judges)}")


@judges_app.command("certify")
def judges_certify(as_json: AsJson = False, lake: LakeUrl = "") -> None:
    """Hold each reviewer's verdicts against the labels that people gave blind.

    A reviewer is a model whose verdicts are in the lake. It is certified when labels show that it
    finds at least 80 % of complete and at least 80 % of incomplete sessions.
    """
    from debrief.certification import certificate_lines, certificates_in

    store = _open(existing_lake(lake))
    found = list(certificates_in(store).values())
    if as_json:
        print_json([_certificate_json(one) for one in found])
        return
    if not found:
        raise InputError(store.url, "holds no LLM review", "Run: debrief run --model NAME")
    out = console()
    for one in found:
        out.print(Text(f"{one.reviewer}: {one.sentence}.", style="bold"))
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, value in certificate_lines(one):
            table.add_row(f"  {name}", Text(value))
        out.print(table)


def _certificate_json(one: Certificate) -> dict[str, Any]:
    from msgspec.structs import asdict

    return {
        **asdict(one),
        "is_certified": one.is_certified,
        "missing": one.missing,
        "sentence": one.sentence,
        "complete_low": one.complete_hit.low,
        "incomplete_low": one.incomplete_hit.low,
        "corrected": one.corrected,
    }


@judges_app.command("new")
def judges_new(
    name: Annotated[str, typer.Argument(help="Such as error-handling.")],
    weight: Annotated[float, typer.Option(help="Its share in the weighted average.")] = 0.5,
    model: Annotated[str, typer.Option(help="A LiteLLM model name.")] = (
        "openrouter/x-ai/grok-4.1-fast"
    ),
    repo: Repo = Path(),
) -> None:
    """Begin a judge in the repository's .debrief/judges."""
    from debrief.content import folder
    from debrief.judging.model import judge_paths
    from debrief.snapshots.capture import HOME
    from debrief.snapshots.plans import repository_of

    if not _NAME.match(name):
        raise InputError(
            repr(name), "is no judge's name: lower-case letters, digits and '-', at most 63"
        )
    if not 0 <= weight < float("inf"):
        raise InputError(f"weight {weight}", "is not a number from 0 up")
    own = repository_of(repo).root / HOME / "judges"
    path = own / f"{name}.md"
    if path.exists():
        raise InputError(str(path), "is there already", "Choose another name.")
    out = console()
    if not own.is_dir():
        own.mkdir(parents=True)
        for judge in judge_paths(folder("judges")):
            (own / judge.name).write_bytes(judge.read_bytes())
            out.print(f"copied {judge.name}: a repository's own judges replace the project's")
    template = (folder("templates") / "judge.md").read_text(encoding="utf-8")
    title = name.replace("-", " ").capitalize()
    path.write_text(template.format(weight=weight, model=model, title=title), encoding="utf-8")
    out.print(f"wrote {path}; fill in what is left open")


def _judges_in_force(repo: Path) -> Path:
    from debrief.evaluators import judges_folder
    from debrief.settings import load_settings
    from debrief.snapshots.capture import find_repository

    repository = find_repository(repo)
    return judges_folder(load_settings(), repository.root if repository else repo)


rubrics_app = typer.Typer(
    no_args_is_help=True, help="The rubrics that were mined: read them, check them."
)


@rubrics_app.command("show")
def rubrics_show(
    lake: LakeUrl = "",
    score_name: Annotated[
        str, typer.Option(help="One of DEBRIEF_SCORE_NAMES, such as excellence; all if none.")
    ] = "",
    form: Form = "text",
) -> None:
    """Show the final rubrics, each with what unseen sessions say of it."""
    from debrief.rubrics.model import (
        ALL,
        EXTRACTED,
        SEARCHES,
        ExtractedRubric,
        RubricSearch,
    )
    from debrief.rubrics.page import rubrics_markdown

    store = _open(lake)
    rubrics = _by_score_name(store)
    searches = list(store.read(SEARCHES, ALL, RubricSearch))
    known = list(dict.fromkeys([*(row.score_name for row in searches), *rubrics]))
    if not (searches or any(rubrics.values())):
        raise InputError(store.url, "holds no rubrics", f"Run: debrief run --lake {store.url}")
    names = chosen("--score-name", score_name, {"": known, **{name: [name] for name in known}})
    searches = [row for row in searches if row.score_name in names]
    final = [rubric for name in names for rubric in rubrics.get(name, ())]
    extracted = list(store.rows(EXTRACTED, ExtractedRubric))

    def page() -> str:
        pages = (
            rubrics_markdown(
                rubrics.get(name, ()),
                extracted=extracted,
                searches=[search for search in searches if search.score_name == name],
            )
            for name in names
        )
        return "\n\n".join(pages)

    print_report(form, {"rubrics": final, "searches": searches}, page)


@rubrics_app.command("lint")
def rubrics_lint(
    path: Annotated[
        Path | None,
        typer.Argument(
            help="A JSON file: an array of rubrics, or an object with one in rubrics; those of the "
            "lake if none."
        ),
    ] = None,
    lake: LakeUrl = "",
    as_json: AsJson = False,
) -> None:
    """Mark what makes a rubric hard to judge by; exit code 1 when anything is marked."""
    from debrief.rubrics.linting import lint, rubrics_in_file

    sets: dict[str, Sequence[Lintable]]
    if path is not None:
        sets = {title or str(path): rubrics for title, rubrics in rubrics_in_file(path).items()}
    else:
        store = _open(lake)
        sets = {**_by_score_name(store)}
        if not any(sets.values()):
            raise InputError(store.url, "holds no rubrics", "Name a JSON file, or another --lake.")
    marks = [(title, mark) for title, rubrics in sets.items() for mark in lint(rubrics)]
    if as_json:
        print_json(
            [
                {"set": title, "rubric": m.rubric_id, "rule": m.rule, "message": m.message}
                for title, m in marks
            ]
        )
    else:
        out = console()
        for title, mark in marks:
            out.print(f"{title}: {mark.rubric_id}: {mark.rule}: {mark.message}")
        out.print(f"{sum(map(len, sets.values()))} rubrics, {len(marks)} marks")
    raise typer.Exit(1 if marks else 0)


def _by_score_name(store: Lake) -> dict[str, list[Rubric]]:
    from debrief.rubrics.model import RUBRICS, Rubric

    return {name: list(store.read(RUBRICS, name, Rubric)) for name in store.partitions(RUBRICS)}


def _open(lake: str) -> Lake:
    from debrief.conversion import open_lake
    from debrief.settings import load_settings

    return open_lake(lake or load_settings().lake)
