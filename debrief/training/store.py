"""The training stage: from the tables of the lake to the files of a pair."""

from __future__ import annotations

from collections.abc import Iterator

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake, Row, Written
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.training.model import TrainingFile
from debrief.training.pairs import Members
from debrief.training.selection import TrainingOptions
from debrief.training.writing import build_training_set

OFFLINE = "offline"


def training_path(task: str, fingerprint: str, suffix: str = ".jsonl") -> str:
    """Return where a pair's file is in the lake."""
    return f"training/{task}/{fingerprint}{suffix}"


def store_training_set(
    lake: Lake, task: str, fingerprint: str, members: Members, options: TrainingOptions
) -> tuple[TrainingFile, Written]:
    """Build one pair's training set from the lake and write it with its card.

    Scores and rubric scores are those of the evaluator that the pair's judges belong to, so that
    the offline evaluator's never stand beside a model's.

    Args:
        lake: where the tables are and the files go.
        task: the pair's task.
        fingerprint: the pair's fingerprints.
        members: its session ids by week.
        options: what was chosen at launch.
    """
    ids = {id_ for found in members.values() for id_ in found}
    eval_fingerprint = fingerprint.rpartition("-")[2]
    judged = [
        row
        for week in members
        for row in lake.read("judge_evaluations", week, JudgeEvaluation)
        if row.session_id in ids and row.eval_fingerprint == eval_fingerprint
    ]
    offline = any(row.model == OFFLINE for row in judged)
    made = build_training_set(
        task,
        fingerprint,
        (
            session
            for week, found in sorted(members.items())
            for session in lake.read("raw_sessions", week, Session, only=("id", found))
        ),
        [
            row
            for row in _all(lake, "session_scores", members, SessionScores)
            if row.session_id in ids and (row.model == OFFLINE) == offline
        ],
        judged,
        [
            row
            for row in _all(lake, "rubric_evaluations", members, RubricEvaluation)
            if row.session_id in ids and (row.model == OFFLINE) == offline
        ],
        _all(lake, "prompt_snapshots", members, PromptSnapshotRow),
        _all(lake, "session_metadata", members, SessionMetadataRow),
        options,
    )
    written = lake.write_bytes(training_path(task, fingerprint), made.lines)
    lake.write_bytes(training_path(task, fingerprint, ".card.md"), made.card.encode())
    return made, written


def _all(lake: Lake, table: str, members: Members, row_type: type[Row]) -> Iterator[Row]:
    for week in sorted(members):
        yield from lake.read(table, week, row_type)
