"""``debrief judges``: which judges are in force, whether they are sound, and a new one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from debrief.cli.console import console
from debrief.cli.options import Repo
from debrief.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from debrief.snapshots.capture import RepositoryPaths

app = typer.Typer(
    no_args_is_help=True, help="The judges that are in force: list them, check them, write one."
)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")


@app.command("list")
def judges_list(repo: Repo = Path()) -> None:
    """List the judges in force, with their weights and models."""

    from debrief.judging.judge_files import load_judges
    from debrief.snapshots.fingerprint import compute_eval_fingerprint

    folder = _judges_in_force(repo)
    judges = load_judges(folder)
    table = Table(box=box.SIMPLE_HEAD, title=f"Judges in {folder}", title_justify="left")
    for heading in ("judge", "weight", "share", "model", "words"):
        table.add_column(heading, justify="left" if heading in ("judge", "model") else "right")
    whole = sum(judge.weight for judge in judges)
    for judge in judges:
        share, words = f"{judge.weight / whole:.0%}", str(len(judge.body.split()))
        table.add_row(Text(judge.name), f"{judge.weight:g}", share, Text(judge.model), words)
    console().print(table)
    console().print(f"eval fingerprint {compute_eval_fingerprint(judges)}")


@app.command("check")
def judges_check(repo: Repo = Path()) -> None:
    """Check every judge's file; exit code 1 when one has a mistake."""
    from debrief.judging.judge_files import judge_paths, load_judge, load_judges

    folder, out, is_sound = _judges_in_force(repo), console(), True
    for path in judge_paths(folder):
        try:
            load_judge(path)
        except ConfigurationError as error:
            is_sound = False
            out.print(str(error), style="red")
        else:
            out.print(f"{path}: sound")
    if not is_sound:
        raise typer.Exit(1)
    load_judges(folder)


@app.command("new")
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
    from debrief.judging.judge_files import judge_paths
    from debrief.snapshots.capture import HOME

    if not _NAME.match(name):
        raise InputError(
            repr(name), "is no judge's name: lower-case letters, digits and '-', at most 63"
        )
    if not 0 < weight < float("inf"):
        raise InputError(f"weight {weight}", "is not over 0")
    repository = _repository(repo)
    if repository is None:
        raise InputError(str(repo.resolve()), "lies in no git repository")
    own = repository.root / HOME / "judges"
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

    repository = _repository(repo)
    return judges_folder(load_settings(), repository.root if repository else repo)


def _repository(folder: Path) -> RepositoryPaths | None:
    from debrief.snapshots.capture import find_repository

    return find_repository(folder)
