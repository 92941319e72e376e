"""What changed from one command to the next, so that a record tells it in its order.

When a command is started, the changed files are kept, as the git recipe sees them, in an object
store beside the session: the repository may forget them. At the end each such state is put on
the commit that the record starts from; a step is what differs between two states that follow each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, structs

from debrief.recorder.comparison import ChangedFile, IgnoreRules, Version, compare
from debrief.recorder.encoding import MAX_STRING
from debrief.recorder.scratch import EXECUTABLE, LINK, PLAIN, Entry, Scratch
from debrief.recorder.session_facts import KeptFile, KeptState

Versions = Mapping[str, Version | None]
"""Files by path; None where there is none."""


class StepChanges(Struct, frozen=True, kw_only=True):
    """The changes between two commands, and the tree that they make of the one before."""

    files: tuple[ChangedFile, ...]
    """By path; none where nothing changed."""
    tree: str


def keep_state(scratch: Scratch, base: str, ignore: Sequence[str], objects: Path) -> KeptState:
    """Keep the changed files as they are now.

    Args:
        scratch: the open repository.
        base: the commit that they differ from.
        ignore: a person's own patterns of what to leave out.
        objects: the object store that takes their contents.

    Raises:
        InputError: git cannot read the working tree.
    """
    scratch.add_all()
    files = compare(scratch, base, IgnoreRules(ignore)).files
    texts = [file.after.text for file in files if file.after]
    ids = iter(scratch.keep_blobs(texts, objects) if texts else ())
    return KeptState(
        base,
        tuple(
            KeptFile(
                file.path,
                Entry(file.before.mode, file.before.id) if file.before else None,
                Entry(file.after.mode, next(ids)) if file.after else None,
            )
            for file in files
        ),
    )


class FileStates(Struct, frozen=True, kw_only=True):
    """The changed files at the baseline, when each command was started, and at the end."""

    states: tuple[Versions, ...]
    """Of the same paths each, by path; the first is the baseline, the last the end."""
    delayed: tuple[str, ...]
    """Paths of which earlier states are not told: others changed them too."""

    def without(self, paths: Iterable[str]) -> FileStates:
        """Return it without some paths."""
        left_out = frozenset(paths)
        states = tuple(
            {path: version for path, version in state.items() if path not in left_out}
            for state in self.states
        )
        return structs.replace(self, states=states)

    def mapped(self, change: Callable[[Version], Version]) -> FileStates:
        """Return it with other versions in the place of its own."""
        changed = {version: change(version) for version in self._versions()}
        states = tuple(
            {path: changed[version] if version else None for path, version in state.items()}
            for state in self.states
        )
        return structs.replace(self, states=states)

    def _versions(self) -> Iterator[Version]:
        """Yield each version once, by state and path."""
        every = (version for state in self.states for version in state.values() if version)
        yield from dict.fromkeys(every)

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
        scratch: the open repository, which reads the store of the kept states too.
        base: the commit.
        files: all that differs from it in the end.
        kept: a state for each command; None where there is none: the one before stands for it.
        is_left_out: whether a path is left out, and it is in the baseline.

    Raises:
        InputError: git cannot read what was kept.
    """
    at_base: dict[str, Version | None] = {file.path: file.before for file in files}
    paths = {file.path for state in kept if state for file in state.files} - at_base.keys()
    entries = scratch.entries(base) if any(kept) else {}
    bases = {path: _plain(entries.get(path.encode())) for path in paths}
    needed = {entry.id for entry in bases.values() if entry}
    needed |= {file.after.id for state in kept if state for file in state.files if file.after}
    blobs = scratch.read_blobs(needed, MAX_STRING) if needed else {}

    def version(entry: Entry | None) -> Version | None:
        content = blobs[entry.id] if entry else None
        if entry is None or content is None:
            return None
        return Version(mode=entry.mode, id=entry.id, text=content.decode("utf-8", "replace"))

    delayed: set[str] = set()
    states: list[dict[str, Version | None]] = []
    for state in kept:
        if state is None:
            states.append(dict(states[-1]) if states else {})
            continue
        changed: dict[str, Version | None] = {}
        for file in state.files:
            known = at_base.get(file.path)
            is_known = file.path in at_base
            here = (
                (Entry(known.mode, known.id) if known else None) if is_known else bases[file.path]
            )
            if is_left_out(file.path, here is not None):
                continue
            if here != file.before:
                delayed.add(file.path)
            else:
                changed[file.path] = version(file.after)
        states.append(changed)
    touched = {path for state in states for path in state}
    at_base |= {path: version(bases[path]) for path in touched - at_base.keys()}
    at_end = at_base | {file.path: file.after for file in files}
    order = sorted(at_base, key=str.encode)
    whole = [at_base, *({**at_base, **state} for state in states), at_end]
    return FileStates(
        states=tuple({path: state[path] for path in order} for state in whole),
        delayed=tuple(sorted(delayed)),
    )


def _plain(entry: Entry | None) -> Entry | None:
    if entry is None or entry.mode in (EXECUTABLE, LINK):
        return entry
    return Entry(PLAIN, entry.id)
