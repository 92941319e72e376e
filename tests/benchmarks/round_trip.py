"""Every commit of a repository, replayed as work that nobody committed, recorded and rebuilt.

``python -m tests.benchmarks.round_trip REPOSITORY [--commits N]`` clones REPOSITORY
into a temporary folder. Of each of its last N commits, the parent is checked out, the commit's
files are laid over it, and the change is recorded. Then the record's operations are applied by
the applier to a checkout of the parent, and the two folders are compared byte for byte. Prints
how many came back, what was skipped and why, and whether the repository was changed by it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from debrief.recorder.assembly import build_record
from debrief.recorder.checks import problems_of
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.state import SessionFacts
from debrief.recorder.tools import operations_of
from debrief.recorder.verification import verify
from debrief.redaction import Redactor
from tests.recorder.repositories import apply_to_folder

REDACTOR = Redactor(b"benchmark" * 4)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Replay the commits and print the figures."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("repository")
    options.add_argument("--commits", type=int, default=220)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="round-trip-") as folder:
        work, other = Path(folder) / "work", Path(folder) / "other"
        run(Path(folder), "clone", "--quiet", "--no-local", chosen.repository, str(work))
        run(work, "worktree", "add", "--quiet", "--detach", str(other))
        replay(work, other, commits_of(work, chosen.commits))


def replay(work: Path, other: Path, commits: list[tuple[str, str]]) -> None:
    """Replay the commits, each as uncommitted work over its parent, and print what came of it."""
    reproduced, masked, held = 0, 0, Counter[str]()
    skipped: Counter[str] = Counter()
    touched: list[str] = []
    wrong: list[str] = []
    began = time.perf_counter()
    for commit, parent in commits:
        lay_over(work, commit, parent)
        before = fingerprint(work)
        record = build_record(work, facts(parent), REDACTOR)
        record = decode_record(encode_record(record))
        if fingerprint(work) != before:
            touched.append(commit)
        skipped.update(reason_kind(item.reason) for item in record.meta.skipped)
        if not record.meta.verified:
            held.update(record.meta.warnings[-1:])
            continue
        problems = problems_of(record) + verify(
            work, record, REDACTOR if record.meta.redactions.count else None
        )
        if not problems and not record.meta.redactions.count:
            problems = compared(work, other, parent, record)
        masked += bool(record.meta.redactions.count)
        if problems:
            wrong.append(f"{commit}: {problems[0]}")
        else:
            reproduced += 1
    seconds = time.perf_counter() - began
    print(f"commits replayed         {len(commits)} in {seconds:.0f} s")
    print(f"reproduced byte for byte {reproduced}, of them {masked} with secrets replaced")
    print(f"held                     {sum(held.values())} {dict(held)}")
    print(f"wrong                    {len(wrong)} {wrong[:5]}")
    print(f"files skipped            {sum(skipped.values())} {dict(skipped)}")
    print(f"repository changed       {len(touched)} {touched[:5]}")


def commits_of(work: Path, count: int) -> list[tuple[str, str]]:
    """Return the last commits with one parent, each with its parent."""
    lines = run(work, "log", "--no-merges", "--min-parents=1", f"-{count}", "--format=%H %P")
    return [(line.split()[0], line.split()[1]) for line in lines.splitlines()]


def lay_over(work: Path, commit: str, parent: str) -> None:
    """Make the working tree that of ``commit``, over an index and a HEAD that are its parent's."""
    run(work, "checkout", "--quiet", "--force", "--detach", commit)
    run(work, "clean", "-ffdxq")
    run(work, "reset", "--quiet", "--mixed", parent)


def compared(work: Path, other: Path, parent: str, record: Record) -> list[str]:
    """Apply the record to a checkout of the parent and compare the two folders."""
    run(other, "checkout", "--quiet", "--force", "--detach", parent)
    run(other, "clean", "-ffdxq")
    apply_to_folder(other, operations_of(record))
    left_out = {item.path.rstrip("/") for item in record.meta.skipped}
    first, second = files_below(work, left_out), files_below(other, left_out)
    return sorted(
        f"{path!r} differs"
        for path in first.keys() | second.keys()
        if first.get(path) != second.get(path)
    )


def files_below(root: Path, left_out: set[str]) -> dict[str, tuple[bool, bytes]]:
    """Return mode and content of all files below a folder."""
    found = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".git"]
        for name in [*files, *(n for n in names if (Path(folder) / n).is_symlink())]:
            path = Path(folder) / name
            key = path.relative_to(root).as_posix()
            if key == ".git" or any(key == out or key.startswith(f"{out}/") for out in left_out):
                continue
            if path.is_symlink():
                found[key] = (False, os.fsencode(path.readlink()))
            else:
                found[key] = (bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found


def fingerprint(work: Path) -> str:
    """Return a digest of refs, HEAD, stash, index bytes and the names of all objects."""
    digest = hashlib.sha256()
    for path in sorted((work / ".git").rglob("*")):
        if path.is_file():
            digest.update(str(path).encode())
            if "objects" not in path.parts:
                digest.update(path.read_bytes())
    return digest.hexdigest()


def facts(base: str) -> SessionFacts:
    """Return what a session knows, apart from its changes."""
    return SessionFacts(
        id=str(UUID(int=1)),
        worktree="work",
        task_id="benchmark",
        prompt="Do what the commit does.",
        repo_name="repository",
        base_ref=base,
        started_at=MOMENT,
        stopped_at=MOMENT,
    )


def reason_kind(reason: str) -> str:
    """Return a reason without its numbers."""
    return reason.split(" (")[0]


def run(folder: Path, *arguments: str, allowed: Sequence[int] = (0,)) -> str:
    """Run git, plainly, as a person would; return its output."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    if done.returncode not in allowed:
        raise SystemExit(f"git {arguments[0]}: {done.stderr.decode('utf-8', 'replace')}")
    return done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
