"""Every commit of a repository, replayed as work that nobody committed, recorded and rebuilt.

``python -m tests.benchmarks.round_trip REPOSITORY [--commits N]`` clones REPOSITORY
into a temporary folder. Of each of its last N commits, the parent is checked out, the commit's
files are laid over it, and the change is recorded. Then the record's operations are applied by
the applier to a checkout of the parent, and the two folders are compared byte for byte. Prints
how many came back, what was skipped and why, and whether the repository was changed by it.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

from debrief.recorder.assembly import build_record
from debrief.recorder.checks import problems_of
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import decode_record, encode_record
from debrief.recorder.messages import operations_of
from debrief.recorder.verification import verify
from tests.benchmarks.measuring import options, seconds, show
from tests.recorder.repositories import REDACTOR, apply_to_folder, facts, run, trace


def main() -> None:
    """Replay the commits and print the figures."""
    chosen = options(__doc__, "repository", commits=220)
    with tempfile.TemporaryDirectory(prefix="round-trip-") as folder:
        work, other = Path(folder) / "work", Path(folder) / "other"
        run(Path(folder), "clone", "--quiet", "--no-local", chosen.repository, str(work))
        run(work, "worktree", "add", "--quiet", "--detach", str(other))
        log = ("--no-merges", "--min-parents=1", f"-{chosen.commits}", "--format=%H %P")
        commits = [line.split()[:2] for line in run(work, "log", *log).decode().splitlines()]
        took = seconds(lambda: replay(work, other, commits))
    show("commits replayed", f"{len(commits)} in {took:.0f} s")


def replay(work: Path, other: Path, commits: list[list[str]]) -> None:
    """Replay the commits, each as uncommitted work over its parent, and print what came of it."""
    outcomes: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    examples: list[str] = []
    for commit, parent in commits:
        check_out(work, commit)
        run(work, "reset", "--quiet", "--mixed", parent)
        before = trace(work)
        record = decode_record(encode_record(build_record(work, facts(parent), REDACTOR)))
        if trace(work) != before:
            outcomes["repository changed"] += 1
            examples.append(f"{commit}: changed")
        skipped.update(item.reason.split(" (")[0] for item in record.meta.skipped)
        if not record.meta.verified:
            outcomes[f"held: {record.meta.warnings[-1:]}"] += 1
            continue
        masked = bool(record.meta.redactions.count)
        problems = problems_of(record) + (verify(work, record, REDACTOR) or [])
        if not problems and not masked:
            problems = compared(work, other, parent, record)
        kind = "wrong" if problems else "reproduced with secrets replaced" if masked else "exact"
        outcomes[kind] += 1
        examples += [f"{commit}: {problem}" for problem in problems[:1]]
    for name, count in [*outcomes.items(), ("files skipped", dict(skipped))]:
        show(name, count)
    print(*examples[:10], sep="\n")


def check_out(folder: Path, commit: str) -> None:
    """Make a working tree that of a commit."""
    run(folder, "checkout", "--quiet", "--force", "--detach", commit)
    run(folder, "clean", "-ffdxq")


def compared(work: Path, other: Path, parent: str, record: Record) -> list[str]:
    """Apply the record to a checkout of the parent and compare the two folders."""
    check_out(other, parent)
    apply_to_folder(other, operations_of(record))
    left_out = {item.path.rstrip("/") for item in record.meta.skipped}
    first, second = files_below(work, left_out), files_below(other, left_out)
    paths = sorted(first.keys() | second.keys())
    return [f"{path!r} differs" for path in paths if first.get(path) != second.get(path)]


def files_below(root: Path, left_out: set[str]) -> dict[str, tuple[bool, bytes]]:
    """Return mode and content of all files below a folder, but for those that were left out."""
    found = {}
    for path in root.rglob("*"):
        key = path.relative_to(root).as_posix()
        if any(key == out or key.startswith(f"{out}/") for out in (".git", *left_out)):
            continue
        if path.is_symlink():
            found[key] = (False, os.fsencode(path.readlink()))
        elif path.is_file():
            found[key] = (bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found


if __name__ == "__main__":
    main()
