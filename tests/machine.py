"""What a process of a test finds set, and what it leaves on the disk."""

from __future__ import annotations

import os
from pathlib import Path


def clean_environment(**more: str) -> dict[str, str]:
    """Return this process's environment without the settings of Debrief and Dagster."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))}
    return {**kept, **more}


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the content of each file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
