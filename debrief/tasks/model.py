"""What a Harbor task of a session is, and why a session makes none."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from debrief.execution.model import NoOutcome

FORM = "harbor"
"""Of exports of tasks."""

NotProvenReason = (
    NoOutcome
    | Literal[
        "not_executed",
        "failed",
        "no_request",
        "answer_given",
        "changes_dependencies",
        "benchmark",
        "secret",
        "no_exit_code",
        "passes_without_change",
        "fails_with_change",
    ]
)
"""Those of executions, and: ``not_executed``: nobody ran its checks. ``failed``: running them
shows that it broke something. ``no_request``: no person asked for the change in the session.
``answer_given``: the request gives the answer away. ``changes_dependencies``: the change needs
other packages than its base, which a container would lack. ``no_exit_code``: no test command ends
with 0 on the final tree. ``passes_without_change`` and ``fails_with_change``: what the task's own
script says in the sandbox."""


class NotProven(Struct, frozen=True, kw_only=True):
    """A session that makes no task: a line of ``not_proven.jsonl``."""

    session_id: str
    reason: NotProvenReason
    detail: str = ""
    """What the reason is about: a file and line, a benchmark, a command."""


class Proof(Struct, frozen=True, kw_only=True):
    """How often a task's own scripts were run in the sandbox, and what they gave."""

    runs: int
    """Of each of the two."""
    empty_reward: float
    """Without any change, in every run."""
    solution_reward: float
    """With the solution, in every run."""


class HarborTask(Struct, frozen=True, kw_only=True):
    """A task in Harbor's form."""

    name: str
    """Of its folder."""
    files: dict[str, bytes]
    """By path within it."""
