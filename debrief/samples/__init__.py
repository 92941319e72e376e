"""Sample sessions, made up for this project, that the demo runs on.

``tools/samples`` holds the scripts that they are written down in, and what turns those into the
files that Claude Code and Factory droid would have left behind.
"""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """Return the folder that holds the sample transcripts and captured prompts.

    Below it: ``claude/projects`` and ``factory/sessions``, laid out as the two tools do, and
    ``captures/.debrief/sessions/<session id>`` with the prompts that were in force.
    """
    return Path(__file__).resolve().parent / "data"
