"""Advice: a repository's costliest troubles with their lines, to read or as a patch.

A patch adds only what the file does not have. Below each line stands a comment with the trouble and
its cost, by which the line is known again when its words were changed by hand.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import islice

from msgspec import Struct

from debrief.errors import without_controls
from debrief.troubles.model import KINDS_SHOWN, Trouble
from debrief.troubles.remedies import evidence_shown, line_for

HEADING = "## What goes wrong here again and again"
MOST = 10
"""Lines of a repository: a file that agents read in every session must not grow long."""
_NO_NEWLINE = "\\ No newline at end of file\n"


class AdvisedLine(Struct, frozen=True, kw_only=True):
    """A trouble, and the line that stops it."""

    trouble: Trouble
    line: str
    """For CLAUDE.md or AGENTS.md; empty where no remedy is known."""

    @property
    def evidence(self) -> str:
        """Return how often the trouble happened and what it cost."""
        return evidence_shown(self.trouble)


def advised_lines(troubles: Iterable[Trouble]) -> list[AdvisedLine]:
    """Return troubles with their lines, in the order given.

    One line that stops several troubles stands at the first of them.
    """
    found: list[AdvisedLine] = []
    given: set[tuple[str, str]] = set()
    for trouble in troubles:
        line = line_for(trouble) or ""
        if (trouble.repository, line) in given:
            line = ""
        elif line:
            given.add((trouble.repository, line))
        found.append(AdvisedLine(trouble=trouble, line=line))
    return found


def with_lines(advised: Iterable[AdvisedLine]) -> list[AdvisedLine]:
    """Return those of one repository that a file takes: the first ten that have a line."""
    return list(islice((line for line in advised if line.line), MOST))


def section(advised: Sequence[AdvisedLine]) -> str:
    """Return the section for a file that agents read; empty without lines."""
    lines = with_lines(advised)
    return f"{HEADING}\n\n{_items(lines)}" if lines else ""


def patch_for(advised: Sequence[AdvisedLine], path: str, text: str | None) -> str:
    """Return a unified diff that adds the lines which a file does not have yet; else empty.

    Args:
        advised: of one repository.
        path: of the file, as the patch shall name it.
        text: what it holds; None when it does not exist.
    """
    held = text or ""
    new = [
        with_line
        for with_line in with_lines(advised)
        if with_line.line not in held and f"<!-- trouble {with_line.trouble.id}" not in held
    ]
    if not new:
        return ""
    above, heading, below = held.partition(f"{HEADING}\n")
    if heading:
        made = f"{above}{heading}\n{_items(new)}{below.removeprefix(chr(10))}"
    else:
        made = f"{held.rstrip()}\n\n{section(new)}" if held.strip() else section(new)
    names = "/dev/null" if text is None else f"a/{path}", f"b/{path}"
    lines, more = StringIO(held).readlines(), StringIO(made).readlines()
    return "".join(
        line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
        for line in difflib.unified_diff(lines, more, *names)
    )


def _items(lines: Iterable[AdvisedLine]) -> str:
    return "".join(
        f"- {line.line}\n  <!-- trouble {line.trouble.id}: {_in_comment(line.evidence)} -->\n"
        for line in lines
    )


def _in_comment(text: str) -> str:
    return " ".join(without_controls(text).replace("--", "–").split())


def advice_markdown(advised: Iterable[AdvisedLine]) -> str:
    """Return all troubles with their cost and lines, repository by repository."""
    parts: list[str] = []
    by_repository: dict[str, list[AdvisedLine]] = {}
    for line in advised:
        by_repository.setdefault(line.trouble.repository, []).append(line)
    for repository, own in by_repository.items():
        parts.append(f"# {shown_repository(repository)}\n")
        for line in own:
            what = f"{KINDS_SHOWN[line.trouble.kind].capitalize()}: {line.trouble.subject}"
            parts.append(f"- {' '.join(what.split())} ({line.evidence})")
            parts += [f"  → {line.line}"] if line.line else []
        parts.append("")
    return without_controls("\n".join(parts))


def shown_repository(repository: str) -> str:
    """Return a repository's name; "no repository" where sessions name none."""
    return repository or "no repository"
