"""``debrief judges``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.commands.options import Repo
from debrief.cli.console import told

app = typer.Typer(
    no_args_is_help=True, help="The judges that are in force: list them, check them, write one."
)


@app.command("list")
@told
def judges_list(repo: Repo = Path()) -> None:
    """List the judges in force, with their weights and models."""
    from debrief.cli.judges import list_judges

    list_judges(repo)


@app.command("check")
@told
def judges_check(repo: Repo = Path()) -> None:
    """Check every judge's file; exit code 1 when one has a mistake."""
    from debrief.cli.judges import check_judges

    raise typer.Exit(1 if check_judges(repo) else 0)


@app.command("new")
@told
def judges_new(
    name: Annotated[str, typer.Argument(help="Such as error-handling.")],
    weight: Annotated[float, typer.Option(help="Its share in the weighted average.")] = 0.5,
    model: Annotated[str, typer.Option(help="A LiteLLM model name.")] = (
        "openrouter/x-ai/grok-4.1-fast"
    ),
    repo: Repo = Path(),
) -> None:
    """Begin a judge in the repository's .debrief/judges."""
    from debrief.cli.judges import new_judge

    new_judge(name, weight, model, repo)
