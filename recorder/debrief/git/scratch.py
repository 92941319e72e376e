"""A git directory of our own over a person's working tree and objects.

Commands that look at a working tree write to an index and an object store. Both are copies here,
in a temporary folder, together with the few settings that shape blobs. The repository's own
configuration is not in force, so that neither its hooks, filters, monitors and drivers, nor those
of a submodule, nor any key that a later git may take a program from, can run.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from debrief.errors import InputError
from debrief.files import make_folder
from debrief.git.program import git, settings_in
from debrief.git.repository import Repository, open_clone, open_repository

PLAIN, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
_ATTEMPTS = 4
_OURS = {
    "core.bigFileThreshold": "2m",
    "core.fsync": "none",
    "core.safecrlf": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "advice.addEmbeddedRepo": "false",
    "diff.suppressBlankEmpty": "false",
    "index.sparse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_TIMEOUT = 300.0
LFS = "lfs"
"""The filter of files whose contents are kept apart, whether it is installed or not."""
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[^\n]*\n)*?oid sha256:([0-9a-f]{64})\n"
)


class Entry(NamedTuple):
    """What a tree holds under a path."""

    mode: str
    """``100644``, ``100755``, ``120000`` or ``160000``."""
    id: str

    @classmethod
    def of(cls, mode: str, id: str) -> Entry:
        """Return an entry as git writes it; plain files of old trees have modes such as 100664."""
        return cls(mode if mode in (EXECUTABLE, LINK, SUBMODULE) else PLAIN, id)


class FileState(Struct, frozen=True):
    """A file of a tree."""

    mode: str
    """``100644``, ``100755`` or ``120000``."""
    text: str
    """Of a symbolic link, its target."""
    id: str = ""
    """Of its blob, where that is known."""


def entry_of(state: FileState | None) -> Entry | None:
    """Return what a tree holds of a file; None where there is no file."""
    return Entry(state.mode, state.id) if state else None


def lfs_digest(blob: bytes) -> str:
    """Return the SHA-256 of the file that a blob of Git LFS points to; empty for any other."""
    pointer = _POINTER.match(blob)
    return pointer[1].decode() if pointer else ""


class Scratch:
    """Git, run over a repository without touching it. Made by ``scratch_of``."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.repository = repository
        self.git_dir = folder / "git"
        self.environment = _environment(repository, self.git_dir)
        self.unreadable: list[bytes] = []
        """What ``add_all`` had to leave out; other repositories end in a slash."""
        for name in ("refs", "info", "objects/info", "objects/pack"):
            (self.git_dir / name).mkdir(parents=True)
        (self.git_dir / "HEAD").write_text("ref: refs/heads/none\n")
        version, extension = "0", ""
        if repository.object_format != "sha1":
            version, extension = "1", f"[extensions]\n\tobjectFormat = {repository.object_format}\n"
        (self.git_dir / "config").write_text(
            f"[core]\n\trepositoryformatversion = {version}\n\tbare = false\n{extension}"
        )
        alternates = f"{_quoted(repository.common_dir / 'objects')}\n"
        (self.git_dir / "objects/info/alternates").write_bytes(os.fsencode(alternates))
        for home, name in (
            (repository.common_dir, "info/exclude"),
            (repository.common_dir, "info/attributes"),
            (repository.git_dir, "info/sparse-checkout"),
            (repository.common_dir, "shallow"),
        ):
            _copy(home / name, self.git_dir / name)

    def git(self, *arguments: str, data: bytes = b"", index: str = "index") -> bytes:
        """Run git over the working tree, in our own git folder; return its output."""
        return git(
            self.repository.top,
            *arguments,
            data=data,
            timeout=_TIMEOUT,
            environment={**self.environment, "GIT_INDEX_FILE": str(self.git_dir / index)},
        )

    def add_all(self) -> None:
        """Make our index that which ``git add -A`` would make of the working tree.

        A submodule, or a repository that lies in this one, is in it as it was: git is kept from
        looking into it, since that would put its own configuration in force.

        Raises:
            InputError: git cannot read the working tree.
        """
        for attempt in range(_ATTEMPTS):
            self.take_index()
            try:
                self.unreadable = self._find_unreadable() if attempt else []
                leave_out = [*filter(self.is_repository, self.submodules()), *self.unreadable]
                self._add([path.rstrip(b"/") for path in leave_out])
                return
            except InputError:
                if attempt == _ATTEMPTS - 1:
                    raise

    def add_ignored(self, paths: Iterable[str]) -> None:
        """Put files into our index that are there, ignored by git or not."""
        options = ("add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
        if data := "\0".join(paths).encode():
            self.git("--literal-pathspecs", *options, data=data)

    def take_names(self) -> None:
        """Give our git folder HEAD, branches, tags and notes as they are now.

        Without them a command can name commits by their ids alone.
        """
        top = self.repository.top
        refs = git(top, "for-each-ref", "--format=%(objectname) %(refname)")
        lines = git(top, "worktree", "list", "--porcelain").split(b"\n")
        heads = {line[5:] for line in lines if line.startswith(b"HEAD ") and line.strip(b"HEAD 0")}
        others = b"".join(b"%s refs/checked-out/%s\n" % (head, head) for head in sorted(heads))
        (self.git_dir / "packed-refs").write_bytes(refs + others)
        try:
            head = b"ref: " + git(top, "symbolic-ref", "--quiet", "HEAD")
        except InputError:  # no branch
            head = git(top, "rev-parse", "HEAD")
        (self.git_dir / "HEAD").write_bytes(head)

    def check_out(self, commit: str, folder: Path) -> None:
        """Write the files of a commit to an empty folder, which becomes a worktree of ours.

        As long as this object lasts, git in that folder knows the commit and those before it, and
        nothing of the repository's configuration. Files that a filter would make are as they are
        stored.

        Raises:
            InputError: the commit is not known, or a file cannot be written.
        """
        (self.git_dir / "HEAD").write_text(f"{commit}\n")
        (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(self.git_dir) + b"\n")
        self.read_tree(commit, self.git_dir / "index", folder)

    def read_tree(self, commit: str, index: Path, folder: Path) -> None:
        """Write the files of a commit to a folder, and what they are to an index of it."""
        places = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}
        git(
            folder, "read-tree", "--reset", "-u", commit,
            timeout=_TIMEOUT, environment={**self.environment, **places},
        )  # fmt: skip

    def write_tree(self) -> str:
        """Return the id of our index's tree."""
        return self.git("write-tree").decode().strip()

    def tree_with(self, base: str, changes: Mapping[bytes, Entry | None]) -> str:
        """Return the id of a tree with other entries under some paths.

        Args:
            base: the tree or commit to start from.
            changes: by path, the new entry, or None where it goes.
        """
        none = Entry("0", "0" * len(base))
        entries = ((path, entry or none) for path, entry in changes.items())
        lines = [f"{entry.mode} {entry.id}\t".encode() + path for path, entry in entries]
        self.git("read-tree", base, index="changed")
        self.git("update-index", "-z", "--index-info", data=b"\0".join(lines), index="changed")
        return self.git("write-tree", "--missing-ok", index="changed").decode().strip()

    def entries(self, tree: str) -> dict[bytes, Entry]:
        """Return the files of a tree or a commit, by path."""
        found = {}
        for line in self.git("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")[:-1]:
            head, _, path = line.partition(b"\t")
            mode, _, object_id = head.decode().split(" ")
            found[path] = Entry.of(mode, object_id)
        return found

    def missing_from(self, entries: Mapping[bytes, Entry]) -> list[bytes]:
        """Return the paths of files whose contents are not here, as in a partial clone."""
        files = {path: entry.id for path, entry in entries.items() if entry.mode != SUBMODULE}
        asked = "".join(f"{file}\n" for file in sorted(set(files.values()))).encode()
        lines = self.git("cat-file", "--batch-check", data=asked).decode().splitlines()
        gone = {line.partition(" ")[0] for line in lines if line.endswith(" missing")}
        return [path for path, id_ in files.items() if id_ in gone]

    def read_blobs(self, ids: Iterable[str], largest: int) -> dict[str, bytes | None]:
        """Return the contents of blobs by id; None for those over ``largest`` bytes.

        Raises:
            InputError: one of them is not in the repository.
        """
        blobs: dict[str, bytes | None] = {}
        requested = "".join(f"{each}\n" for each in sorted(set(ids))).encode()
        for line in self.git("cat-file", "--batch-check", data=requested).decode().splitlines():
            object_id, kind, *size = line.split(" ")
            if kind != "blob":
                move = "Fetch it first, where the repository is a partial clone."
                raise InputError(object_id, "is not in the repository", move)
            blobs[object_id] = b"" if int(size[0]) <= largest else None
        readable = [each for each, content in blobs.items() if content is not None]
        output = self.git("cat-file", "--batch", data="".join(f"{i}\n" for i in readable).encode())
        start = 0
        for object_id in readable:
            end = output.index(b"\n", start) + 1
            size_in_bytes = int(output[start:end].split(b" ")[2])
            blobs[object_id] = output[end : end + size_in_bytes]
            start = end + size_in_bytes + 1
        return blobs

    def write_blobs(self, texts: Sequence[str]) -> list[str]:
        """Store texts as blobs; return their ids."""
        arguments = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        paths = b""
        for number, text in enumerate(texts):
            path = self.git_dir / f"blob-{number}"
            path.write_bytes(text.encode())
            paths += os.fsencode(path) + b"\n"
        try:
            output = git(
                self.git_dir, *arguments, data=paths, timeout=_TIMEOUT, environment=self.environment
            )
        finally:
            for path in self.git_dir.glob("blob-*"):
                path.unlink()
        return output.decode().split()

    def filters_of(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """Return the filter of each path that has one which a program would have to run for."""
        if not paths:
            return {}
        given = b"\0".join(paths)
        fields = self.git("check-attr", "-z", "--stdin", "filter", data=given).split(b"\0")
        names = [name.decode("utf-8", "replace") for name in fields[2::3]]
        programs = self.repository.filters | {LFS}
        return {
            path: name for path, name in zip(fields[::3], names, strict=False) if name in programs
        }

    def digest_of(self, path: bytes) -> str:
        """Return the SHA-256 of a file of the working tree; empty when it is no plain file."""
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(self.repository.top / os.fsdecode(path), flags)
            with open(handle, "rb") as file:  # noqa: PTH123
                is_file = stat.S_ISREG(os.fstat(handle).st_mode)
                return hashlib.file_digest(file, "sha256").hexdigest() if is_file else ""
        except OSError:
            return ""

    def overlooked(self) -> dict[bytes, str]:
        """Return the tracked files that git was told not to look at and that differ from our
        index, each with the mark that says so: ``assume-unchanged`` or ``skip-worktree``.

        A file of the second kind that is not there is one that a sparse checkout leaves out.
        """
        marks, entries = {}, []
        for line in self.git("ls-files", "-v", "--stage", "-z").split(b"\0")[:-1]:
            tag, entry, path = line[:1], *line[2:].split(b"\t", 1)
            if tag in (b"S", b"s"):
                is_there = os.path.lexists(self.repository.top / os.fsdecode(path))
                mark = "skip-worktree" if is_there else ""
            else:
                mark = "assume-unchanged" if tag.islower() else ""
            if mark and not entry.startswith(b"160000"):
                marks[path] = mark
                entries.append(entry + b"\t" + path)
        if not marks:
            return {}
        # An entry that is put in anew has neither mark nor time: git compares the contents.
        _copy(self.git_dir / "index", self.git_dir / "all-seen")
        data = b"\0".join(entries)
        self.git("update-index", "-z", "--index-info", data=data, index="all-seen")
        options = ("--name-only", "-z", "--no-renames", "--ignore-submodules=all")
        changed = self.git("diff", *options, index="all-seen").split(b"\0")
        return {path: marks[path] for path in changed if path in marks}

    def submodules(self) -> list[bytes]:
        """Return the paths at which the index has another repository."""
        lines = self.git("ls-files", "--stage", "-z").split(b"\0")
        return [line.split(b"\t", 1)[1] for line in lines if line.startswith(b"160000 ")]

    def is_repository(self, path: bytes) -> bool:
        """Return whether a folder of the working tree is the top folder of another repository."""
        return (self.repository.top / os.fsdecode(path) / ".git").exists()

    def _add(self, leave_out: Sequence[bytes]) -> None:
        specs = [b":/", *(b":(exclude,top,literal)" + path for path in leave_out)]
        options = ("--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
        self.git("add", *options, data=b"\0".join(specs))

    def take_index(self) -> None:
        """Make our index a copy of the worktree's."""
        for old in (self.git_dir / "index.lock", *self.git_dir.glob("sharedindex.*")):
            old.unlink(missing_ok=True)
        _copy(self.repository.git_dir / "index", self.git_dir / "index")
        for shared in self.repository.git_dir.glob("sharedindex.*"):
            _copy(shared, self.git_dir / shared.name)

    def _find_unreadable(self) -> list[bytes]:
        """Return what git cannot add: files that may not be read, repositories without a commit."""
        names = self.git("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
        names += self.git("diff-files", "-z", "--name-only", "--ignore-submodules=all").split(b"\0")
        return sorted({name for name in names if name and self._is_refused(name)})

    def _is_refused(self, name: bytes) -> bool:
        path = self.repository.top / os.fsdecode(name)
        if name.endswith(b"/"):
            return True
        try:
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                path.open("rb").close()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


_PREFIX = "debrief-record-"
_ABANDONED = 3_600.0
"""Seconds after which nobody can still be using such a folder."""


def _sweep(parent: Path) -> None:
    """Remove what killed recorders of this user left: texts with their secrets are in it."""
    for path in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = path.lstat()
            is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
            if is_ours and time.time() - found.st_mtime > _ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def scratch_of(folder: Path, parent: Path | None = None) -> Iterator[Scratch]:
    """Put a git folder of our own over the repository that ``folder`` lies in; remove it after.

    Args:
        folder: anywhere in the working tree.
        parent: where the temporary folder is made; the machine's usual one by default.

    Raises:
        InputError: no repository, or the temporary folder would lie in its working tree.
    """
    repository = open_repository(folder)
    _sweep(Path(parent or tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(
        prefix=_PREFIX, dir=parent, ignore_cleanup_errors=True
    ) as name:
        temporary = Path(name).resolve()
        if temporary.is_relative_to(repository.top.resolve()):
            raise InputError(
                str(temporary.parent),
                "is for temporary files and lies in the repository",
                "Set TMPDIR to a folder outside of it.",
            )
        yield Scratch(repository, temporary)


@contextmanager
def scratch_into(clone: Path, store: Path) -> Iterator[Scratch]:
    """Put a git folder of our own over a clone, whose new objects stay in ``store``.

    Args:
        clone: a repository's folder; a bare one too.
        store: an object store of ours, made where it is not there; of any number of clones.

    Raises:
        InputError: ``clone`` is no repository.
    """
    repository = open_clone(clone)
    make_folder(store)
    with tempfile.TemporaryDirectory(prefix="debrief-trees-", ignore_cleanup_errors=True) as name:
        scratch = Scratch(repository, Path(name).resolve())
        scratch.environment |= {
            "GIT_OBJECT_DIRECTORY": str(store),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository.common_dir / "objects"),
        }
        yield scratch


def _environment(repository: Repository, git_dir: Path) -> dict[str, str]:
    return {
        **settings_in({**repository.settings, **_OURS}),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_OBJECT_DIRECTORY": str(git_dir / "objects"),
    }


def _quoted(path: Path) -> str:
    """Return a path as git's list of object stores has it, one a line."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _copy(source: Path, target: Path) -> None:
    """Copy a file that may be replaced at any moment, with its time, by which git decides which
    entries of an index to trust; no file where there is none."""
    try:
        # A pipe in its place makes nobody wait.
        with open(source, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return
            content = file.read()
    except OSError:
        target.unlink(missing_ok=True)
        return
    target.write_bytes(content)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
