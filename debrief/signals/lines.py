"""Count the lines that a session changed for good, and what they took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from debrief.sessions.generated import is_generated
from debrief.sessions.model import Session, calls_of
from debrief.sessions.readers.patches import edits_of_call


def token_efficiency(session: Session) -> float | None:
    """Return lasting lines per 1,000 input and output tokens; None without tokens.

    Tokens written to or read from a cache are left out: they would swamp the rest.
    """
    tokens = session.usage.input + session.usage.output
    return 1_000 * lasting_lines(session) / tokens if tokens else None


def user_turn_efficiency(session: Session) -> float | None:
    """Return lasting lines per human turn; None without a human turn."""
    return lasting_lines(session) / session.prompt_count if session.prompt_count else None


def lasting_lines(session: Session, is_kept: Callable[[str], bool] | None = None) -> int:
    """Return how many lines the session added or removed for good.

    A line that it added to a file and removed again, or removed and put back, does not count; nor
    do lock files and generated ones. A session whose edits are not told one by one counts as its
    source says.

    Args:
        session: whole.
        is_kept: says of a path whether its file is changed in the end; all are by default.
    """
    edits = [edit for call in calls_of(session) for edit in edits_of_call(call)]
    if not edits:
        return session.growth
    lines: Counter[tuple[str, str]] = Counter()
    untold = 0
    for edit in edits:
        if is_generated(edit.path) or not (is_kept is None or is_kept(edit.path)):
            continue
        if not edit.patch:
            untold += edit.added + edit.removed
        for line in edit.patch.split("\n"):
            if line[:1] in ("+", "-"):
                lines[edit.path, line[1:]] += 1 if line[0] == "+" else -1
    return untold + sum(map(abs, lines.values()))
