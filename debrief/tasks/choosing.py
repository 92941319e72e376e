"""Which executed sessions may make a task, and by which checks."""

from __future__ import annotations

from collections.abc import Mapping

from debrief.execution.model import Check, ExecutedCheck, Execution
from debrief.execution.running import kind_of
from debrief.tasks.model import NotProven


def not_a_task(execution: Execution) -> NotProven | None:
    """Return why an executed session makes no task, as far as its row says; None where it may."""
    if execution.value == "no":
        return NotProven(session_id=execution.session_id, reason="failed", detail=execution.detail)
    if execution.reason and not _may_differ_with_tests(execution):
        return NotProven(
            session_id=execution.session_id, reason=execution.reason, detail=execution.detail
        )
    if not checks_of(execution):
        return NotProven(session_id=execution.session_id, reason="no_exit_code")
    return None


def _may_differ_with_tests(execution: Execution) -> bool:
    """Return whether a proof is worth a try although no test was seen to tell the trees apart: the
    tests that the session wrote were not yet there on the base, and a task brings them."""
    return execution.reason in ("same_before", "tests_changed") and execution.tree is not None


def checks_of(execution: Execution) -> tuple[Check, ...]:
    """Return the tests that end with 0 on the final tree, each command once.

    Linters and builds are none: that they are content shows no work.
    """
    tests = [check for check in execution.checks if kind_of(check.check.command) == "test"]
    passing = [test.check for test in tests if _passes(test)]
    return tuple({(check.command, check.folder): check for check in passing}.values())


def _passes(executed: ExecutedCheck) -> bool:
    return bool(executed.after) and all(run.exit_code == 0 for run in executed.after)


def slowest(execution: Execution) -> float:
    """Return the seconds that all checks of a session take."""
    return sum(
        max((run.seconds for run in (*check.before, *check.after)), default=0.0)
        for check in execution.checks
    )


def failures_by_task(
    executions: Mapping[str, Execution], tasks: Mapping[str, str]
) -> dict[str, tuple[int, int]]:
    """Return of each task how many of its sessions broke something, of how many in all.

    Args:
        executions: by session.
        tasks: of the sessions; those of a repository without a plan have its name.
    """
    counts: dict[str, tuple[int, int]] = {}
    for session_id, execution in executions.items():
        if execution.value and session_id in tasks:
            failed, known = counts.get(tasks[session_id], (0, 0))
            counts[tasks[session_id]] = failed + (execution.value == "no"), known + 1
    return counts
