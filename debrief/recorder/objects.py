"""Git objects: read through one process, written beside the repository, trees put together."""

from __future__ import annotations

import hashlib
import re
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import git_command, git_environment

FOLDER, SUBMODULE, LINK = "40000", "160000", "120000"
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGEST_BYTES = {"sha1": 20, "sha256": 32}


class Entry(Struct, frozen=True):
    """What a tree holds under a name."""

    mode: str
    """As git writes it, without leading zeros: ``100644``, ``40000`` for a folder."""
    id: str


class Objects:
    """The objects of a repository, asked of one ``git cat-file`` that lives as long as this.

    Written objects go to ``store``, which the process was told to look into; never to the
    repository. Use it as a context manager.

    Args:
        folder: where git runs.
        environment: what tells git which objects there are.
        object_format: ``sha1`` or ``sha256``.
        store: the folder that takes new objects.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], object_format: str, store: Path
    ) -> None:
        self._format = object_format
        self._store = store
        self._trees: dict[str, dict[bytes, Entry]] = {}
        self._process = subprocess.Popen(
            git_command("cat-file", "--batch-command"),
            cwd=folder,
            env=git_environment(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Objects:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._process.wait()

    def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree.

        Raises:
            InputError: there is no such commit.
        """
        if not _ID.fullmatch(commit):
            raise InputError(repr(commit), "is no commit's id")
        return self._ask("info", f"{commit}^{{tree}}")[0]

    def size(self, object_id: str) -> int:
        """Return an object's bytes without reading it.

        Raises:
            InputError: it is not there.
        """
        return self._ask("info", object_id)[2]

    def read(self, object_id: str) -> bytes:
        """Return an object's content.

        Raises:
            InputError: it is not there.
        """
        _, _, size = self._ask("contents", object_id)
        return self._take(size + 1)[:-1]

    def blob_id(self, content: bytes) -> str:
        """Return the id of a file's content."""
        return self._digest("blob", content)

    def write_blob(self, content: bytes) -> str:
        """Store a file's content; return its id."""
        return self._write("blob", content)

    def tree(self, tree_id: str) -> dict[bytes, Entry]:
        """Return what a tree holds, by name."""
        if tree_id not in self._trees:
            self._trees[tree_id] = dict(_entries(self.read(tree_id), _DIGEST_BYTES[self._format]))
        return self._trees[tree_id]

    def find(self, tree_id: str, path: bytes) -> Entry | None:
        """Return what a tree holds under a path; None when there is nothing."""
        entry: Entry | None = Entry(FOLDER, tree_id)
        for name in path.split(b"/"):
            if entry is None or entry.mode != FOLDER:
                return None
            entry = self.tree(entry.id).get(name)
        return entry

    def replace(
        self,
        tree_id: str | None,
        changes: Mapping[bytes, Entry | None],
        *,
        stored: bool = False,
    ) -> str:
        """Return the id of a tree with other entries under some paths.

        Args:
            tree_id: the tree to start from; None for the empty one.
            changes: by path, the new entry, or None where it goes.
            stored: git has to be able to read the new tree.

        Raises:
            InputError: a path would be both a file and a folder.
        """
        return self._replace(tree_id, changes, stored) or self._tree_id({}, stored)

    def _replace(
        self, tree_id: str | None, changes: Mapping[bytes, Entry | None], stored: bool
    ) -> str | None:
        entries = dict(self.tree(tree_id)) if tree_id else {}
        below: dict[bytes, dict[bytes, Entry | None]] = {}
        for path, entry in changes.items():
            name, nested, rest = path.partition(b"/")
            if nested:
                below.setdefault(name, {})[rest] = entry
            elif entry is not None:
                entries[name] = entry
            elif name in entries and entries[name].mode != FOLDER:
                del entries[name]
        for name, nested_changes in below.items():
            known = entries.get(name)
            folder = known.id if known and known.mode == FOLDER else None
            found = self._replace(folder, nested_changes, stored)
            if found is None:
                if folder:
                    del entries[name]
            elif known and not folder:
                shown = name.decode("utf-8", "backslashreplace")
                raise InputError(shown, "would be both a file and a folder")
            else:
                entries[name] = Entry(FOLDER, found)
        return self._tree_id(entries, stored) if entries else None

    def _tree_id(self, entries: dict[bytes, Entry], stored: bool) -> str:
        content = b"".join(
            b"%s %s\0%s" % (entry.mode.encode(), name, bytes.fromhex(entry.id))
            for name, entry in sorted(entries.items(), key=_git_order)
        )
        tree_id = self._write("tree", content) if stored else self._digest("tree", content)
        self._trees[tree_id] = entries
        return tree_id

    def _write(self, kind: str, content: bytes) -> str:
        object_id = self._digest(kind, content)
        path = self._store / object_id[:2] / object_id[2:]
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(zlib.compress(_header(kind, content) + content, 1))
        return object_id

    def _digest(self, kind: str, content: bytes) -> str:
        digest = hashlib.new(self._format, _header(kind, content), usedforsecurity=False)
        digest.update(content)
        return digest.hexdigest()

    def _ask(self, command: str, object_id: str) -> tuple[str, str, int]:
        stdin, stdout = self._streams()
        try:
            stdin.write(f"{command} {object_id}\n".encode())
            stdin.flush()
            answer = stdout.readline().split()
        except OSError:
            answer = []
        if len(answer) != 3:
            raise InputError(
                object_id,
                "is not in the repository",
                "Fetch it first, where the repository is a partial clone.",
            )
        return answer[0].decode(), answer[1].decode(), int(answer[2])

    def _take(self, size: int) -> bytes:
        data = self._streams()[1].read(size)
        if len(data) != size:
            raise InputError("git cat-file", "ended early")
        return data

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise InputError("git cat-file", "has no pipes")
        return stdin, stdout


def _header(kind: str, content: bytes) -> bytes:
    return f"{kind} {len(content)}\0".encode()


def _entries(data: bytes, digest_bytes: int) -> Iterator[tuple[bytes, Entry]]:
    place = 0
    while place < len(data):
        space, end = data.index(b" ", place), data.index(b"\0", place)
        mode, name = data[place:space].decode(), data[space + 1 : end]
        place = end + 1 + digest_bytes
        yield name, Entry(mode, data[end + 1 : place].hex())


def _git_order(item: tuple[bytes, Entry]) -> bytes:
    """Return what git sorts by: a folder's name as though a slash stood behind it."""
    name, entry = item
    return name + b"/" if entry.mode == FOLDER else name
