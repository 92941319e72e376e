"""Prove a task: run its own scripts in the sandbox as Harbor runs them in a container."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from debrief.execution.sandbox import Mount, Sandbox, SandboxLimits
from debrief.files import write_folder
from debrief.tasks.files import REWARD, Image
from debrief.tasks.instruction import WORKDIR
from debrief.tasks.model import HarborTask, NotProvenReason, Proof

RUNS = 3
"""Of the empty patch, and of the solution."""
_EMPTY = "sh /tests/test.sh"
_SOLVED = f"sh /solution/solve.sh && {_EMPTY}"
_PRINTED = 300


class ProofPlace(Struct, frozen=True, kw_only=True):
    """Where a task is proven: a sandbox, and what the checks need in it."""

    sandbox: Sandbox
    image: Image
    """Which container is the same."""
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = {}
    path: tuple[str, ...] = ()
    limits: SandboxLimits = SandboxLimits()


class Unproven(Struct, frozen=True):
    """Why a task's own scripts do not prove it."""

    reason: NotProvenReason
    detail: str = ""


def prove(
    task: HarborTask, base_folder: Path, stage: ProofPlace, runs: int = RUNS
) -> Proof | Unproven:
    """Run a task's tests on its base and on its solution, several times each.

    Every run begins from a fresh copy of the base in ``/app``, with the task's own ``/tests``,
    ``/solution`` and ``/logs``.

    Args:
        task: its ``environment/`` is not built; what it would install is on the stage.
        base_folder: with the base's files.
        stage: where it is run.
        runs: of each.

    Raises:
        ConfigurationError: the sandbox itself does not work.
    """
    with tempfile.TemporaryDirectory(prefix="debrief-proof-") as name:
        folder = Path(name) / "task"
        small = {path: data for path, data in task.files.items() if _is_run(path)}
        write_folder(folder, {**small, "logs/verifier/.keep": b""})
        for _ in range(runs):
            found = _rewards(folder, base_folder, stage)
            if isinstance(found, Unproven):
                return found
    return Proof(runs=runs, empty_reward=0.0, solution_reward=1.0)


def _is_run(path: str) -> bool:
    return path.startswith(("tests/", "solution/"))


def _rewards(folder: Path, base: Path, stage: ProofPlace) -> Unproven | None:
    """Return why one run of each does not prove a task; None where it does."""
    expected: Sequence[tuple[str, float, NotProvenReason]] = (
        (_EMPTY, 0.0, "passes_without_change"),
        (_SOLVED, 1.0, "fails_with_change"),
    )
    copies = {WORKDIR: base} | {f"/{each}": folder / each for each in ("tests", "solution", "logs")}
    for command, reward, reason in expected:
        ran = stage.sandbox.run(
            command,
            copies=copies,
            mounts=stage.mounts,
            environment=stage.environment,
            path=stage.path,
            hand_back=[REWARD],
            limits=stage.limits,
        )
        if ran.end != "ended":
            return Unproven("timed_out" if ran.end == "timed_out" else "killed", ran.limit)
        given = ran.files.get(REWARD, b"").strip()
        printed = ran.output.strip()[-_PRINTED:]
        if not given and command == _EMPTY:
            return Unproven("not_runnable", printed)
        if given != f"{reward:g}".encode():
            return Unproven(reason, "" if given == b"1" else printed)
    return None
