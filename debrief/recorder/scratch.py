"""A git folder of our own, over somebody's working tree and objects.

Commands that read a working tree into a tree object write to an index and an object store. Both
are copies here, in a temporary folder, together with the few settings that shape blobs. The
repository's own configuration is not in force, so that neither its hooks, filters, monitors and
drivers, nor any key that a later git may take a program from, can run.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from debrief.errors import InputError
from debrief.git import git
from debrief.recorder.objects import Objects
from debrief.recorder.repository import QUIET, Repository, open_repository

_SUBMODULE_BITS = b"\x00\x00\xe0\x00"
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
        for name in ("exclude", "attributes"):
            _copy(repository.common_dir / "info" / name, self.git_dir / "info" / name)
        name = "sparse-checkout"
        _copy(repository.git_dir / "info" / name, self.git_dir / "info" / name)

    def git(self, *arguments: str, data: bytes = b"") -> bytes:
        """Run git over the working tree, in our own git folder; return its output."""
        return git(
            self.repository.top,
            *arguments,
            data=data,
            timeout=_TIMEOUT,
            environment=self.environment,
        )

    def objects(self) -> Objects:
        """Open the repository's objects, and ours."""
        return Objects(
            self.repository.top,
            self.environment,
            self.repository.object_format,
            self.git_dir / "objects",
        )

    def add_all(self) -> None:
        """Make our index that which ``git add -A`` would make of the working tree.

        A submodule, or a repository that lies in this one, is in it as it was: git is kept from
        looking into it, since that would put its own configuration in force.

        Raises:
            InputError: git cannot read the working tree.
        """
        for attempt in range(_ATTEMPTS):
            self._copy_index()
            try:
                self.unreadable = self._find_unreadable() if attempt else []
                leave_out = [*filter(self.is_repository, self.submodules()), *self.unreadable]
                self._add([path.rstrip(b"/") for path in leave_out])
                return
            except InputError:
                if attempt == _ATTEMPTS - 1:
                    raise

    def write_tree(self) -> str:
        """Return the id of our index's tree."""
        return self.git("write-tree").decode().strip()

    def submodules(self) -> list[bytes]:
        """Return the paths at which the index has another repository."""
        indexes = [self.git_dir / "index", *self.git_dir.glob("sharedindex.*")]
        if not any(_SUBMODULE_BITS in path.read_bytes() for path in indexes if path.exists()):
            return []
        lines = self.git("ls-files", "--stage", "-z").split(b"\0")
        return [line.split(b"\t", 1)[1] for line in lines if line.startswith(b"160000 ")]

    def is_repository(self, path: bytes) -> bool:
        """Return whether a folder of the working tree is the top folder of another repository."""
        return (self.repository.top / os.fsdecode(path) / ".git").exists()

    def _add(self, leave_out: Sequence[bytes]) -> None:
        specs = [b":/", *(b":(exclude,top,literal)" + path for path in leave_out)]
        self.git(
            "add",
            "--all",
            "--sparse",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
            data=b"\0".join(specs),
        )

    def _copy_index(self) -> None:
        for old in (self.git_dir / "index.lock", *self.git_dir.glob("sharedindex.*")):
            old.unlink(missing_ok=True)
        _copy(self.repository.git_dir / "index", self.git_dir / "index")
        for shared in self.repository.git_dir.glob("sharedindex.*"):
            _copy(shared, self.git_dir / shared.name)

    def _find_unreadable(self) -> list[bytes]:
        """Return what git cannot add: files that may not be read, repositories without a commit."""
        names = self.git("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
        names += self.git("diff-files", "-z", "--name-only", "--ignore-submodules=all").split(b"\0")
        return sorted({name for name in names if name and self._refused(name)})

    def _refused(self, name: bytes) -> bool:
        path = self.repository.top / os.fsdecode(name)
        try:
            if name.endswith(b"/"):
                return True
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                path.open("rb").close()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


@contextmanager
def scratch_of(folder: Path, parent: Path | None = None) -> Iterator[Scratch]:
    """Lay a git folder of our own over the repository that ``folder`` lies in; remove it after.

    Args:
        folder: anywhere in the working tree.
        parent: where the temporary folder is made; the machine's usual place by default.

    Raises:
        InputError: no repository, or the temporary folder would lie in its working tree.
    """
    repository = open_repository(folder)
    place = Path(tempfile.mkdtemp(prefix="debrief-record-", dir=parent)).resolve()
    try:
        if place.is_relative_to(repository.top.resolve()):
            raise InputError(
                str(place.parent),
                "is for temporary files and lies in the repository",
                "Set TMPDIR to a folder outside of it.",
            )
        yield Scratch(repository, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _environment(repository: Repository, git_dir: Path) -> dict[str, str]:
    settings: Mapping[str, str] = {**repository.settings, **_OURS}
    pairs: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        pairs |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {
        **QUIET,
        **pairs,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_INDEX_FILE": str(git_dir / "index"),
        "GIT_OBJECT_DIRECTORY": str(git_dir / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository.common_dir / "objects"),
    }


def _quoted(path: Path) -> str:
    """Return a path as an item of a list that is parted by colons."""
    text = str(path)
    if ":" not in text and not text.startswith('"'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _copy(source: Path, target: Path) -> None:
    """Copy a file that may be replaced at any moment, with its time, which tells git which of an
    index's entries to trust; no file where there is none."""
    try:
        with open(source, "rb", opener=_without_waiting) as file:
            known = os.fstat(file.fileno())
            if not stat.S_ISREG(known.st_mode):
                return
            content = file.read()
    except OSError:
        target.unlink(missing_ok=True)
        return
    target.write_bytes(content)
    os.utime(target, ns=(known.st_atime_ns, known.st_mtime_ns))


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, and do not wait for a writer should it be a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
