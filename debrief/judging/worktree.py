"""The change in a plan's worktree, for a judge: read with git, without modifying the worktree.

Git looks at it through a git folder of our own: who worked there may have named programs in the
repository's configuration that run when somebody looks.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct, structs

from debrief.errors import InputError
from debrief.git import Scratch, find_commit, git, scratch_of
from debrief.git.scratch import LFS, lfs_digest
from debrief.judging.context import MAX_SIZE
from debrief.judging.fitting import (
    FileDiff,
    bounded_plan,
    count_lines,
    fit,
    left_out_note,
    rank,
    split_hunks,
)
from debrief.judging.model import WORKTREE, ChangeContext
from debrief.keys import digest_of
from debrief.markdown import front_matter
from debrief.sessions.actions import described
from debrief.sessions.generated import is_generated
from debrief.sessions.model import Message, Session, ToolCall, Turn
from debrief.snapshots.capture import PLAN

_STATUS_LINES = 200
_COMMITS = 30
_MOST_LINES = 20_000
_LARGEST = 1_000_000
_PATHS_A_CALL = 500
_GIT_SHA = re.compile(r"^git_sha:[ \t]*[\"']?([0-9a-fA-F]{7,64})[\"']?[ \t]*\r?$", re.MULTILINE)
_UNDER_WAY = {
    "rebase-merge": ("a rebase", "git rebase --continue or --abort"),
    "rebase-apply": ("a rebase", "git rebase --continue or --abort"),
    "MERGE_HEAD": ("a merge", "git merge --continue or --abort"),
    "CHERRY_PICK_HEAD": ("a cherry-pick", "git cherry-pick --continue or --abort"),
    "REVERT_HEAD": ("a revert", "git revert --continue or --abort"),
    "BISECT_LOG": ("a bisection", "git bisect reset"),
}


class PlanChanges(Struct, frozen=True, kw_only=True):
    """Everything that a plan's work changed, committed or not."""

    folder: str
    plan: str
    base: str
    """The commit that the changes are counted from."""
    status: str
    """As ``git status --short --branch`` says it."""
    commits: tuple[str, ...] = ()
    """One line each, the latest first: what was committed since ``base``."""
    files: tuple[FileDiff, ...] = ()
    """Changed, deleted and new text files, by path."""
    contents: tuple[tuple[str, str], ...] = ()
    """Path and text of the changed files that were there before; ``files`` has new ones whole."""
    named: tuple[str, ...] = ()
    """A sentence for each changed file that is not shown: binary, generated, far too large."""


def plan_base(plan: str) -> str:
    """Return the ``git_sha`` of a plan's front matter; empty when it has none."""
    found = _GIT_SHA.search(front_matter(plan)[0])
    return found[1] if found else ""


def read_worktree(folder: Path, plan: str) -> PlanChanges:
    """Read what was changed in a worktree since its plan was made.

    The changes are those of ``git diff HEAD`` with untracked files. Where the plan names the
    commit that it was made on (``git_sha``) and work was committed since, they count from there.
    Renames are a deletion and a creation.

    Args:
        folder: the worktree's top.
        plan: the plan's text.

    Raises:
        InputError: it is no worktree of its own, has no commit, git refuses, or it is in the
            middle of a rebase, a merge or the like, or has conflicts: what is there then is
            nobody's finished change.
    """
    with scratch_of(folder) as scratch:
        scratch.take_index()
        _check(folder, scratch)
        scratch.take_names()
        return _read_changes(scratch, folder, plan)


def _read_changes(scratch: Scratch, folder: Path, plan: str) -> PlanChanges:
    base = _base(folder, plan_base(plan))
    filtered = _filtered(scratch)
    options = ("--short", "--branch", "--untracked-files=all", "--ignore-submodules=dirty")
    status = scratch.git("status", *options)
    commits = _text(scratch.git("log", "--oneline", f"{base}..HEAD")).splitlines()
    tracked = {**dict(_tracked(scratch, base)), **filtered}
    shown = [path for path, reason in tracked.items() if not reason]
    named = [f"{path}: {reason}" for path, reason in tracked.items() if reason]
    files = list(_changes(scratch, base, shown))
    created = {file.path for file in files if file.created}
    for path in _untracked(scratch):
        change = _new_file(folder, path)
        if isinstance(change, FileDiff):
            files.append(change)
        else:
            named.append(f"{path}: new, {change}")
    contents = _contents(folder, [path for path in shown if _shown(path) not in created])
    return PlanChanges(
        folder=str(folder),
        plan=plan,
        base=base,
        status=_text(status),
        commits=tuple(commits),
        files=tuple(sorted(files, key=lambda file: file.path)),
        contents=tuple(contents),
        named=tuple(sorted(_shown(sentence) for sentence in named)),
    )


def _check(folder: Path, scratch: Scratch) -> None:
    repository = scratch.repository
    if repository.top.resolve() != folder.resolve():
        raise InputError(
            str(folder), "is a folder and no git worktree", "Remove it and run debrief code."
        )
    for mark, (what, way_out) in _UNDER_WAY.items():
        if (repository.git_dir / mark).exists():
            raise InputError(
                str(folder), f"is in the middle of {what}", f"End it first: {way_out}."
            )
    unmerged = scratch.git("ls-files", "--unmerged", "-z")
    if unmerged:
        path_of_first = _text(unmerged.split(b"\0")[0].partition(b"\t")[2])
        raise InputError(
            str(folder), f"has conflicts, the first in {path_of_first}", "Resolve them first."
        )
    if find_commit(folder, "HEAD") is None:
        raise InputError(str(folder), "has no commit yet", "Commit something first.")


def _base(folder: Path, named: str) -> str:
    """Return the commit that a plan names if HEAD comes after it, else HEAD."""
    with suppress(InputError):
        if named and (commit := find_commit(folder, named)):
            git(folder, "merge-base", "--is-ancestor", commit, "HEAD")
            return commit
    return _text(git(folder, "rev-parse", "HEAD")).strip()


def _filtered(scratch: Scratch) -> dict[str, str]:
    """Return the changed files that have a filter, each with the reason why it is only named.

    A file of Git LFS that is what its pointer says counts as unchanged from here on.
    """
    options = ("--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
    fields = scratch.git("diff", *options).split(b"\0")[:-1]
    stored = (head.split(b" ")[2].decode() for head in fields[::2])
    ids = dict(zip(fields[1::2], stored, strict=True))
    filters = scratch.filters_of(list(ids))
    pointers = {path: ids[path] for path, name in filters.items() if name == LFS}
    blobs = scratch.read_blobs(pointers.values(), _LARGEST) if pointers else {}
    kept = {path: lfs_digest(blobs[id_] or b"") for path, id_ in pointers.items()}
    same = {path for path, digest in kept.items() if digest and scratch.digest_of(path) == digest}
    paths = b"\0".join(same)
    scratch.git("update-index", "--assume-unchanged", "-z", "--stdin", data=paths)
    return {
        os.fsdecode(path): "kept in Git LFS" if name == LFS else f"its filter {name!r} is not run"
        for path, name in filters.items()
        if path not in same
    }


def _tracked(scratch: Scratch, base: str) -> Iterator[tuple[str, str]]:
    """Yield the changed paths, each with the reason why it is only named, if there is one."""
    listing = scratch.git(
        "diff", "--numstat", "-z", "--no-renames", "--ignore-submodules=dirty",
        base, "--", ".", f":(exclude,top,literal){PLAN}",
    )  # fmt: skip
    for entry in filter(None, listing.split(b"\0")):
        added, removed, path = os.fsdecode(entry).split("\t", 2)
        lines = 0 if added == "-" else int(added) + int(removed)
        size = _size(scratch.repository.top / path)
        reasons = {
            "binary": added == "-",
            f"far too large ({lines} changed lines)": lines > _MOST_LINES,
            "generated": is_generated(path),
            f"far too large ({size} bytes)": size > _LARGEST,
        }
        yield path, next((reason for reason, holds in reasons.items() if holds), "")


def _changes(scratch: Scratch, base: str, paths: Sequence[str]) -> Iterator[FileDiff]:
    for start in range(0, len(paths), _PATHS_A_CALL):
        some = sorted(paths[start : start + _PATHS_A_CALL], key=os.fsencode)
        pieces = _diff(scratch, base, some)
        if len(pieces) != len(some):
            pieces = ["".join(_diff(scratch, base, [path])) for path in some]
        for path, text in zip(some, pieces, strict=True):
            if hunks := split_hunks(text):
                created = text.startswith("new file mode")
                yield FileDiff(path=_shown(path), hunks=hunks, created=created)


def _diff(scratch: Scratch, base: str, paths: Sequence[str]) -> list[str]:
    """Return the diff of each path, its first line taken off; two of a file that became a link."""
    places = (f":(top,literal){path}" for path in paths)
    options = ("--no-renames", "--ignore-submodules=dirty")
    patch = scratch.git("diff", *options, base, "--", *places)
    return [_text(piece) for piece in re.split(rb"^diff --git .*\n", patch, flags=re.MULTILINE)[1:]]


def _untracked(scratch: Scratch) -> list[str]:
    listing = scratch.git("ls-files", "--others", "--exclude-standard", "-z")
    paths = (os.fsdecode(path) for path in listing.split(b"\0") if path)
    return [path for path in paths if path != PLAN and not path.startswith(".debrief/")]


def _new_file(folder: Path, path: str) -> FileDiff | str:
    """Return a new file as one hunk, or why it is only named."""
    if is_generated(path):
        return "generated"
    place = folder / path
    if place.is_symlink():
        return f"a link to {place.readlink()}"
    if not place.is_file():
        return "no file"
    if _size(place) > _LARGEST:
        return f"far too large ({_size(place)} bytes)"
    text = _read(place)
    if not text:
        return "binary" if text is None else "empty"
    end = "" if text.endswith("\n") else "\\ No newline at end of file\n"
    lines = text.removesuffix("\n").split("\n")
    body = "".join(f"+{line}\n" for line in lines) + end
    hunk = f"@@ -0,0 +1,{len(lines)} @@\n{body}"
    return FileDiff(path=_shown(path), hunks=(hunk,), created=True)


def _contents(folder: Path, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    for path in paths:
        place = folder / path
        if place.is_file() and not place.is_symlink() and (text := _read(place)):
            yield _shown(path), text


def _read(path: Path) -> str | None:
    """Return a file's text; None for one that is none, or cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return None if b"\0" in data[:8_000] else data.decode("utf-8", "replace")


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _shown(path: str) -> str:
    """Return a path for people and prompts, whatever bytes are in it."""
    return os.fsencode(path).decode("utf-8", "replace")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def context_from_worktree(
    changes: PlanChanges,
    redact: Callable[[str], str],
    max_size: int = MAX_SIZE,
) -> ChangeContext:
    """Return the plan and the changes of a worktree, bounded and without secrets.

    First come ``git status`` and the diffs; what room they leave goes to the full contents of
    changed files, the most telling and then the shortest first, whole or not at all.

    Args:
        changes: of the worktree.
        redact: takes the secrets out of a text.
        max_size: characters of plan and changes together; notes come on top.
    """
    plan = bounded_plan(changes.plan, changes.files, max_size)
    room = max(max_size - len(plan), 0)
    diff, left_out = fit(changes.files, room)
    contents, missing = _changed_files(changes, room - len(diff))
    parts = [
        _status(changes),
        left_out_note(changes.named, "Changed as well, and only named"),
        left_out_note(left_out),
        f"Diff since {changes.base[:12]}, new files included:\n\n{diff}" if diff else "",
        f"Contents of changed files, as they are now:\n\n{contents}" if contents else "",
        f"Not repeated in full, for size: {', '.join(missing)}\n" if missing else "",
    ]
    return ChangeContext(
        plan_content=redact(plan),
        git_changes=redact("\n".join(part for part in parts if part)),
        shrink=lambda size: context_from_worktree(changes, redact, size),
    )


def session_from_worktree(
    changes: PlanChanges, plan_id: str, moment: datetime, tool: str
) -> Session:
    """Return a worktree's changes as a session of one turn: its prompt the plan, its edits the
    diff. For evaluators that read edits rather than a diff.
    """
    calls = tuple(
        described(
            ToolCall(
                id=f"change-{number}",
                name="Write" if file.created else "Edit",
                input="{}",
                result="",
                status="ok",
                path=str(Path(changes.folder, file.path)),
                added=count_lines(file, "+"),
                removed=count_lines(file, "-"),
                patch="".join(file.hunks),
            )
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


def _changed_files(changes: PlanChanges, room: int) -> tuple[str, list[str]]:
    order = sorted(
        changes.contents, key=lambda content: (-rank(content[0]), len(content[1]), content[0])
    )
    shown: dict[str, str] = {}
    for path, text in order:
        part = f"=== {path} ===\n{text.rstrip()}\n"
        if len(part) <= room:
            shown[path] = part
            room -= len(part)
    missing = sorted(path for path, _ in changes.contents if path not in shown)
    return "\n".join(shown[path] for path in sorted(shown)), missing
