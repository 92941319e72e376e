"""Find the debrief command, wherever it was installed, and run it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

VARIABLE = "DEBRIEF_COMMAND"
INSTALLED_BY = Path(__file__).with_name("command.json")
"""Names the command that installed this skill."""
MISSING = (
    "debrief was not found. Install it, or set DEBRIEF_COMMAND to how it is started, "
    "such as /home/you/debrief/.venv/bin/debrief."
)


def debrief(*arguments: str) -> int:
    """Run the command with these arguments; return its exit code, 127 when there is none."""
    command = _command()
    if command is None:
        print(MISSING, file=sys.stderr)
        return 127
    return subprocess.run([*command, *arguments], check=False).returncode


def _command() -> list[str] | None:
    if named := os.environ.get(VARIABLE):
        return shlex.split(named)
    if INSTALLED_BY.is_file():
        command: list[str] = json.loads(INSTALLED_BY.read_text(encoding="utf-8"))
        if shutil.which(command[0]):
            return command
    found = shutil.which("debrief")
    return [found] if found else None
