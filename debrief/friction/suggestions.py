"""The rule's line: run what then worked, and not what failed.

Where the events do not agree on what worked there is no line, and so no friction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from debrief.errors import ModelError
from debrief.friction.line_check import read_line
from debrief.friction.normalize import name_of
from debrief.friction.resolution import is_version_of, without_path
from debrief.friction.schema import FrictionEvent

_INTO_FOLDER = re.compile(r"\Acd\s+(?:/|~)\S*\s*(?:&&|;)\s*")
_OUTPUT_ALONE = re.compile(r"\s*(?:2>&1|\d?>\s*/dev/null|\|\s*(?:tail|head|cat)\b[^|;&]*)\s*\Z")
_PLACES = re.compile(r"\S*[/.]\S*|\b\d+")
"""Paths and numbers, which two runs of one command may differ in."""


def line_for(events: Sequence[FrictionEvent]) -> str:
    """Return the line that stops what the rule saw; empty where no remedy is known.

    Args:
        events: of one friction, in any order. Most of those in which something worked must agree
            on what it was.
    """
    worked = Counter(event.instead for event in events if event.instead)
    if not worked:
        return ""
    instead, count = worked.most_common(1)[0]
    if 2 * count <= worked.total() and len(worked) > 1:
        return ""
    newest = max((e for e in events if e.instead == instead), key=lambda event: event.at)
    line = _line(code(newest.command), code(instead), newest)
    try:
        return read_line(line, [newest.command, newest.instead, newest.missing])
    except ModelError:
        return ""


def code(command: str) -> str:
    """Return a command as a line names it; empty where it cannot stand on one line.

    The way into a folder of the machine is taken off, and what only shortens the output.

    >>> code("cd /home/sam/shop && pnpm test 2>&1 | tail -20")
    'pnpm test'
    """
    text = _INTO_FOLDER.sub("", command.strip())
    while (shorter := _OUTPUT_ALONE.sub("", text)) != text:
        text = shorter
    return "" if "`" in text or "\n" in text else text


def _line(command: str, instead: str, event: FrictionEvent) -> str:
    program = command.partition(" ")[0]
    path, plain = without_path(instead)
    if path and event.missing == program:
        return f"`{program}` is not on the PATH: put `{path}` before it."
    if is_version_of(first := plain.partition(" ")[0], program):
        return f"Run `{first}`, not `{program}`, which fails here."
    if options := _left_out(command, plain):
        is_said = all(option in event.evidence.quote for option in options.split())
        return (
            f"Leave `{options}` out of `{name_of(plain.split())}`, which fails with it." * is_said
        )
    if event.missing == program:
        command, plain = _called_by(command, plain)
    bare = [_PLACES.sub("", text).split() for text in (command, plain)]
    if not command or not plain or bare[0] == bare[1]:
        return ""  # the same command, of other files
    return f"Run `{plain}`, not `{command}`, which fails here."


def _left_out(command: str, instead: str) -> str:
    """Return the options without which a command went well; empty where more differs."""
    tried, went = command.split(), instead.split()
    options = [word for word in tried if word not in went]
    is_less = bool(went) and [word for word in tried if word in went] == went
    return " ".join(options) if is_less and all(word.startswith("-") for word in options) else ""


def _called_by(command: str, instead: str) -> tuple[str, str]:
    """Return a program, and how it is called where it then worked: ``vp`` and ``pnpm exec vp`` of
    ``vp fmt`` and ``pnpm exec vp fmt``; both commands as they are where more differs."""
    program, _, arguments = command.partition(" ")
    called = instead.removesuffix(arguments).rstrip()
    is_same = instead.endswith(command) and called.endswith(program) and called != program
    return (program, called) if is_same else (command, instead)
