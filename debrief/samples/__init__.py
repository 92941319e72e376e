"""The invented sample sessions that the demo runs on.

``tools/samples`` holds the scripts that they are written down in, and what turns those into the
files that Claude Code and Factory droid would have left behind, and into the repositories that they
worked in.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from debrief.git import git

REPOSITORIES, STREAM = "repositories", ".fast-import"
REVIEWER = "recorded/claude-2026-11-29"
"""The model of the demo: answers that were recorded once (``tools/record_answers.py``)."""
SCORE_NAMES = ("excellence",)
"""By which the demo mines rubrics."""


def folder() -> Path:
    """Return the folder that holds the sample transcripts and captured prompts.

    Below it: ``claude/projects`` and ``factory/sessions``, laid out as the two tools do, and
    ``captures/.debrief/sessions/<session id>`` with the prompts that were in force.
    """
    return Path(__file__).resolve().parent / "data"


def lay_out_repositories(target: Path) -> list[Path]:
    """Make the repositories of the sample sessions below a folder, those apart that are there.

    They are bare, with commits of fixed dates: the same ids on every machine.

    Returns:
        The repositories' folders, by name.
    """
    streams = sorted(folder().with_name(REPOSITORIES).glob(f"*{STREAM}"))
    made = {stream: target / stream.name.removesuffix(STREAM) for stream in streams}
    target.mkdir(parents=True, exist_ok=True)
    for stream, place in made.items():
        if not place.is_dir():
            with TemporaryDirectory(dir=target, prefix=".") as scratch:
                new = Path(scratch) / place.name
                git(target, "init", "--quiet", "--bare", "--initial-branch=main", str(new))
                git(new, "fast-import", "--quiet", data=stream.read_bytes())
                new.rename(place)
    return list(made.values())
