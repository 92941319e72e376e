"""What a judge is shown of a worktree, and a worktree's changes as a session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from msgspec import structs

from debrief.digests import digest_of
from debrief.judging.context import MAX_SIZE, bounded_plan, plan_room
from debrief.judging.fitting import SizeOf, fit, left_out_note, rank
from debrief.judging.model import WORKTREE, ChangeContext
from debrief.judging.worktree import PlanChanges
from debrief.sessions.model import Message, Session, ToolCall, Turn

_STATUS_LINES = 200
_COMMITS = 30

Redact = Callable[[str], str]


def context_from_worktree(
    changes: PlanChanges,
    redact: Redact,
    max_size: int = MAX_SIZE,
    size_of: SizeOf = len,
) -> ChangeContext:
    """Return the plan and the changes of a worktree, bounded and without secrets.

    First come ``git status`` and the diffs; what room they leave goes to the full contents of
    changed files, the most telling and then the shortest first, whole or not at all.

    Args:
        changes: of the worktree.
        redact: takes the secrets out of a text.
        max_size: of plan and changes together, in units of ``size_of``; notes come on top.
        size_of: measures a text; characters by default.
    """
    whole = fit(changes.files, sys.maxsize).text
    plan = bounded_plan(changes.plan, plan_room(max_size, size_of(whole)), size_of)
    room = max(max_size - size_of(plan), 0)
    fitted = fit(changes.files, room, size_of)
    room -= size_of(fitted.text)
    contents, missing = _contents(changes, room, size_of)
    parts = [
        _head(changes),
        left_out_note(changes.named, "Changed as well, and only named"),
        left_out_note(fitted.left_out),
        f"Diff since {changes.base[:12]}, new files included:\n\n{fitted.text}"
        if fitted.text
        else "",
        f"Contents of changed files, as they are now:\n\n{contents}" if contents else "",
        f"Not repeated in full, for size: {', '.join(missing)}\n" if missing else "",
    ]
    return ChangeContext(
        plan_content=redact(plan),
        git_changes=redact("\n".join(part for part in parts if part)),
        shrink=lambda size: context_from_worktree(changes, redact, size, size_of),
    )


def session_from_worktree(
    changes: PlanChanges, plan_id: str, moment: datetime, tool: str
) -> Session:
    """Return a worktree's changes as a session of one turn: its prompt the plan, its edits the
    diff. For evaluators that read edits rather than a diff.
    """
    calls = tuple(
        ToolCall(
            id=f"change-{number}",
            name="Write" if file.created else "Edit",
            input="{}",
            result="",
            status="ok",
            path=str(Path(changes.folder, file.path)),
            added=sum(_lines(hunk, "+") for hunk in file.hunks),
            removed=sum(_lines(hunk, "-") for hunk in file.hunks),
            patch="".join(file.hunks),
        )
        for number, file in enumerate(changes.files, 1)
    )
    said = f"{len(calls)} files are changed in the worktree."
    messages = (
        Message(id="changes", model="", text="", calls=calls),
        Message(id="end", model="", text=said),
    )
    session = Session(
        id=plan_id,
        source=WORKTREE,
        tool=tool,
        task=plan_id,
        cwd=changes.folder,
        started=moment,
        ended=moment,
        turns=(Turn(number=1, prompt=changes.plan, messages=messages),),
        lines_added=sum(call.added for call in calls),
        lines_removed=sum(call.removed for call in calls),
    )
    return structs.replace(session, digest=digest_of(changes))


def _head(changes: PlanChanges) -> str:
    status = changes.status.rstrip("\n").split("\n")
    more = len(status) - _STATUS_LINES
    lines = ["$ git status --short --branch", *status[:_STATUS_LINES]]
    if more > 0:
        lines.append(f"… and {more} more lines")
    if changes.commits:
        lines += ["", f"Committed since {changes.base[:12]}:", *changes.commits[:_COMMITS]]
        if len(changes.commits) > _COMMITS:
            lines.append(f"… and {len(changes.commits) - _COMMITS} more")
    if not changes.files and not changes.named:
        lines += ["", "Nothing is changed."]
    return "\n".join(lines) + "\n"


def _contents(changes: PlanChanges, room: int, size_of: SizeOf) -> tuple[str, list[str]]:
    order = sorted(changes.contents, key=lambda one: (-rank(one[0]), len(one[1]), one[0]))
    shown: dict[str, str] = {}
    for path, text in order:
        part = f"=== {path} ===\n{text.rstrip()}\n"
        if size_of(part) <= room:
            shown[path] = part
            room -= size_of(part)
    missing = sorted(path for path, _ in changes.contents if path not in shown)
    return "\n".join(shown[path] for path in sorted(shown)), missing


def _lines(hunk: str, sign: str) -> int:
    return sum(line.startswith(sign) for line in hunk.split("\n"))
