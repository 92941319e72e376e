"""Advice: recurring friction with its line, to read or as a patch of CLAUDE.md or AGENTS.md.

A patch adds only what the file does not have, and mends a line that says the same already. Below
each line stands a comment, by which the line is known again when its words are changed by hand.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from io import StringIO

from debrief.errors import without_controls
from debrief.friction.prompt_items import items_of
from debrief.friction.schema import RecurringFriction
from debrief.markdown import counted
from debrief.sessions.model import Usage

HEADING = "## Recurring friction"
MOST = 10
"""Lines of a repository: a file that agents read in every session must not grow long."""
_NO_NEWLINE = "\\ No newline at end of file\n"


def evidence_shown(friction: RecurringFriction) -> str:
    """Return how often it happened and what it cost, in a few words."""
    times, sessions = len(friction.events), len(friction.sessions)
    happened = f"{counted(times, 'time')} in {counted(sessions, 'session')}"
    took = cost_shown(friction.usage, friction.cost_usd, friction.minutes)
    return ", ".join([happened, *took, f"last on {friction.last_seen:%Y-%m-%d}"])


def cost_shown(usage: Usage, cost_usd: float | None, minutes: float | None) -> list[str]:
    """Return what is known of tokens without cache reads, money and minutes, a few words each."""
    parts = []
    if tokens := usage.input + usage.cache_write + usage.output:
        parts.append(f"{tokens:,} tokens")
    if cost_usd is not None:
        parts.append(f"${cost_usd:.2f}")
    if minutes is not None and round(minutes):
        parts.append(counted(round(minutes), "minute"))
    return parts


def patch_for(frictions: Sequence[RecurringFriction], path: str, text: str | None) -> str:
    """Return a unified diff that adds the lines which a file does not have yet; else empty.

    Args:
        frictions: of one repository; the first ten are taken.
        path: of the file, as the patch shall name it.
        text: what it holds; None when it does not exist.
    """
    held = text or ""
    new = [
        friction
        for friction in frictions[:MOST]
        if friction.line not in held and f"<!-- friction {friction.id}" not in held
    ]
    lines = held.splitlines(keepends=True)
    items = {item.text: item for item in items_of(held)}
    for friction in [row for row in new if row.existing in items]:
        item = items[friction.existing]
        rest = [""] * (item.end - item.first - 1)  # so that later items keep their places
        lines[item.first : item.end] = [_mended(lines[item.first], friction), *rest]
        new.remove(friction)
    mended = "".join(lines)
    made = _with_lines(mended, new) if new else mended
    names = "/dev/null" if text is None else f"a/{path}", f"b/{path}"
    before, after = StringIO(held).readlines(), StringIO(made).readlines()
    return "".join(
        line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"
        for line in difflib.unified_diff(before, after, *names)
    )


def _with_lines(text: str, new: Iterable[RecurringFriction]) -> str:
    items = "".join(f"- {row.line}\n  {_comment(row)}\n" for row in new)
    above, heading, below = text.partition(f"{HEADING}\n")
    if heading:
        return f"{above}{heading}\n{items}{below.removeprefix(chr(10))}"
    section = f"{HEADING}\n\n{items}"
    return f"{text.rstrip()}\n\n{section}" if text.strip() else section


def _mended(line: str, friction: RecurringFriction) -> str:
    """Return the proposed line with the indent and the list mark of the one that it replaces."""
    words = line.strip()
    mark = next((m for m in ("- ", "* ", "+ ") if words.startswith(m)), "")
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}{mark}{friction.line}\n{indent}{' ' * len(mark)}{_comment(friction)}\n"


def _comment(friction: RecurringFriction) -> str:
    text = " ".join(without_controls(evidence_shown(friction)).replace("--", "–").split())
    return f"<!-- friction {friction.id}: {text} -->"


_BREAK = "\\"
"""Ends a line in Markdown without ending its paragraph."""


def advice_markdown(frictions: Iterable[RecurringFriction]) -> str:
    """Return all frictions with what they cost and their lines, repository by repository."""
    parts: list[str] = []
    repository = ""
    for row in frictions:
        if row.repository != repository:
            parts += [""] * bool(parts) + [f"## {row.repository}\n"]
            repository = row.repository
        lines = [f"- {' '.join(row.what.split())} ({evidence_shown(row)})", f"→ {row.line}"]
        lines += [f"mends: {row.existing}"] * bool(row.existing)
        parts.append(f"{_BREAK}\n  ".join(lines))
    return without_controls("\n".join(parts))
