"""What commands have in common: options, and output for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from debrief.errors import DebriefError


class ErrorReportingGroup(TyperGroup):
    """Commands that end with one line and exit code 1 on an error that a person can act on."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command that the arguments name."""
        try:
            return super().invoke(ctx)
        except DebriefError as error:
            console(stderr=True).print(f"debrief: {error}", style="red")
            raise typer.Exit(1) from None


def console(stderr: bool = False) -> Console:
    """Return a console that prints what it is given: no guessed markup, numbers or line ends."""
    return Console(stderr=stderr, highlight=False, markup=False, soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning to the error output."""
    console(stderr=True).print(f"debrief: {message}", style="yellow")


def print_json(value: object) -> None:
    """Print whatever msgspec encodes as indented JSON."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value)).decode())


def print_unwrapped(out: Console, table: Table) -> None:
    """Print a table without cutting a cell short, however narrow the terminal is."""
    needed = out.measure(table, options=out.options.update(max_width=1_000)).maximum
    usual, out.width = out.width, max(needed, out.width)
    out.print(table)
    out.width = usual


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 turn``, ``2,000 turns``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def cost_text(cost_usd: float | None) -> str:
    """Return what calls cost, for people."""
    return "at an unknown price" if cost_usd is None else f"for about ${cost_usd:.4f}"


Repo = Annotated[
    Path, typer.Option("--repo", help="A folder inside the repository; the current one if none.")
]
User = Annotated[
    bool, typer.Option("--user", help="Your own settings, for every repository, instead.")
]
Local = Annotated[
    bool, typer.Option("--local", help="The repository's settings.local.json, never committed.")
]
LakeUrl = Annotated[str, typer.Option("--lake", help="The lake; DEBRIEF_LAKE if none.")]
Database = Annotated[
    str,
    typer.Option(
        "--database", help="A Postgres address; DATABASE_URL if none, else the embedded one."
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Ask no model: the deterministic offline evaluator.")
]
MaxCost = Annotated[float | None, typer.Option(help="In USD: no new call once so much is spent.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and ask nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
