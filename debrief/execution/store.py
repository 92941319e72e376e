"""The tables of executed outcomes: a row a session, the labels that follow, results by test.

``executed_outcomes`` has a partition a week. A row of a session replaces the one before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from debrief.execution.comparing import compared_tests, exit_code_of
from debrief.execution.model import ExecutedCheck, Execution, SandboxRun
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.outcomes.store import Labels, outcome

EXECUTIONS = "executed_outcomes"


def execution_of(lake: Lake, week: str, session_id: str) -> Execution | None:
    """Return what running says of a session of a week; None where nobody ran it."""
    return next(lake.read(EXECUTIONS, week, Execution, ("session_id", {session_id})), None)


def executions_by_session(lake: Lake, only: Collection[str] | None = None) -> dict[str, Execution]:
    """Return what running says of sessions, by their ids.

    Args:
        lake: with the table.
        only: the weeks that are read; None for all.
    """
    weeks = lake.partitions(EXECUTIONS) if only is None else only
    return {row.session_id: row for row in lake.rows(EXECUTIONS, Execution, list(weeks))}


def put_executions(lake: Lake, week: str, rows: Iterable[Execution]) -> None:
    """Keep rows of a week beside those of other sessions that it has."""
    new = {row.session_id: row for row in rows}
    kept = {row.session_id: row for row in lake.read(EXECUTIONS, week, Execution)}
    merged = sorted((kept | new).values(), key=lambda row: row.session_id)
    lake.write(EXECUTIONS, week, merged, Execution)


def executed_labels(lake: Lake) -> Labels:
    """Return what running says as labels: one for each session of which it says something."""
    labels = [
        outcome(
            row.session_id, "execution", row.value, outcome_shown(row), EXECUTIONS, row.executed_at
        )
        for row in lake.rows(EXECUTIONS, Execution)
        if row.value
    ]
    return Labels(labels=tuple(labels), read={"execution": frozenset({EXECUTIONS})})


def outcome_shown(row: Execution) -> str:
    """Return what decided an outcome, in words: of each check that did, what changed."""
    return "; ".join(filter(None, (_change_shown(check, row.value) for check in row.checks)))


def _change_shown(check: ExecutedCheck, value: str) -> str:
    tests = compared_tests(check)
    change = ("failed", "passed") if value == "yes" else ("passed", "failed")
    count = sum((test.before, test.after) == change for test in tests)
    if count:
        verb = "now passes" if count == 1 else "now pass"
        if value == "no":
            verb = "now fails" if count == 1 else "now fail"
        return f"{check.check.command}: {counted(count, 'test')} {verb}"
    before, after = (exit_code_of(runs) for runs in (check.before, check.after))
    ends = (before == 0, after == 0)
    if (
        not tests
        and before is not None
        and after is not None
        and ends == (value == "no", value == "yes")
    ):
        return f"{check.check.command}: exit code {before} before, {after} after"
    return ""


def results_before_and_after(row: Execution) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the results before and after a session's change, as a training sample holds them.

    Each has the ``commit`` or tree that was run, and of each check its ``command``, ``exit_code``
    and ``tests``, by name. None where no check ran.
    """
    if row.tree is None or not row.checks:
        return None

    def side(
        tree: str, runs: Iterator[tuple[ExecutedCheck, tuple[SandboxRun, ...]]]
    ) -> dict[str, Any]:
        checks = [
            {
                "command": check.check.command,
                "origin": check.check.origin,
                "exit_code": exit_code_of(own),
                "tests": dict(own[0].tests) if own else {},
            }
            for check, own in runs
        ]
        return {"tree": tree, "checks": checks}

    return (
        side(row.tree.base_tree, ((check, check.before) for check in row.checks)),
        side(row.tree.final_tree, ((check, check.after) for check in row.checks)),
    )
