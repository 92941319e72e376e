"""Programs that say when they are run."""

from __future__ import annotations

import shlex
from pathlib import Path


class Trap:
    """A folder of programs, each of which leaves its name in a file when it is run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._runs = folder.with_name(f"{folder.name}.runs")
        self.program = self.named("trap")

    def named(self, name: str) -> Path:
        """Make a program of that name, or return the one that there is."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\necho {name} >> {shlex.quote(str(self._runs))}\n")
        path.chmod(0o755)
        return path

    @property
    def sprung(self) -> list[str]:
        """The names of those that were run, once for each time."""
        return self._runs.read_text().split() if self._runs.exists() else []

    def forget(self) -> None:
        """Forget what was run so far."""
        self._runs.unlink(missing_ok=True)
