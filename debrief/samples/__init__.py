"""Sample sessions, made for this project, that the demo runs on.

Nothing here was recorded: three made-up code bases and thirty made-up sessions are written down
as scripts (``stories/``), and ``build`` performs them into the very files that Claude Code and
Factory droid would have left behind (``data/``). Both are shipped, so that a reader can see
where every line comes from, and the demo needs no building.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def folder() -> Path:
    """Return the folder that holds the sample transcripts and captured prompts.

    Below it: ``claude/projects`` and ``factory/sessions``, laid out as the two tools do, and
    ``captures/.debrief/sessions/<session id>`` with the prompts that were in force.
    """
    return Path(str(files("debrief.samples"))) / "data"
