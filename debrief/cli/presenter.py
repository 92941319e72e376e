"""Print a report as text, Markdown or JSON: one page, three forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import typer

from debrief.cli.shared import console, print_json
from debrief.errors import without_controls

Form = Annotated[
    Literal["text", "markdown", "json"], typer.Option("--format", help="How it is printed.")
]


def print_report(form: Form, rows: object, page: Callable[[], str]) -> None:
    """Print a report.

    Args:
        form: how.
        rows: what JSON holds.
        page: returns the same in Markdown; as text, it is laid out for the terminal.
    """
    if form == "json":
        print_json(rows)
        return
    text = without_controls(page())
    if form == "markdown":
        print(text)
        return
    from rich.markdown import Markdown

    # Words of models are in it: a link shows where it leads.
    console().print(Markdown(text, hyperlinks=False), soft_wrap=False)
