"""A check's tests before and after a session's change, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from debrief.execution.model import ExecutedCheck, SandboxRun, TestStatus

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

    First of all come those that fail now, then those that passed only afterwards.
    """
    names = sorted({name for run in (*check.before, *check.after) for name in run.tests})
    tests = [
        ComparedTest(
            name=name, before=_status(check.before, name), after=_status(check.after, name)
        )
        for name in names
    ]
    return sorted(tests, key=lambda test: (not test.changed, test.after != "failed"))


def _status(runs: Sequence[SandboxRun], name: str) -> SeenStatus:
    found: set[SeenStatus] = {run.tests.get(name, "") for run in runs}
    return found.pop() if len(found) == 1 else "differs" if found else ""


def exit_code_of(runs: Iterable[SandboxRun]) -> int | None:
    """Return the exit code of equal runs; None where they differ, or did not end."""
    codes = {run.exit_code for run in runs}
    return codes.pop() if len(codes) == 1 else None
