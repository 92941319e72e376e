"""Two trees compared: what differs, and which of it a record can hold."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import git
from debrief.recorder.encoding import MAX_STRING
from debrief.recorder.ignoring import Ignoring
from debrief.recorder.objects import LINK, SUBMODULE, Entry, Objects
from debrief.recorder.patches import (
    ABSENT,
    Difference,
    FilePair,
    Version,
    differences_from,
)
from debrief.recorder.paths import path_problem
from debrief.recorder.repository import QUIET
from debrief.recorder.scratch import Scratch

_MODES = frozenset({"100644", "100755", LINK})
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\n"
)
_LARGEST_POINTER = 1024
_ANOTHER = "a submodule, or a repository of its own"


class LeftOut(Struct, frozen=True):
    """A difference that a record does not hold."""

    path: bytes
    shown: str
    reason: str


class Comparison(Struct, frozen=True, kw_only=True):
    """All differences, each in one of three places: a pair, left out, or found to be none."""

    pairs: tuple[FilePair, ...]
    left_out: tuple[LeftOut, ...]
    ignored: Mapping[str, int]
    """Ignored places, each with how many changed files it has."""
    same: int
    """Paths whose ids differ though their bytes do not."""
    sections: Mapping[str, bytes]
    """Of the pairs, by path, what git's patch says."""
    tree: str
    """Id of the later side's whole tree."""
    unsure: tuple[str, ...]
    """Of those left out, the ones that may be unchanged: a filter that is not run decides."""


def compare(scratch: Scratch, objects: Objects, base: str, ignoring: Ignoring) -> Comparison:
    """Compare the tree ``base`` with the working tree, which ``scratch`` has added.

    Raises:
        InputError: git cannot compare them, or an object of them is not there.
    """
    pairs: list[FilePair] = []
    left_out: list[LeftOut] = []
    unsure: list[str] = []
    ignored: dict[str, int] = {}
    same = 0
    differences: list[Difference] = []
    everything = list(differences_from(scratch, base))
    sections: dict[str, bytes] = {}
    for item in everything:
        place = ignoring.place(
            item.path.decode("utf-8", "surrogateescape"), in_baseline=item.old_mode != ABSENT
        )
        if place:
            shown = os.fsencode(place).decode("utf-8", "backslashreplace")
            ignored[shown] = ignored.get(shown, 0) + 1
        else:
            differences.append(item)
    filters = _filters(scratch, differences)
    for item in differences:
        driver = filters.get(item.path, "")
        found = _judge(scratch, objects, item, driver)
        if isinstance(found, FilePair):
            pairs.append(found)
            sections[found.path] = item.section
        elif found is None:
            same += 1
        else:
            left_out.append(LeftOut(item.path, item.shown, found))
            if driver not in ("", "lfs") and len(item.modes) == 2:
                unsure.append(item.shown)
    left_out += _unseen(scratch, ignoring)
    left_out += _moved_submodules(scratch, objects, base, {item.path for item in left_out})
    return Comparison(
        pairs=tuple(pairs),
        left_out=tuple(left_out),
        ignored=ignored,
        same=same,
        sections=sections,
        tree=objects.replace(base, {item.path: _new_entry(item) for item in everything}),
        unsure=tuple(unsure),
    )


def _new_entry(item: Difference) -> Entry | None:
    return None if item.new_mode == ABSENT else Entry(item.new_mode, item.new_id)


def _filters(scratch: Scratch, differences: Sequence[Difference]) -> dict[bytes, str]:
    """Return the filter of each path that has one which a program would have to run for."""
    if not differences:
        return {}
    paths = b"\0".join(item.path for item in differences)
    fields = scratch.git("check-attr", "-z", "--stdin", "filter", data=paths).split(b"\0")
    known = scratch.repository.filters | {"lfs"}
    values = zip(fields[::3], fields[2::3], strict=False)
    return {
        path: name for path, value in values if (name := value.decode("utf-8", "replace")) in known
    }


def _judge(
    scratch: Scratch, objects: Objects, item: Difference, driver: str
) -> FilePair | str | None:
    """Return the pair, or why there is none, or None where nothing differs."""
    if SUBMODULE in item.modes:
        return _ANOTHER
    if problem := path_problem(item.path.decode("utf-8", "surrogateescape")):
        return problem
    stays = len(item.modes) == 2 and LINK not in item.modes
    if driver:
        if driver == "lfs" and stays and _is_stored(scratch, objects, item):
            return None
        return "kept in Git LFS" if driver == "lfs" else f"its filter {driver!r} is not run"
    sides: list[Version | None] = []
    for mode, object_id in ((item.old_mode, item.old_id), (item.new_mode, item.new_id)):
        side = _version(objects, mode, object_id)
        if isinstance(side, str):
            return side
        sides.append(side)
    before, after = sides
    if stays and before and after and _working_bytes(scratch, item) == before.text.encode():
        after = Version(mode=after.mode, id=before.id, text=before.text)
    if before == after:
        return None
    return FilePair(path=item.path.decode(), before=before, after=after)


def _version(objects: Objects, mode: str, object_id: str) -> Version | str | None:
    """Return one side, None where there is none, or why it cannot be held."""
    if mode == ABSENT:
        return None
    mode = mode if mode in _MODES else "100644"
    if objects.size(object_id) > MAX_STRING:
        return f"over {MAX_STRING:,} bytes"
    content = objects.read(object_id)
    if b"\0" in content:
        return "binary: it has NUL bytes"
    try:
        return Version(mode=mode, id=object_id, text=content.decode())
    except UnicodeDecodeError:
        return "not UTF-8"


@contextmanager
def _working_file(scratch: Scratch, item: Difference) -> Iterator[BufferedReader | None]:
    """Open what the working tree has at a path; None when that is no plain file by now."""
    path = scratch.repository.top / os.fsdecode(item.path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield None
        return
    with open(handle, "rb") as file:  # noqa: PTH123
        yield file if stat.S_ISREG(os.fstat(handle).st_mode) else None


def _working_bytes(scratch: Scratch, item: Difference) -> bytes | None:
    """Return what is in the file, if a record could hold it."""
    with _working_file(scratch, item) as file:
        try:
            return file.read(MAX_STRING + 1) if file else None
        except OSError:
            return None


def _is_stored(scratch: Scratch, objects: Objects, item: Difference) -> bool:
    """Return whether the baseline's blob is what Git LFS keeps instead of the file."""
    if objects.size(item.old_id) > _LARGEST_POINTER:
        return False
    found = _POINTER.match(objects.read(item.old_id))
    if found is None:
        return False
    with _working_file(scratch, item) as file:
        try:
            digest = hashlib.file_digest(file, "sha256").hexdigest() if file else ""
        except OSError:
            return False
    return digest == found[1].decode()


def _unseen(scratch: Scratch, ignoring: Ignoring) -> Iterator[LeftOut]:
    """Yield what git could not add, and so could not compare."""
    for name in scratch.unreadable:
        path = name.rstrip(b"/")
        text = path.decode("utf-8", "surrogateescape")
        if not ignoring.place(text, in_baseline=False):
            reason = _ANOTHER if name.endswith(b"/") else "cannot be read"
            yield LeftOut(path, path.decode("utf-8", "backslashreplace"), reason)


def _moved_submodules(
    scratch: Scratch, objects: Objects, base: str, known: set[bytes]
) -> Iterator[LeftOut]:
    """Yield submodules whose own HEAD is not where the baseline has it."""
    for path in scratch.submodules():
        folder = scratch.repository.top / os.fsdecode(path)
        if path in known or not scratch.is_repository(path):
            continue
        environment = {**QUIET, "GIT_DIR": str(folder / ".git")}
        try:
            head = git(folder, "rev-parse", "--verify", "HEAD", environment=environment).decode()
        except InputError:
            continue
        entry = objects.find(base, path)
        if entry is None or entry.id != head.strip():
            shown = path.decode("utf-8", "backslashreplace")
            yield LeftOut(path, shown, _ANOTHER)
