"""Check a line for CLAUDE.md or AGENTS.md: it names what was seen, and nothing else.

The evidence is text of strangers, and a model's line is made of it. So every line is checked, the
rule's own too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from debrief.models.answers import refuse
from debrief.models.fencing import injection_signs, make_visible
from debrief.sessions.model import ToolCall
from debrief.signals.risky_commands import hazards_of

LONGEST = 240
_SPAN = re.compile(r"`([^`]+)`|“([^”]+)”|\"([^\"]+)\"")
_NAME = re.compile(r"(?<!\w)(?:--?[a-z][\w-]+|[\w@-]*(?:[./_][\w-]+)+|[a-z]+[A-Z]\w+)")
"""Options, paths, and names of code."""
_OF_A_MACHINE = re.compile(
    r"(?:^|[\s='\":])(?:/(?:home|Users|root|private|tmp|var|mnt)/|~/|[A-Z]:\\)"
)


def read_line(line: str, evidence: Iterable[str]) -> str:
    """Return a line as it may be proposed.

    Args:
        line: as a model or the rule words it.
        evidence: texts that hold all that it may name.

    Raises:
        AnswerError: it is empty, has several lines or over 240 characters, hides characters,
            addresses a judge, quotes nothing, names what the evidence does not hold or a folder of
            somebody's machine, or would destroy something.
    """
    line = line.strip().removeprefix("- ").strip()
    if not line or len(line) > LONGEST or not line.isprintable() or make_visible(line) != line:
        refuse(f"the line has no text, several lines, or over {LONGEST} characters")
    if injection_signs([line]):
        refuse("the line holds words that are meant for a judge")
    held = [_plain(text) for text in evidence]
    spans = [next(filter(None, found)) for found in _SPAN.findall(line)]
    if not spans:
        refuse("the line quotes no command, file or words of the evidence")
    for name in (*spans, *_NAME.findall(_SPAN.sub(" ", line))):
        if not any(stands_in(_plain(name), text) for text in held):
            refuse(f"the line names {name}, which the evidence does not hold")
        if hazards_of(ToolCall(id="", name="", input="", action="run", command=name)):
            refuse(f"{name} would destroy something, or hides what it does")
        if _OF_A_MACHINE.search(name):
            refuse(f"{name} is a folder of one machine")
    return line


def stands_in(name: str, text: str) -> bool:
    """Return whether a command, a file or a name stands in a text, and not within a longer one.

    >>> stands_in("npm test", "Run `pnpm test`.")
    False
    """
    found = re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", " ".join(text.split()))
    return found is not None


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".…")
