"""What a judge is shown of a session that has no worktree any more.

The plan is the first human prompt, and the changes are put together from the edits that the
transcript holds. Files changed through a shell are invisible there, and the judge can read so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from debrief.judging.fitting import (
    FileDiff,
    Fitted,
    SizeOf,
    fit,
    left_out_note,
    split_hunks,
)
from debrief.judging.model import ChangeContext
from debrief.sessions.model import Session, ToolCall
from debrief.sessions.readers.patches import edits_of_call

MAX_SIZE = 240_000
_PLAN_SHARE = 4


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
    prompt = _first_prompt(session)
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
    for call in _edits(session):
        for edit in edits_of_call(call):
            path = _relative(edit.path, session.cwd)
            hunks.setdefault(path, []).extend(split_hunks(edit.patch))
    return [
        FileDiff(path=path, hunks=tuple(found), created=found[0].startswith("@@ -0,0 "))
        for path, found in hunks.items()
        if found
    ]


def _edits(session: Session) -> Iterator[ToolCall]:
    groups = [turn.messages for turn in session.turns]
    groups += [subagent.messages for subagent in session.subagents]
    for messages in groups:
        for message in messages:
            for call in message.calls:
                if call.path and call.patch and call.status == "ok":
                    yield call


def _relative(path: str, folder: str) -> str:
    folder = folder.rstrip("/") + "/"
    return path[len(folder) :] if len(folder) > 1 and path.startswith(folder) else path


def _first_prompt(session: Session) -> str:
    for turn in session.turns:
        if turn.number > 0 and turn.prompt.strip():
            return turn.prompt
    return "(The session holds no human prompt.)"


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
