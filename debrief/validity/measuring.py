"""Measuring: labelled sessions, and what every score says of them as they are and changed.

Scores come from a run's own scorer and judges, with a model or without. They are never shown a
label, nor where a session lies.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from functools import partial
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.evaluators import Evaluators
from debrief.judging.evaluation import evaluate_week
from debrief.lake import Lake
from debrief.offline.evaluator import OfflineEvaluator
from debrief.offline.facts import Facts, facts_of
from debrief.outcomes.labels import labels_from_csv
from debrief.outcomes.store import LabelledSession, Roll, success_labels, success_of
from debrief.redaction.redactor import redactor_of
from debrief.redaction.sessions import redact_session
from debrief.rubrics.offline_miner import Shuffles, false_discoveries
from debrief.scoring.dimensions import OVERALL
from debrief.scoring.scorer import score_session
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.scanning import Scan
from debrief.sessions.sources import read_week, scan
from debrief.sessions.store import SESSIONS_TABLE, sessions_in_folder
from debrief.settings import load_settings
from debrief.validity.perturbations import PERTURBATIONS, Movement, WordScorer, chunk_flips

LABELS = "labels.csv"
_BEGIN = "Begin one with session_id,success,task,family,kind beside the transcripts."
_BATCH = 25
"""Sessions that a worker holds at once."""


class LabelledRun(Struct, frozen=True, kw_only=True):
    """A session and whether it succeeded, which no evaluator is shown."""

    session_id: str
    success: bool
    task: str
    """Runs of one task are not independent, whatever family they are of."""
    family: str
    """An agent on one kind of task: figures are never pooled over families."""
    kind: str = ""
    """``coding``, or anything else."""


class Batch(Struct, frozen=True, kw_only=True):
    """A few labelled sessions of one family, and where they are read."""

    runs: dict[str, LabelledRun]
    """By session id."""
    sampled: frozenset[str]
    """Ids of those that are scored with changes too."""
    transcripts: Scan = Scan()
    lake: str = ""
    weeks: frozenset[str] = frozenset()
    """Of the lake, where the sessions are in one."""

    def sessions(self, redact: Callable[[Session], Session]) -> Iterator[Session]:
        """Yield the sessions that can be read."""
        for week in self.transcripts.weeks():
            for item in read_week(self.transcripts, week, redact):
                if isinstance(item, Session):
                    yield item
        for week in sorted(self.weeks):
            yield from Lake(self.lake).read(SESSIONS_TABLE, week, Session, ("id", set(self.runs)))


def batches_of_folder(folder: Path, sample: int) -> tuple[list[Batch], list[str]]:
    """Read every ``labels.csv`` in or below a folder, and find the transcripts below each.

    Args:
        folder: to be searched.
        sample: how many sessions of a family are scored with changes too.

    Returns:
        Batches, and what is wrong with lines and transcripts that are left out.

    Raises:
        InputError: there is no such file, it lacks a column, or no line of it can be used.
    """
    batches: list[Batch] = []
    problems: list[str] = []
    for file in sorted(folder.rglob(LABELS)):
        found = scan([file.parent])
        roll = Roll(
            LabelledSession(id=each.session_id, task="", started=each.started)
            for each in found.entries
            if each.session_id
        )
        labels = labels_from_csv(file)
        problems += labels.problems
        problems += (
            f"{each.path}:{each.line}: {each.reason}. Its label, if it has one, is not used."
            for each in found.entries
            if each.reason and not each.expected
        )
        runs = []
        for label in labels.labels:
            id_ = label.session_id
            if id_ not in roll.ids:
                alike = roll.look_alike(id_)
                move = f"Write {alike}" if alike else "Correct the id, or put its transcript there"
                no_such = f"no transcript below {file.parent} has session {id_}"
                problems.append(f"{label.place}: {no_such}. {move}.")
                continue
            run = LabelledRun(
                session_id=id_,
                success=success_of(label) is True,
                task=label.task or id_,
                family=label.family or file.parent.name,
                kind=label.kind,
            )
            runs.append(run)
        for part, sampled in _parts(runs, sample):
            own = tuple(each for each in found.entries if each.session_id in part)
            batches.append(Batch(runs=part, sampled=sampled, transcripts=Scan(own)))
    if not batches:
        reason = "; ".join(problems[:5]) or f"holds no {LABELS} with a label of success"
        raise InputError(str(folder), reason.rstrip("."), _BEGIN)
    return batches, problems


def batches_of_lake(lake: Lake, sample: int) -> list[Batch]:
    """Return the sessions of a lake that have a label of success; a tool's are a family.

    Raises:
        InputError: none has.
    """
    labels = success_labels(lake)
    weeks: dict[str, str] = {}
    runs = []
    for week in lake.partitions(SESSIONS_TABLE):
        for head in lake.read(SESSIONS_TABLE, week, SessionHead):
            if (known := labels.get(head.id)) is not None:
                weeks[head.id] = week
                run = LabelledRun(
                    session_id=head.id, success=known.success, task=known.task, family=head.tool
                )
                runs.append(run)
    if not runs:
        reason = "holds no label of success"
        raise InputError(lake.url, reason, "Run debrief outcomes, or name a folder of labels.")
    return [
        Batch(
            runs=part, sampled=sampled, lake=lake.url, weeks=frozenset(map(weeks.__getitem__, part))
        )
        for part, sampled in _parts(runs, sample)
    ]


def _parts(
    runs: Iterable[LabelledRun], sample: int
) -> Iterator[tuple[dict[str, LabelledRun], frozenset[str]]]:
    """Yield the runs of each family in parts, in an order that has nothing to do with them."""
    families: dict[str, list[LabelledRun]] = {}
    for run in sorted(runs, key=lambda run: hashlib.sha256(run.session_id.encode()).digest()):
        families.setdefault(run.family, []).append(run)
    for own in families.values():
        for start in range(0, len(own), _BATCH):
            part = {run.session_id: run for run in own[start : start + _BATCH]}
            yield part, frozenset(list(part)[: max(0, sample - start)])


Values = dict[str, float | None]
"""What each score says of a session; None where it says nothing."""

Progress = Callable[[int], None]
"""Called with a number that are done."""

PROBABILITY, ORDER = "success_probability", "success_order"
CALLS, ERRORS, BOTH = "fewer calls", "fewer errors", "fewer calls and errors"
"""Baselines, which take no evaluator; the last one is made of ranks in a family."""


class Measured(Struct, frozen=True, kw_only=True):
    """A labelled session and what was said of it."""

    run: LabelledRun
    facts: Facts
    values: Values
    failures: tuple[str, ...] = ()
    """Why an evaluator gave no scores."""
    changed: dict[str, Values] = {}
    """The values after each change, by the change's name."""
    movements: dict[str, tuple[Movement, ...]] = {}
    """What cutting it into chunks did, by scorer."""


def measure(
    batches: Iterable[Batch],
    by: Evaluators,
    progress: Progress = lambda _: None,
) -> list[Measured]:
    """Return what the evaluators say of all sessions, by family and id.

    Args:
        batches: as they were read.
        by: asked for scores and judgements, with one budget for all; without a model all
            processors work.
        progress: called with a number of sessions that are done.
    """
    work = partial(measure_batch, by=by)
    pool: Executor
    if by.models is not None:
        pool = ThreadPoolExecutor(by.concurrency)
    else:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(os.cpu_count(), mp_context=context)
    found: list[Measured] = []
    with pool:
        for future in as_completed([pool.submit(work, batch) for batch in batches]):
            found += future.result()
            progress(len(future.result()))
    return sorted(found, key=lambda row: (row.run.family, row.run.session_id))


def measure_batch(batch: Batch, by: Evaluators) -> list[Measured]:
    """Return what the evaluators say of a batch; a session that cannot be read is left out."""
    sessions = [each for each in batch.sessions(_redact()) if each.id in batch.runs]
    found = []
    for place, session in enumerate(sessions):
        run = batch.runs[session.id]
        values, failures = values_of(session, by)
        changed, movements = {}, {}
        if session.id in batch.sampled:
            following = chain(sessions[place + 1 :], sessions[:place])
            others = (each for each in following if batch.runs[each.id].task != run.task)
            changed = _changed(session, next(others, session), run.success, by)
            scorers = [WordScorer(), *([by.chunk_scorer] if by.models is None else [])]
            movements = {each.model: tuple(chunk_flips([session], each)) for each in scorers}
        measured = Measured(run=run, facts=facts_of(session), values=values, failures=failures)
        found.append(replace(measured, changed=changed, movements=movements))
    return found


def values_of(session: Session, by: Evaluators) -> tuple[Values, tuple[str, ...]]:
    """Return what every score says of a session, and why any evaluator says nothing."""
    row = score_session(session, by.chunk_scorer, table=by.table)
    values: Values = {verdict.dimension: verdict.value for verdict in row.verdicts}
    values[OVERALL] = row.overall_quality
    if row.success is not None:
        values |= {ORDER: row.success.order, PROBABILITY: row.success.probability}
    judged = list(evaluate_week([session], by.judges, by.change_judge, by.eval_fingerprint))
    values |= {f"judge {each.judge}": each.score for each in judged}
    calls = [call for turn in session.turns for message in turn.messages for call in message.calls]
    values[CALLS] = -float(len(calls))
    values[ERRORS] = -float(sum(call.status == "failed" for call in calls))
    failures = (row.failure, *(each.failure for each in judged))
    return values, tuple(failure for failure in failures if failure)


def shuffle_scores(folder: Path, number: int, progress: Progress = lambda _: None) -> Shuffles:
    """Return what the offline search for rubrics finds in shuffled scores.

    Args:
        folder: with transcripts of people's sessions, which need no labels.
        number: of shuffles.
        progress: called with 1 after each.
    """
    scorer = OfflineEvaluator()
    sessions = sessions_in_folder(folder, _redact())
    scored = [(session, score_session(session, scorer)) for session in sessions]
    return false_discoveries(scored, number, progress=progress)


def _redact() -> Callable[[Session], Session]:
    return partial(redact_session, redactor=redactor_of(load_settings()))


def _changed(session: Session, other: Session, success: bool, by: Evaluators) -> dict[str, Values]:
    found = {}
    for each in PERTURBATIONS:
        changed = None if each.of_failures and success else each.change(session, other)
        if changed is not None:
            found[each.name] = values_of(changed, by)[0]
    return found
