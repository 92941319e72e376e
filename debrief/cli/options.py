"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
