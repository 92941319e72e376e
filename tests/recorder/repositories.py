"""Real repositories for stories about recording, and the proof that recording left no trace."""

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from debrief.git.scratch import FileState, scratch_of
from debrief.recorder.assembly import build_record
from debrief.recorder.changes import WorktreeChanges, find_changes, keep_state
from debrief.recorder.checks import problems_of
from debrief.recorder.contracts import Operation, Record
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.local_session import KeptState, RanCommand, SessionFacts
from debrief.recorder.messages import operations_of, patches_of
from debrief.recorder.patching import apply_operations
from debrief.redaction import Redactor

MOMENT = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
REDACTOR = Redactor(b"a key of sixteen bytes or more")
_IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ALLOW_PROTOCOL": "file",
    **{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0"},
}


def run(folder: Path, *arguments: str | bytes, data: bytes = b"", allowed: int = 0) -> bytes:
    """Run git as a person would."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **_IDENTITY},
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, allowed), done.stderr.decode("utf-8", "replace")
    return done.stdout


def head(folder: Path) -> str:
    return run(folder, "rev-parse", "HEAD").decode().strip()


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit(root: Path, message: str = "more") -> str:
    run(root, "add", "--all")
    run(root, "commit", "--quiet", "--allow-empty", "--message", message)
    return head(root)


def repository(root: Path, files: Mapping[str, str | bytes] | None = None, *options: str) -> Path:
    """Make a repository with one commit of some files."""
    (root / ".git/info").mkdir(parents=True)
    run(root, "init", "--quiet", "--initial-branch=main", "--template=", *options)
    write(root, {"kept.txt": "kept\n", **(files or {})})
    run(root, "add", "--all")
    run(root, "commit", "--quiet", "--message", "first")
    return root


def trace(root: Path) -> dict[str, str]:
    """Return what nothing may touch: refs, HEAD, stash, index, configuration, objects, by file."""
    common = root / ".git"
    if not common.is_dir():
        common = root / os.fsdecode(run(root, "rev-parse", "--git-common-dir").rstrip(b"\n"))
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(common.rglob("*"))
        if path.is_file()
    }


@contextmanager
def untouched(root: Path) -> Iterator[None]:
    """Fail when anything of the repository is changed meanwhile."""
    before = trace(root)
    yield
    assert trace(root) == before


def facts(
    base: str, *commands: RanCommand, contents: str = "full", ignore: tuple[str, ...] = ()
) -> SessionFacts:
    return SessionFacts(
        id=str(UUID(int=7)),
        worktree="work",
        task_id="a-task",
        prompt="Please change what has to be changed.",
        contents="none" if contents == "none" else "full",
        ignore=ignore,
        repo_name="work",
        base_ref=base,
        started_at=MOMENT,
        stopped_at=MOMENT,
        commands=commands,
    )


def ran(
    state: KeptState | None, *args: str, output: str = "fine\n", exit_code: int = 0
) -> RanCommand:
    return RanCommand(
        cmd="pnpm", args=args, output=output, exit_code=exit_code, duration_ms=12, state=state
    )


def kept(root: Path, base: str | None = None) -> tuple[KeptState, dict[str, str]]:
    """Return the changed files as they are, seeing to it that the repository is not touched."""
    with untouched(root), scratch_of(root) as scratch:
        return keep_state(scratch, base or head(root), ())


def changes_between(root: Path, base: str, scratch: Path | None = None) -> WorktreeChanges:
    with scratch_of(root, scratch) as opened:
        return find_changes(opened, base)


def recorded(root: Path, base: str | None = None, *, ignore: tuple[str, ...] = ()) -> Record:
    """Record what changed since ``base``, seeing to it that nothing is touched and all verifies."""
    base = base or head(root)
    with untouched(root):
        record = build_record(root, facts(base, ignore=ignore), REDACTOR)
    assert record.meta.verified, record.meta.warnings
    assert problems_of(record) == []
    again = decode_record(encode_record(record))
    assert again == record
    return record


def apply_to_folder(root: Path, ops: list[Operation]) -> None:
    """Apply operations to the files of a folder, with none of git's help."""
    paths = sorted({op.path for op in ops})
    before = {path: state for path in paths if (state := state_of(root / path))}
    after = apply_operations(before, ops)
    for path in before:
        (root / path).unlink()
        for folder in (root / path).parents[: path.count("/")]:
            if not any(folder.iterdir()):
                folder.rmdir()
    for path in after.keys() & set(paths):
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if after[path].mode == "120000":
            target.symlink_to(after[path].text)
        else:
            target.write_bytes(after[path].text.encode())
            target.chmod(int(after[path].mode[-3:], 8))


def state_of(file: Path) -> FileState | None:
    if file.is_symlink():
        return FileState("120000", str(file.readlink()))
    if not file.is_file():
        return None
    return FileState("100755" if os.access(file, os.X_OK) else "100644", file.read_bytes().decode())


def rebuilt(root: Path, record: Record, place: Path) -> Path:
    """Apply the record to a checkout of its baseline; return the folder."""
    run(root, "worktree", "add", "--quiet", "--detach", str(place), record.meta.base_ref)
    apply_to_folder(place, operations_of(record))
    return place


def tree_of_folder(root: Path) -> str:
    """Return the tree that git itself makes of a folder, in an index of its own."""
    with_index = root.parent / f"{root.name}.index"
    environment = {**os.environ, **_IDENTITY, "GIT_INDEX_FILE": str(with_index)}
    for arguments in (["add", "--all"], ["write-tree"]):
        done = subprocess.run(
            ["git", *arguments], cwd=root, env=environment, capture_output=True, check=True
        )
    return done.stdout.decode().strip()


def trees_of(record: Record, folder: Path, place: Path) -> list[str]:
    """Apply a record's patches one after the other to a checkout; return what git makes of each."""
    run(folder, "worktree", "add", "--quiet", "--detach", str(place), record.meta.base_ref)
    trees = []
    for patch in patches_of(record):
        apply_to_folder(place, patch)
        trees.append(tree_of_folder(place))
    return trees


def kinds(record: Record) -> dict[str, str]:
    """Return which operations a record has, by path."""
    found: dict[str, str] = {}
    for op in operations_of(record):
        mode = getattr(op, "mode", None)
        told = op.type.removesuffix("_file") + (f" {mode}" if mode else "")
        found[op.path] = f"{found[op.path]}, {told}" if op.path in found else told
    return found


def skips(record: Record) -> dict[str, str]:
    return {item.path: item.reason for item in record.meta.skipped}
