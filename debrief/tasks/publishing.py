"""Write a folder of Harbor tasks, with a list of the sessions that make none and why.

A task's folder is written whole or not at all. One that is there with the same files was proven
before, and is not proven again: the same sessions give the same bytes.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.execution.model import Execution, NotExecuted
from debrief.execution.rebuilding import rebuild
from debrief.execution.store import executions_by_session
from debrief.lake import Lake
from debrief.reports import Markdown
from debrief.reports import report as filled
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.store import SESSIONS_TABLE
from debrief.snapshots.clones import Clones
from debrief.snapshots.rows import repository_at_hand
from debrief.tasks.choosing import failures_by_task, not_a_task
from debrief.tasks.files import TaskSource, task_of, with_proof
from debrief.tasks.making import HeldBack, check_secrets, source_of
from debrief.tasks.model import FORM, HarborTask, NotProven, Proof
from debrief.tasks.proving import RUNS, ProofPlace, Unproven, prove
from debrief.training.contamination import Problems, given_texts
from debrief.training.publishing.folder import OwnFolder

NOT_PROVEN = "not_proven.jsonl"
Equip = Callable[[TaskSource], ProofPlace]
"""Makes ready what a task's checks need. Raises HeldBack."""


class PublishedTask(Struct, frozen=True, kw_only=True):
    """A task that is in the folder."""

    name: str
    session_id: str
    repository: str
    base: str
    licence: str
    checks: tuple[str, ...]


class PublishedTasks(Struct, frozen=True, kw_only=True):
    """What became of the sessions."""

    target: str
    tasks: tuple[PublishedTask, ...]
    not_proven: tuple[NotProven, ...]
    changed: bool
    """False when the folder held the same before."""

    @property
    def reasons(self) -> Counter[str]:
        """How many sessions make no task, by reason."""
        return Counter(not_proven.reason for not_proven in self.not_proven)


class TaskCandidate(Struct, frozen=True, kw_only=True):
    """An executed session that may make a task."""

    week: str
    head: SessionHead
    execution: Execution
    executed: int
    """Sessions of the same task that running says something of."""
    failed: int
    """Those of them that broke something."""


def candidates_in(lake: Lake) -> tuple[list[TaskCandidate], list[NotProven]]:
    """Return the sessions of a lake that may make a task, and those that cannot.

    Raises:
        InputError: nobody executed a session.
    """
    executions = executions_by_session(lake)
    if not executions:
        raise InputError(lake.url, "holds no executed session", "Run debrief execute first.")
    heads = [
        (week, head)
        for week in lake.partitions(SESSIONS_TABLE)
        for head in lake.read(SESSIONS_TABLE, week, SessionHead)
    ]
    counts = failures_by_task(executions, {head.id: head.task for _, head in heads})
    candidates, cannot = [], []
    for week, head in heads:
        execution = executions.get(head.id)
        if execution is None:
            cannot.append(NotProven(session_id=head.id, reason="not_executed"))
        elif (reason := not_a_task(execution)) is not None:
            cannot.append(reason)
        else:
            failed, executed = counts.get(head.task, (0, 0))
            candidates.append(
                TaskCandidate(
                    week=week,
                    head=head,
                    execution=execution,
                    executed=executed,
                    failed=failed,
                )
            )
    return candidates, cannot


def publish_tasks(
    lake: Lake,
    target: Path,
    clones: Clones,
    equip: Equip,
    redact: Callable[[str], str],
    problems: Problems | None = None,
    report: Callable[[str, str], None] = lambda session_id, outcome: None,
) -> PublishedTasks:
    """Prove the tasks of a lake's sessions, and write them to a folder.

    Args:
        lake: with sessions and what running says of them.
        target: the folder; it is made, or holds an earlier export of tasks.
        clones: of the repositories that the sessions worked in.
        equip: makes ready what checks need.
        redact: takes secrets out of what programs printed.
        problems: of benchmarks, whose sessions make no task.
        report: called after each session with its id and the task's name or the reason.

    Raises:
        InputError: nobody executed a session, or the folder holds something else.
        ConfigurationError: the sandbox itself does not work.
    """
    candidates, not_proven = candidates_in(lake)
    folder = OwnFolder(str(target), FORM)
    tasks: list[PublishedTask] = []
    for candidate in candidates:
        session = next(
            lake.read(SESSIONS_TABLE, candidate.week, Session, ("id", {candidate.head.id}))
        )
        try:
            with tempfile.TemporaryDirectory(prefix="debrief-task-") as name:
                task, source = _proven(
                    session, candidate, clones, Path(name), folder, equip, problems
                )
            folder.write_folder(task.name, task.files)
            tasks.append(_published(task, source))
            report(session.id, task.name)
        except HeldBack as held:
            detail = redact(held.detail)
            not_proven.append(NotProven(session_id=session.id, reason=held.reason, detail=detail))
            report(session.id, held.reason)
    not_proven.sort(key=lambda not_proven: not_proven.session_id)
    folder.write(NOT_PROVEN, b"".join(msgspec.json.encode(each) + b"\n" for each in not_proven))
    done = PublishedTasks(
        target=str(target), tasks=tuple(tasks), not_proven=tuple(not_proven), changed=False
    )
    folder.write("README.md", _page(done).encode())
    folder.close()
    return replace(done, changed=folder.changed)


def _proven(
    session: Session,
    candidate: TaskCandidate,
    clones: Clones,
    scratch: Path,
    folder: OwnFolder,
    equip: Equip,
    problems: Problems | None,
) -> tuple[HarborTask, TaskSource]:
    """Return a session's task with its proof.

    Raises:
        HeldBack: it makes none.
    """
    clone = repository_at_hand(candidate.head, clones)
    if clone is None:
        raise HeldBack("no_repository")
    store = scratch / "objects"
    tree = rebuild(session, clone, store)
    if isinstance(tree, NotExecuted):
        raise HeldBack(tree.reason, tree.detail)
    source = source_of(session, candidate.execution, tree, store, scratch)
    found = problems and problems.found_in(given_texts(session), source.repository, source.base)
    if found:
        raise HeldBack("benchmark", f"{found.benchmark}, by its {found.by}")
    source = replace(source, executed=candidate.executed, failed=candidate.failed)
    stage = equip(source)
    task = task_of(source, stage.image)
    check_secrets(task)
    known = with_proof(
        task, source, stage.image, Proof(runs=RUNS, empty_reward=0.0, solution_reward=1.0)
    )
    if folder.holds(task.name, known.files):
        return known, source
    proof = prove(task, source.base_folder, stage)
    if isinstance(proof, Unproven):
        raise HeldBack(proof.reason, proof.detail)
    return with_proof(task, source, stage.image, proof), source


def _published(task: HarborTask, source: TaskSource) -> PublishedTask:
    return PublishedTask(
        name=task.name,
        session_id=source.session_id,
        repository=source.repository,
        base=source.base,
        licence=source.licence,
        checks=tuple(check.command for check in source.checks),
    )


def _page(done: PublishedTasks) -> str:
    counts = Counter(not_proven.reason for not_proven in done.not_proven).most_common()
    return filled(
        "tasks",
        runs=RUNS,
        tasks=[
            (
                Markdown(f"[{task.name}]({task.name}/instruction.md)"),
                task.repository,
                task.base[:12],
                task.licence or "unknown",
            )
            for task in done.tasks
        ],
        not_proven=len(done.not_proven),
        file=Markdown(NOT_PROVEN),
        reasons=[(Markdown(f"`{reason}`"), str(count)) for reason, count in counts],
    )
