"""Scripts: the plain text in which the sample sessions and their code bases are written.

A script is YAML front matter between ``---`` lines, then steps. A line ``==> verb argument``
opens a step, and what follows up to the next such line is its body, taken as it stands: code,
diffs and command output need no quoting. ``==> +verb`` puts a call into the same model message
as the one before it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from debrief.errors import InputError

_HEAD = re.compile(r"==> (\+?)([a-z]+)(?: (.*))?\Z")
_OUTCOMES = {"refuse", "fails"}

TOOLS = {"read", "grep", "run", "tests", "edit", "write", "todo", "ask", "task"}
"""Verbs that are calls of the model; the others are words, or acts of the person."""


class Step(Struct, frozen=True, kw_only=True):
    """One thing that somebody says or does."""

    verb: str
    argument: str = ""
    body: str = ""
    joined: bool = False
    """Whether the call shares its message with the call before it."""
    outcome: str = ""
    """``refuse``, ``fails`` or ``interrupt`` where the call did not go through."""
    reason: str = ""
    """What the person or the tool said to that."""
    line: int = 0


class Script(Struct, frozen=True, kw_only=True):
    """A parsed script."""

    name: str
    head: dict[str, Any]
    steps: tuple[Step, ...]


def parse_script(name: str, text: str) -> Script:
    """Parse a script; raise InputError, naming the line, when a step cannot be understood."""
    head, start = _front_matter(name, text)
    steps: list[Step] = []
    lines = text.split("\n")
    index = start
    while index < len(lines):
        opened = _HEAD.match(lines[index])
        if not opened:
            if lines[index].strip():
                raise InputError(f"{name}:{index + 1}", f"no step is open: {lines[index]!r}")
            index += 1
            continue
        end = index + 1
        while end < len(lines) and not _HEAD.match(lines[end]):
            end += 1
        body = "\n".join(lines[index + 1 : end]).rstrip("\n")
        joined, verb, argument = opened.groups()
        _add(
            steps,
            Step(
                verb=verb,
                argument=(argument or "").strip(),
                body=body,
                joined=bool(joined),
                line=index + 1,
            ),
            name,
        )
        index = end
    return Script(name=name, head=head, steps=tuple(steps))


def read_script(path: Path) -> Script:
    """Read the script in a file; its name is the file's."""
    return parse_script(path.stem, path.read_text(encoding="utf-8"))


def _front_matter(name: str, text: str) -> tuple[dict[str, Any], int]:
    if not text.startswith("---\n"):
        return {}, 0
    block, closed, _ = text[4:].partition("\n---\n")
    if not closed:
        raise InputError(name, "the front matter is not closed", "Add a line of three dashes.")
    head = yaml.safe_load(block)
    if not isinstance(head, dict):
        raise InputError(name, "the front matter is not a mapping")
    return head, block.count("\n") + 3


def _add(steps: list[Step], step: Step, name: str) -> None:
    """Append a step, or fold it into the call before it when it tells how that call ended."""
    last = steps[-1] if steps else None
    ends_call = step.verb in _OUTCOMES or step.verb == "interrupt"
    if not ends_call:
        steps.append(step)
        return
    if last is not None and last.verb in TOOLS and not last.outcome:
        steps[-1] = _ended(last, step)
    elif step.verb == "interrupt":
        steps.append(step)
    else:
        raise InputError(f"{name}:{step.line}", f"{step.verb!r} follows no call")


def _ended(call: Step, end: Step) -> Step:
    return Step(
        verb=call.verb,
        argument=call.argument,
        body=call.body,
        joined=call.joined,
        outcome=end.verb,
        reason=end.body,
        line=call.line,
    )
