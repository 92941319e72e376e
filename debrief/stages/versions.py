"""The words that stages are made by: judges and prompts are code as much as Python is."""

from __future__ import annotations

from pathlib import Path

from debrief.content import folder
from debrief.evaluators import judges_folder
from debrief.settings import load_settings

SCORER = ("session_scorer.txt", "dimensions.toml")
"""One call asks a session's dimensions, and the judges that can ride along."""


def prompt_texts(*patterns: str) -> list[tuple[str, str]]:
    """Return the texts of prompts by name; a file of ``DEBRIEF_PROMPTS`` wins."""
    places = [folder("prompts"), *filter(None, [load_settings().prompts])]
    return [
        text
        for pattern in patterns
        for text in sorted(
            dict(text for place in places for text in _texts(place, pattern)).items()
        )
    ]


def judge_texts() -> list[tuple[str, str]]:
    """Return the texts of the judges by name."""
    return _texts(judges_folder(load_settings()), "*.md")


def _texts(directory: Path, pattern: str) -> list[tuple[str, str]]:
    return [
        (path.name, path.read_text(encoding="utf-8", errors="replace"))
        for path in sorted(directory.glob(pattern))
        if path.name != "README.md"
    ]
