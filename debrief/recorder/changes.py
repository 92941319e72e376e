"""What changed since a commit, exactly, without a trace in the repository.

Everything is told in blob space: what git would commit, not what the checkout's line ends are. What
a record cannot hold is left at the baseline and named with its reason, so that nothing is missed
silently. Files that the person told git to take for unchanged (``assume-unchanged``), and files
that git ignores, are not seen, as git does not see them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from debrief.recorder.comparison import LeftOut, compare
from debrief.recorder.contracts import MANY_FILES
from debrief.recorder.encoding import MAX_STRING
from debrief.recorder.ignoring import Ignoring
from debrief.recorder.objects import Entry, Objects
from debrief.recorder.patches import FilePair, hunks_in, hunks_of
from debrief.recorder.paths import shown
from debrief.recorder.repository import find_head
from debrief.recorder.scratch import Scratch, scratch_of

_MOST_NAMED = 5


class ChangedFile(Struct, frozen=True, kw_only=True):
    """A changed file, its two sides, and the hunks between them."""

    pair: FilePair
    hunks: str = ""
    """From the first ``@@``, exact; empty unless the text of a file that stays was changed."""

    @property
    def path(self) -> str:
        """The path in the repository."""
        return self.pair.path


class Changes(Struct, frozen=True, kw_only=True):
    """All that changed between a commit and a working tree."""

    base: str
    """The commit."""
    tree: str
    """Id of the whole working tree's tree, as ``snapshot_tree`` gives it."""
    final_tree: str
    """Id of the tree that ``files`` make of the baseline's: what is left out is as it was."""
    files: tuple[ChangedFile, ...]
    """Sorted by path."""
    skipped: tuple[tuple[str, str], ...]
    """Path and reason of what is left out, sorted; a folder that is ignored is one of them."""
    warnings: tuple[str, ...]


def snapshot_tree(root: Path, scratch: Path | None = None) -> str:
    """Return the id of the tree that the working tree is: two are the same if their files are.

    Args:
        root: anywhere in the working tree.
        scratch: the folder in which temporary files are made; the machine's usual one by default.

    Raises:
        InputError: no repository, or git cannot read the working tree.
    """
    with scratch_of(root, scratch) as opened:
        opened.add_all()
        return opened.write_tree()


def is_clean(root: Path, ignore: Sequence[str] = (), scratch: Path | None = None) -> list[str]:
    """Return the paths that are not as in the last commit, new files included; none if clean.

    A file whose bytes are the commit's is clean, whatever its line ends should be; so is one of
    which only a program that is not run could tell.

    Args:
        root: anywhere in the working tree.
        ignore: a person's own patterns of what no record tells.
        scratch: as of ``snapshot_tree``.

    Raises:
        InputError: no repository, or git cannot read the working tree.
    """
    head = find_head(root)
    with scratch_of(root, scratch) as opened, opened.objects() as objects:
        base = objects.tree_of(head) if head else objects.replace(None, {})
        opened.add_all()
        found = compare(opened, objects, base, Ignoring(ignore))
    unsure = set(found.unsure)
    differing = [pair.path for pair in found.pairs]
    return sorted(differing + [o.shown for o in found.left_out if o.shown not in unsure])


def changes_between(
    root: Path, base: str, ignore: Sequence[str] = (), scratch: Path | None = None
) -> Changes:
    """Return what changed between the commit ``base`` and the working tree.

    Args:
        root: anywhere in the working tree.
        base: id of a commit; HEAD may have moved on since.
        ignore: a person's own patterns of what to leave out, in the syntax of gitignore.
        scratch: as of ``snapshot_tree``.

    Raises:
        InputError: no repository, no such commit, or git cannot read the working tree.
    """
    with scratch_of(root, scratch) as opened, opened.objects() as objects:
        return find_changes(opened, objects, base, ignore)


def find_changes(
    scratch: Scratch, objects: Objects, base: str, ignore: Sequence[str] = ()
) -> Changes:
    """Return what ``changes_between`` does, of a repository that is open already."""
    base_tree = objects.tree_of(base)
    scratch.add_all()
    found = compare(scratch, objects, base_tree, Ignoring(ignore))
    pairs, left_out = _without_conflicts(objects, base_tree, found.pairs, found.left_out)
    hunks = _hunks(scratch, base_tree, pairs, found.sections)
    long = {path for path, text in hunks.items() if len(text) > MAX_STRING}
    reason = f"its change is over {MAX_STRING:,} characters"
    left_out += tuple(LeftOut(path.encode(), path, reason) for path in sorted(long))
    pairs = tuple(pair for pair in pairs if pair.path not in long)
    skipped = [(item.shown, item.reason) for item in left_out]
    skipped += [(place, _ignored_reason(count)) for place, count in found.ignored.items()]
    return Changes(
        base=base,
        tree=found.tree,
        final_tree=objects.replace(base_tree, entries_of(pairs)),
        files=tuple(
            ChangedFile(pair=pair, hunks=hunks.get(pair.path, ""))
            for pair in sorted(pairs, key=lambda pair: pair.path.encode())
        ),
        skipped=tuple(sorted(skipped)),
        warnings=_warnings(pairs, len(skipped)),
    )


def entries_of(pairs: Sequence[FilePair]) -> dict[bytes, Entry | None]:
    """Return what the pairs' later sides put into a tree."""
    return {
        pair.path.encode(): Entry(pair.after.mode, pair.after.id) if pair.after else None
        for pair in pairs
    }


def _hunks(
    scratch: Scratch, base_tree: str, pairs: Sequence[FilePair], sections: Mapping[str, bytes]
) -> dict[str, str]:
    """Return the hunks of the updated files, asking again for those that attributes hide."""
    told = {pair.path: hunks_in(pair, sections[pair.path]) for pair in pairs if pair.updated}
    hidden = [pair for pair in pairs if pair.updated and told[pair.path] is None]
    shown = hunks_of(scratch, hidden, "diff-index", "--cached", base_tree)
    return {path: shown[path] if text is None else text for path, text in told.items()}


def _without_conflicts(
    objects: Objects,
    base_tree: str,
    pairs: Sequence[FilePair],
    left_out: Sequence[LeftOut],
) -> tuple[tuple[FilePair, ...], tuple[LeftOut, ...]]:
    """Leave out created files that cannot stand beside what is left out, and so stays."""
    kept = {item.path for item in left_out if objects.find(base_tree, item.path)}
    folders = {above for path in kept for above in _above(path)}
    fitting: list[FilePair] = []
    conflicting: list[LeftOut] = []
    for pair in pairs:
        path = pair.path.encode()
        if pair.before is None and (path in folders or kept.intersection(_above(path))):
            reason = "it would be in the place of another one that is skipped"
            conflicting.append(LeftOut(path, pair.path, reason))
        else:
            fitting.append(pair)
    return tuple(fitting), (*left_out, *conflicting)


def _is_unresolved(pair: FilePair) -> bool:
    """Return whether a file got the lines with which git marks what it could not merge."""
    if pair.after is None or not _is_marked(pair.after.text):
        return False
    return pair.before is None or not _is_marked(pair.before.text)


def _is_marked(text: str) -> bool:
    if "<<<<<<< " not in text:
        return False
    expected = iter(("<<<<<<< ", "=======", ">>>>>>> "))
    marker = next(expected)
    for line in text.split("\n"):
        if line.startswith(marker) and not (marker := next(expected, "")):
            return True
    return False


def _above(path: bytes) -> list[bytes]:
    names = path.split(b"/")
    return [b"/".join(names[:count]) for count in range(1, len(names))]


def _ignored_reason(count: int) -> str:
    return "ignored" if count == 1 else f"ignored ({count:,} changed files)"


def _warnings(pairs: Sequence[FilePair], skipped: int) -> tuple[str, ...]:
    warnings = []
    if len(pairs) > MANY_FILES:
        warnings.append(f"{len(pairs):,} files changed: over {MANY_FILES} are hard to learn from")
    if marked := sorted(shown(pair.path) for pair in pairs if _is_unresolved(pair)):
        more = f" and {len(marked) - _MOST_NAMED:,} more" if len(marked) > _MOST_NAMED else ""
        warnings.append(f"conflict markers are left in {', '.join(marked[:_MOST_NAMED])}{more}")
    if skipped:
        paths = "1 changed path is" if skipped == 1 else f"{skipped:,} changed paths are"
        warnings.append(f"{paths} not in the record; see skipped")
    return tuple(warnings)
