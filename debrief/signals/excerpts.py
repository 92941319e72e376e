"""Short quotations of calls, results and texts, as evidence."""

from __future__ import annotations

import re

from debrief.markdown import shorten
from debrief.sessions.model import ToolCall

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What programs print to colour and move."""
_QUOTE = 120


def label(call: ToolCall) -> str:
    """Return a call in a few words: its command, or its tool and file."""
    if call.command:
        return shorten(call.command, 60)
    path = call.path or next(iter(call.paths), "")
    return f"{call.name} {tail(path)}" if path else call.name


def tail(path: str) -> str:
    """Return a file's name and folder."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def line_at(text: str, found: re.Match[str]) -> str:
    """Return the line around what was found, short."""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    line = text[start : end if end >= 0 else len(text)].strip()
    return line if len(line) <= _QUOTE else shorten(text[max(start, found.start() - 40) :], _QUOTE)


ENVELOPE = re.compile(
    r"</?\w+>\W*\d*|(?i:exit code)|Chunk ID: |Wall time|Original token count: |Output:$"
    r"|(?:Process|Command) exited with code |Script (?:completed|failed)$"
    r"|(?:Command|Directory|Signal|Background PIDs|Process Group PGID): |Error: \(none\)$"
    r"|Shell cwd was reset to |\((?:Bash completed with )?no output\)$"
)
"""Lines that a program puts around what a command printed."""


def first_line(text: str) -> str:
    """Return the first line that says something, short."""
    return shorten(next(iter(printed_lines(text[:2_000])), ""), 100)


def printed_lines(text: str) -> list[str]:
    """Return the lines that a command printed, without what its program put around them."""
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not ENVELOPE.match(line)]
