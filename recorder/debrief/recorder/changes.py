"""What changed since a commit, exactly and command by command, without a trace in the repository.

Everything is in blob space: what git would commit, not what the checkout's line ends are. What a
record cannot hold is left at the baseline and named with its reason, so that nothing is missed
silently: files that git was told not to look at (``assume-unchanged``, ``skip-worktree``) are among
that. Files that git ignores are not seen.

When a command is started, the changed files are kept beside the session: the repository may
forget them. At the end each such state is put on the commit that the record starts
from; a step is what differs between two states that follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from msgspec import Struct, structs

from debrief.errors import InputError, shown
from debrief.git.scratch import Entry, FileState, Scratch, entry_of
from debrief.recorder.comparison import (
    ChangedFile,
    Comparison,
    IgnoreRules,
    SkippedChange,
    compare,
)
from debrief.recorder.contracts import IGNORED, MANY_FILES, MAX_STRING, Skipped
from debrief.recorder.local_session import KeptFile, KeptState

Files = Mapping[str, FileState | None]
"""Files by path; None where there is none."""


class StepChanges(Struct, frozen=True, kw_only=True):
    """The changes between two commands, and the tree that they make of the one before."""

    files: tuple[ChangedFile, ...]
    """By path; none where nothing changed."""
    tree: str


def keep_state(
    scratch: Scratch, base: str, ignore: Sequence[str]
) -> tuple[KeptState, dict[str, str]]:
    """Return the changed files as they are now, and their texts by the ids of their blobs.

    Args:
        scratch: the open repository.
        base: the commit that they differ from.
        ignore: a person's own patterns of what to leave out.

    Raises:
        InputError: git cannot read the working tree.
    """
    scratch.add_all()
    files = compare(scratch, base, IgnoreRules(ignore)).files
    kept = [KeptFile(file.path, entry_of(file.before), entry_of(file.after)) for file in files]
    return KeptState(base, tuple(kept)), {
        file.after.id: file.after.text for file in files if file.after
    }


class FileStates(Struct, frozen=True, kw_only=True):
    """The changed files at the baseline, when each command was started, and at the end."""

    states: tuple[Files, ...]
    """Of the same paths each, by path; the first is the baseline, the last the end."""
    delayed: tuple[str, ...]
    """Paths of which earlier states are not told: others changed them too."""

    def without(self, paths: Iterable[str]) -> FileStates:
        """Return it without some paths."""
        left_out = frozenset(paths)
        states = tuple(
            {path: file for path, file in state.items() if path not in left_out}
            for state in self.states
        )
        return structs.replace(self, states=states)

    def mapped(self, change: Callable[[FileState], FileState]) -> FileStates:
        """Return it with other files in the place of its own."""
        once = cache(change)
        states = tuple(
            {path: once(file) if file else None for path, file in state.items()}
            for state in self.states
        )
        return structs.replace(self, states=states)

    def changed(self, before: int, after: int) -> list[ChangedFile]:
        """Return what differs between two of the states, by path and without hunks."""
        first, last = self.states[before], self.states[after]
        return [
            ChangedFile(path=path, before=first[path], after=last[path])
            for path in last
            if first[path] != last[path]
        ]


def file_states_of(
    scratch: Scratch,
    base: str,
    files: Sequence[ChangedFile],
    kept: Sequence[KeptState | None],
    is_left_out: Callable[[str, bool], bool],
) -> FileStates:
    """Put the kept states on the commit that a record starts from.

    A file that others changed since is as that commit has it until the end: what was done to it
    before cannot be separated from theirs.

    Args:
        scratch: the open repository, which the kept texts were put into.
        base: the commit.
        files: all that differs from it in the end.
        kept: a state for each command; None where there is none: the one before stands for it.
        is_left_out: whether a path is left out, and it is in the baseline.

    Raises:
        InputError: git cannot read what was kept.
    """
    at_base: dict[str, FileState | None] = {file.path: file.before for file in files}
    paths = {file.path for state in kept if state for file in state.files} - at_base.keys()
    entries = scratch.entries(base) if any(kept) else {}
    others = {path: entries.get(path.encode()) for path in paths}
    bases = {path: entry_of(file) for path, file in at_base.items()} | others
    needed = {entry.id for entry in others.values() if entry}
    needed |= {file.after.id for state in kept if state for file in state.files if file.after}
    blobs = scratch.read_blobs(needed, MAX_STRING) if needed else {}

    def read(entry: Entry | None) -> FileState | None:
        content = blobs[entry.id] if entry else None
        if entry is None or content is None:
            return None
        return FileState(entry.mode, content.decode("utf-8", "replace"), entry.id)

    delayed: set[str] = set()
    states: list[dict[str, FileState | None]] = []
    for state in kept:
        if state is None:
            states.append(dict(states[-1]) if states else {})
            continue
        changed: dict[str, FileState | None] = {}
        for file in state.files:
            here = bases[file.path]
            if is_left_out(file.path, here is not None):
                continue
            if here != file.before:
                delayed.add(file.path)
            else:
                changed[file.path] = read(file.after)
        states.append(changed)
    touched = {path for state in states for path in state}
    at_base |= {path: read(bases[path]) for path in touched - at_base.keys()}
    at_end = at_base | {file.path: file.after for file in files}
    order = sorted(at_base, key=str.encode)
    whole = [at_base, *({**at_base, **state} for state in states), at_end]
    return FileStates(
        states=tuple({path: state[path] for path in order} for state in whole),
        delayed=tuple(sorted(delayed)),
    )


_MOST_NAMED = 5
_ONLY_SECRETS = "only secrets in it changed"
_NOT_SEARCHED = "a stretch of it would take too long to search for secrets"
Mask = Callable[[str], str | None]
"""Replaces the secrets of a text; None where it cannot be searched as a whole."""
EXACT = (
    *("-p", "--text", "--diff-filter=M", "--no-renames", "--no-ext-diff", "--no-textconv"),
    *("--no-color", "--full-index", "-U3", "--inter-hunk-context=0", "--diff-algorithm=myers"),
)
"""Options of a command of git, to print hunks that depend on nothing but the two texts."""
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_INDEX = re.compile(rb"^index ([0-9a-f]+)\.\.([0-9a-f]+)", re.MULTILINE)


class WorktreeChanges(Struct, frozen=True, kw_only=True):
    """All that changed between a commit and a working tree."""

    base: str
    """The commit."""
    final_tree: str
    """Id of the tree that ``files`` make of the baseline's: what is skipped is as it was."""
    files: tuple[ChangedFile, ...]
    """By path."""
    steps: tuple[StepChanges, ...]
    """One for each command, which is what changed before it, and one for what came after them."""
    skipped: tuple[Skipped, ...]
    """By path; a folder that is ignored is one of them."""
    warnings: tuple[str, ...]


def find_changes(
    scratch: Scratch,
    base: str,
    ignore: Sequence[str] = (),
    kept: Sequence[KeptState | None] = (),
    mask: Mask = str,
) -> WorktreeChanges:
    """Return what changed between a commit and the working tree, step by step.

    Args:
        scratch: the open repository.
        base: id of a commit; HEAD may have moved on since.
        ignore: a person's own patterns of what to leave out, in the syntax of gitignore.
        kept: the changed files when each command was started.
        mask: is applied to both sides of every change; a file with one that it cannot mask is
            skipped.

    Raises:
        InputError: no such commit, or git cannot read the working tree.
    """
    scratch.add_all()
    rules = IgnoreRules(ignore)
    comparison = compare(scratch, base, rules)
    skipped = {item.path for item in comparison.skipped}

    def is_left_out(path: str, in_baseline: bool) -> bool:
        name = path.encode()
        is_skipped = not skipped.isdisjoint([name, *_above(name)])
        return is_skipped or bool(rules.match(name, in_baseline=in_baseline))

    states = file_states_of(scratch, base, comparison.files, kept, is_left_out)
    created = [path for path, file in states.states[0].items() if file is None]
    conflicting = _conflicting(created, comparison.skipped)
    states = states.without(item.shown for item in conflicting)
    masked, not_searched = _without_secrets(scratch, states, mask)
    only_secrets = [
        file.path
        for file in states.without(not_searched).changed(0, -1)
        if all(state[file.path] == masked.states[0][file.path] for state in masked.states)
    ]
    masked = masked.without(only_secrets)
    steps, files = _steps(scratch, base, masked)
    too_long = {
        file.path
        for file in (*files, *(file for step in steps for file in step.files))
        if len(file.hunks) > MAX_STRING
    }
    if too_long:
        steps, files = _steps(scratch, base, masked.without(too_long))
    left_out = left_out_of(comparison)
    left_out += [(item.shown, item.reason) for item in conflicting]
    left_out += [(path, f"its change is over {MAX_STRING:,} characters") for path in too_long]
    left_out += [(path, _ONLY_SECRETS) for path in only_secrets]
    left_out += [(path, _NOT_SEARCHED) for path in not_searched]
    return WorktreeChanges(
        base=base,
        final_tree=steps[-1].tree,
        files=tuple(files),
        steps=tuple(steps),
        skipped=tuple(Skipped(path=path, reason=reason) for path, reason in sorted(left_out)),
        warnings=warnings_of(files, len(left_out), states.delayed),
    )


def left_out_of(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the paths that no record holds, each with the reason; ignored folders as one."""
    left_out = [(item.shown, item.reason) for item in comparison.skipped]
    for path, count in comparison.ignored.items():
        left_out.append((path, IGNORED if count == 1 else f"{IGNORED} ({count:,} changed files)"))
    return sorted(left_out)


def _without_secrets(
    scratch: Scratch, states: FileStates, mask: Mask
) -> tuple[FileStates, list[str]]:
    """Return the states without secrets, and the paths that they are without, as ``mask`` cannot
    search a text of them."""
    not_searched: set[FileState] = set()

    def masked(file: FileState) -> FileState:
        text = mask(file.text)
        if text is None:
            not_searched.add(file)
            return file
        if text == file.text:
            return file
        return FileState(file.mode, text, scratch.write_blobs([text])[0])

    clean = states.mapped(masked)
    paths = [
        path
        for path in states.states[0]
        if any(state[path] in not_searched for state in states.states)
    ]
    return clean.without(paths), paths


def _steps(
    scratch: Scratch, base: str, states: FileStates
) -> tuple[list[StepChanges], list[ChangedFile]]:
    """Return the steps, and what they come to, with hunks."""
    there = {path: file for path, file in states.states[0].items() if file}
    start = tree = scratch.tree_with(base, entries_of(there))
    steps = []
    for number in range(1, len(states.states)):
        files = states.changed(number - 1, number)
        if files:
            after = {file.path: file.after for file in files}
            before, tree = tree, scratch.tree_with(tree, entries_of(after))
            files = with_hunks(scratch, files, before, tree)
        steps.append(StepChanges(files=tuple(files), tree=tree))
    changed = states.changed(0, -1)
    return steps, with_hunks(scratch, changed, start, tree)


def entries_of(files: Files) -> dict[bytes, Entry | None]:
    """Return what some files put into a tree, or take out of it."""
    return {path.encode(): entry_of(file) for path, file in files.items()}


def with_hunks(
    scratch: Scratch, files: Sequence[ChangedFile], before: str, after: str
) -> list[ChangedFile]:
    """Return the files with their hunks. Git takes every file for text, whatever attributes say.

    Args:
        scratch: the open repository.
        files: by path.
        before: the tree or commit of their one side.
        after: the tree of the other, in which nothing but ``files`` differs.

    Raises:
        InputError: git fails, or its differences are not those of ``files``.
    """
    changed = [file for file in files if file.is_update and _id(file.before) != _id(file.after)]
    found = list(hunks_in(scratch.git("diff-tree", "-r", *EXACT, before, after)))
    if [ids for ids, _ in found] != [(_id(file.before), _id(file.after)) for file in changed]:
        raise InputError(str(scratch.repository.top), "git shows other changes than it listed")
    hunks = {file.path: text for file, (_, text) in zip(changed, found, strict=True)}
    return [structs.replace(file, hunks=hunks.get(file.path, "")) for file in files]


def hunks_in(patch: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the hunks of each file that a patch updates, and the ids of its blobs before and
    after."""
    starts = [match.start() for match in _SECTION.finditer(patch)]
    for begin, end in pairwise([*starts, len(patch)]):
        section = patch[begin:end]
        ids, first = _INDEX.search(section), section.find(b"\n@@ -") + 1
        # A file of which only the mode changed has a section without hunks.
        if ids and first:
            yield tuple(group.decode() for group in ids.groups()), section[first:].decode()


def _id(file: FileState | None) -> str:
    return file.id if file else ""


def _conflicting(created: Sequence[str], skipped: Sequence[SkippedChange]) -> list[SkippedChange]:
    """Return the created files that cannot be beside what is skipped, and so stays as it was."""
    kept = {item.path for item in skipped if item.in_baseline}
    folders = {above for path in kept for above in _above(path)}
    paths = (path.encode() for path in created)
    reason = "it would be in the place of another one that is skipped"
    return [
        SkippedChange(path, reason)
        for path in paths
        if path in folders or kept.intersection(_above(path))
    ]


def _above(path: bytes) -> list[bytes]:
    names = path.split(b"/")
    return [b"/".join(names[:count]) for count in range(1, len(names))]


def warnings_of(
    files: Sequence[ChangedFile], skipped: int, delayed: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return what there is to be warned of.

    Args:
        files: that changed.
        skipped: how many paths are left out.
        delayed: paths of files that others changed too.
    """
    warnings = []
    if len(files) > MANY_FILES:
        warnings.append(f"{len(files):,} files changed: over {MANY_FILES} are hard to learn from")
    # A file that got the lines with which git marks what it could not merge.
    conflicts = (
        file for file in files if _has_markers(file.after) and not _has_markers(file.before)
    )
    if marked := sorted(shown(file.path) for file in conflicts):
        warnings.append(f"conflict markers are left in {_first_of(marked)}")
    if delayed:
        warnings.append(
            f"others changed {_first_of([shown(path) for path in delayed])} too: what was done "
            "there before is in one patch with what was done after"
        )
    if skipped:
        paths = "1 changed path is" if skipped == 1 else f"{skipped:,} changed paths are"
        warnings.append(f"{paths} not in the record; see skipped")
    return tuple(warnings)


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _has_markers(file: FileState | None) -> bool:
    text, start = f"\n{file.text if file else ''}", 0
    for marker in ("<<<<<<< ", "=======", ">>>>>>> "):
        start = text.find(f"\n{marker}", start) + 1
        if not start:
            return False
    return True
