"""Sentences about executed outcomes, for pages, terminal and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from debrief.execution.comparing import exit_code_of
from debrief.execution.model import (
    BaseSource,
    CheckOrigin,
    ExecutedCheck,
    Execution,
    NoOutcome,
    RebuiltTree,
    SandboxRun,
    TestStatus,
)
from debrief.markdown import counted

REASONS_SHOWN: Final[Mapping[NoOutcome, str]] = {
    "no_repository": "its repository is not among those that were named",
    "no_base": "the commit that it began from is not known",
    "base_gone": "the commit that it began from is not in the repository",
    "shallow_clone": "the clone is shallow: its history is not all there",
    "submodules": "what it needs is in submodules",
    "lfs_pointers": "what it needs is in Git LFS",
    "nothing_changed": "it changed no file",
    "not_rebuilt": "its change cannot be made again",
    "no_check": "there is no check to run",
    "not_prepared": "what its checks need is not installed",
    "not_runnable": "no check gets as far as a test",
    "timed_out": "a check did not end in time",
    "killed": "a check went over a limit of the sandbox",
    "flaky": "equal runs ended differently",
    "tests_changed": "it changed tests itself, so that they pass now shows no work",
    "same_before": "no test ends otherwise before and after its change",
}
"""Why running says nothing of a session."""
BASES_SHOWN: Final[Mapping[BaseSource, str]] = {
    "recorded": "as it was recorded",
    "transcript": "as the transcript has it",
    "inferred": "the last of its branch before it began that fits",
}
ORIGINS_SHOWN: Final[Mapping[CheckOrigin, str]] = {
    "session": "ran in the session",
    "repository": "the repository's own",
    "written": "tests that the session wrote",
    "future": "tests of later commits",
}


def reason_shown(row: Execution) -> str:
    """Return why running says nothing of a session, as a sentence; else empty."""
    if not row.reason:
        return ""
    detail = f" ({row.detail})" if row.detail else ""
    return f"Running says nothing: {REASONS_SHOWN[row.reason]}{detail}."


def tree_shown(tree: RebuiltTree) -> str:
    """Return from what a session's change was made again, and how well that is known."""
    base = f"From commit {tree.base[:12]}, {BASES_SHOWN[tree.base_source]}"
    if tree.exact:
        seen = "later reads" if tree.seen_in == "read" else tree.seen_in[:12]
        if tree.seen_in == "record":
            seen = "its record"
        return f"{base}; its change is rebuilt exactly, as {seen} shows."
    if not tree.differing:
        return f"{base}; nothing shows whether its change is rebuilt exactly."
    files = ", ".join(tree.differing[:3])
    more = len(tree.differing) - 3
    files += f" and {counted(more, 'more file')}" * (more > 0)
    return f"{base}; rebuilt in part: {files} may differ."


_STATUSES: Final[tuple[TestStatus, ...]] = ("passed", "failed", "skipped")


def check_shown(check: ExecutedCheck) -> str:
    """Return how a check ended before and after a session's change.

    >>> run = SandboxRun(exit_code=0, end="ended", seconds=1.0, tests={"a": "passed"})
    >>> check = Check(command="pytest", origin="session")
    >>> check_shown(ExecutedCheck(check=check, before=(run,), after=(run, run)))
    'before: 1 passed; after: 1 passed'
    """
    return f"before: {_end_shown(check.before)}; after: {_end_shown(check.after)}"


def _end_shown(runs: Sequence[SandboxRun]) -> str:
    if not runs:
        return "not run"
    if any(run.end != "ended" for run in runs):
        return "did not end in time" if runs[0].end == "timed_out" else "ended by a limit"
    if any(run.tests != runs[0].tests or run.exit_code != runs[0].exit_code for run in runs):
        return "equal runs differ"
    found = Counter(runs[0].tests.values())
    counts = ", ".join(f"{found[status]} {status}" for status in _STATUSES if found[status])
    return counts or f"exit code {exit_code_of(runs)}"
