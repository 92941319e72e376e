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
