"""The first line of each question we send to a coding agent, by which our own sessions are known.

A program that answers for us may keep what it was asked where its sessions are. By this line such
a file is known for what it is, and never read as a session.
"""

from __future__ import annotations

import re

MARK = "Debrief asks (v"
OPENING = f"{MARK}1)"
"""Its number is raised when what a program is sent changes its form; all numbers stay known."""
_LINE = re.compile(rf"\s*{re.escape(MARK)}\d+\)[ \t\r]*(?:\n|\Z)")


def opened(question: str) -> str:
    """Return a question with the line on top, once.

    >>> opened("Is it done?")
    'Debrief asks (v1)\\n\\nIs it done?'
    """
    return question if is_ours(question) else f"{OPENING}\n\n{question}"


def is_ours(prompt: str) -> bool:
    """Return whether a prompt opens with the line, whatever its number.

    >>> is_ours("Debrief asks (v12)\\n\\nIs it done?"), is_ours("What is 'Debrief asks (v1)'?")
    (True, False)
    """
    return _LINE.match(prompt) is not None
