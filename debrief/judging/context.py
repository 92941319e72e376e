"""What a judge is shown: of a session that has no worktree any more, or of a worktree.

Of a session, the plan is the first human prompt, and the changes are put together from the edits
that the transcript holds. Files changed through a shell are invisible there, and the judge can
read so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from msgspec import structs

from debrief.digests import digest_of
from debrief.judging.fitting import (
    FileDiff,
    Fitted,
    SizeOf,
    fit,
    left_out_note,
    rank,
    split_hunks,
)
from debrief.judging.model import WORKTREE, ChangeContext
from debrief.judging.worktree import PlanChanges
from debrief.sessions.model import Message, Session, Subagent, ToolCall, Turn
from debrief.sessions.readers.patches import edits_of_call

MAX_SIZE = 240_000
_PLAN_SHARE = 4
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
    contents, missing = _changed_files(changes, room, size_of)
    parts = [
        _status(changes),
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
            added=_count(file, "+"),
            removed=_count(file, "-"),
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


def _status(changes: PlanChanges) -> str:
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


def _changed_files(changes: PlanChanges, room: int, size_of: SizeOf) -> tuple[str, list[str]]:
    order = sorted(changes.contents, key=lambda one: (-rank(one[0]), len(one[1]), one[0]))
    shown: dict[str, str] = {}
    for path, text in order:
        part = f"=== {path} ===\n{text.rstrip()}\n"
        if size_of(part) <= room:
            shown[path] = part
            room -= size_of(part)
    missing = sorted(path for path, _ in changes.contents if path not in shown)
    return "\n".join(shown[path] for path in sorted(shown)), missing


def context_from_session(
    session: Session, max_size: int = MAX_SIZE, size_of: SizeOf = len
) -> ChangeContext:
    """Return the plan and the changes of a session, both bounded.

    Args:
        session: with or without edits.
        max_size: of plan and changes together, in units of ``size_of``; notes come on top. A
            plan gets a quarter, or what the changes leave of it; a longer one loses its middle.
        size_of: measures a text; characters by default.
    """
    files = changes_of(session)
    prompts = (turn.prompt for turn in session.turns if turn.number > 0 and turn.prompt.strip())
    prompt = next(prompts, "(The session holds no human prompt.)")
    whole = size_of(fit(files, sys.maxsize).text)
    plan = bounded_plan(prompt, plan_room(max_size, whole), size_of)
    fitted = fit(files, max(max_size - size_of(plan), 0), size_of)
    return ChangeContext(
        plan_content=plan,
        git_changes=_said(files, fitted),
        shrink=lambda size: context_from_session(session, size, size_of),
    )


def changes_of(session: Session) -> list[FileDiff]:
    """Return the changes of each file, in the order in which files were first touched.

    Hunks of one file follow each other as the edits did, so a later one may change what an
    earlier one wrote. Failed and rejected edits are not among them.
    """
    hunks: dict[str, list[str]] = {}
    folder = session.cwd.rstrip("/")
    for call in _edits(session):
        for edit in edits_of_call(call):
            path = edit.path.removeprefix(f"{folder}/") if folder else edit.path
            hunks.setdefault(path, []).extend(split_hunks(edit.patch))
    return [
        FileDiff(path=path, hunks=tuple(found), created=found[0].startswith("@@ -0,0 "))
        for path, found in hunks.items()
        if found
    ]


def _edits(session: Session) -> Iterator[ToolCall]:
    parts: list[Turn | Subagent] = [*session.turns, *session.subagents]
    for part in parts:
        calls = (call for message in part.messages for call in message.calls)
        yield from (call for call in calls if call.path and call.patch and call.status == "ok")


def plan_room(max_size: int, changes: int) -> int:
    """Return the room that a plan gets: a quarter, or all that changes of that size leave."""
    return max(max_size // _PLAN_SHARE, max_size - changes)


def bounded_plan(plan: str, room: int, size_of: SizeOf = len) -> str:
    """Return a plan in so much room; beginning and end stay: the aim and the last conditions."""
    if size_of(plan) <= room:
        return plan
    keep = len(plan)
    while keep > 0:
        keep = min(keep - 1, keep * room // max(size_of(plan[:keep]), 1))
        head, tail = plan[: keep - keep // 3], plan[len(plan) - keep // 3 :]
        gone = len(plan) - len(head) - len(tail)
        bounded = f"{head}\n[… {gone} characters of the plan left out for size …]\n{tail}"
        if size_of(bounded) <= room:
            return bounded
    return f"[… {len(plan)} characters of the plan left out for size …]"


def _said(files: list[FileDiff], fitted: Fitted) -> str:
    if not files:
        return (
            "The session's own editing tools changed no file.\n"
            "Changes made through a shell are invisible in a transcript.\n"
        )
    added = sum(_count(file, "+") for file in files)
    removed = sum(_count(file, "-") for file in files)
    noun = "file" if len(files) == 1 else "files"
    lines = [
        f"{len(files)} {noun} changed, {added} lines added, {removed} removed.",
        "Reconstructed from the session's own edits, file by file in the order in which they "
        "were made; a later hunk may change what an earlier one wrote.",
        "Changes made through a shell are invisible here.",
    ]
    note = left_out_note(fitted.left_out)
    return "\n".join([*lines, *([note] if note else []), fitted.text])


def _count(file: FileDiff, sign: str) -> int:
    return sum(line.startswith(sign) for hunk in file.hunks for line in hunk.split("\n"))
