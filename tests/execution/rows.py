"""Rows of executed outcomes, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from debrief.execution.model import (
    Check,
    ExecutedCheck,
    Execution,
    RebuiltTree,
    SandboxRun,
    TestStatus,
)

NOW = datetime(2026, 11, 4, 9, tzinfo=UTC)


def ended(exit_code: int | None = 0, **tests: TestStatus) -> SandboxRun:
    return SandboxRun(exit_code=exit_code, end="ended", seconds=0.5, tests=tests)


def ran(before: SandboxRun, after: SandboxRun, *again: SandboxRun, **check: Any) -> ExecutedCheck:
    """A check that ended twice as it did once, but for what else its second run after gave."""
    made = Check(**{"command": "pytest -q", "origin": "session", **check})
    return ExecutedCheck(check=made, before=(before, before), after=(after, *(again or (after,))))


def executed(session_id: str, *checks: ExecutedCheck, **fields: Any) -> Execution:
    tree = RebuiltTree(
        session_id=session_id,
        clone="/clones/shop",
        base="b" * 40,
        base_source="transcript",
        base_tree="1" * 40,
        final_tree="2" * 40,
        files=("shop/cart.py",),
        exact=True,
        seen_in="c" * 40,
    )
    plain = {"executed_at": NOW, "key": "k", "tree": tree, "checks": checks}
    return Execution(session_id=session_id, **{**plain, **fields})
