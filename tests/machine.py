"""What a process of a test finds set, and what it leaves on the disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from debrief.keys import week_after


def clean_environment(**more: str) -> dict[str, str]:
    """Return this process's environment without the settings of Debrief and Dagster."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))}
    return {**kept, **more}


_COMMON = Path(os.environ["HOME"]) / "patterns"
"""In the home that conftest.py makes for a run of the tests."""


def keep_patterns(home: Path) -> None:
    """Let a home of Debrief's have its compiled patterns where all homes of a run of the tests have
    theirs: the first process on a new home would compile them for a second."""
    patterns = home / "patterns"
    with suppress(OSError):  # a home that is there already, or that cannot be made
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        _COMMON.mkdir(exist_ok=True, mode=0o700)
        patterns.symlink_to(_COMMON)


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the content of each file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def lake_of_many_weeks(folder: Path) -> None:
    """Make a lake with weeks from long ago on, so that all weeks of the samples are partitions."""
    table = folder / "raw_sessions"
    table.mkdir(parents=True)
    for number in range(300):
        (table / f"{week_after('2022-01-03', number)}.jsonl.zst").touch()
