"""A check's tests before and after a session's change, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from debrief.execution.model import ExecutedCheck, SandboxRun, TestStatus

Results = Mapping[str, TestStatus]
"""Of one run, by the test's name."""
SeenStatus = TestStatus | Literal["differs", ""]
"""``differs``: the runs of one tree do not agree. Empty: the test did not run."""


class ComparedTest(Struct, frozen=True, kw_only=True):
    """One test before and after a session's change."""

    name: str
    before: SeenStatus
    after: SeenStatus

    @property
    def changed(self) -> bool:
        """Whether the session's change made a difference to it."""
        return self.before != self.after


def compared_tests(check: ExecutedCheck) -> list[ComparedTest]:
    """Return the tests of a check, those that changed first, each group by name.

    First of all come those that fail now. A file or package that could not be loaded stands for its
    tests, as when an outcome is decided.
    """
    before, after = ([run.tests for run in runs] for runs in (check.before, check.after))
    old, new = completed(before, after), completed(after, before)
    names = {name for run in (*old, *new) for name in run}
    standing = {place for name in names if "::" in name for place in _places(name)}
    tests = [
        ComparedTest(name=name, before=status_in(old, name), after=status_in(new, name))
        for name in sorted(names - standing)
    ]
    return sorted(tests, key=lambda test: (not test.changed, test.after != "failed"))


def completed(runs: Sequence[Results], others: Sequence[Results]) -> list[Results]:
    """Return runs in which a file or package that could not be loaded stands for its tests.

    Args:
        runs: of one tree.
        others: of the other one, which know the tests.
    """
    known = {name for other in others for name in other if "::" in name}
    found: list[Results] = []
    for run in runs:
        whole = {name for name, status in run.items() if "::" not in name and status == "failed"}
        lost = {name for name in known - set(run) if whole & set(_places(name))} if whole else set()
        found.append({**run, **dict.fromkeys(lost, "failed")})
    return found


def _places(name: str) -> Iterator[str]:
    """Yield where a test is: its file, package or class, and those around it."""
    place = name.partition("::")[0]
    yield place
    while "." in place:
        place = place.rpartition(".")[0]
        yield place


def status_in(runs: Sequence[Results], name: str) -> SeenStatus:
    """Return a test's result in all runs of a tree; empty where it is in none."""
    found: set[SeenStatus] = {run.get(name, "") for run in runs}
    return found.pop() if len(found) == 1 else "differs" if found else ""


def exit_code_of(runs: Iterable[SandboxRun]) -> int | None:
    """Return the exit code of equal runs; None where they differ, or did not end."""
    codes = {run.exit_code for run in runs}
    return codes.pop() if len(codes) == 1 else None
