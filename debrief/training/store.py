"""The training stage: from the tables of the lake to the files of a pair."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from msgspec import Struct

from debrief.digests import digest_of
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.lake import Lake, Row
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Session
from debrief.snapshots.fingerprint import eval_digest
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.training.model import LeftOut
from debrief.training.pairs import Members
from debrief.training.selection import TrainingOptions
from debrief.training.writing import build_training_set

OFFLINE = "offline"
INDEX = "training_index"
LINE_FORMAT = "1"
"""Raised when the same sessions give other lines: every training set is written again."""


class TrainingSetRow(Struct, frozen=True, kw_only=True):
    """What is known of a pair's training set beside its files."""

    task: str
    fingerprint: str
    considered: int
    samples: int
    train: int
    eval: int
    tokens: int
    left_out: tuple[LeftOut, ...] = ()
    lines_digest: str
    """SHA-256 of the JSONL, in hex."""
    card_digest: str


class StoredTrainingSet(Struct, frozen=True, kw_only=True):
    """What storing a pair's training set came to."""

    row: TrainingSetRow
    path: str
    card: str
    changed: bool
    """False when the same lines had been there before."""


def training_path(task: str, fingerprint: str, suffix: str = ".jsonl") -> str:
    """Return where a pair's file is in the lake."""
    return f"training/{task}/{fingerprint}{suffix}"


def store_training_set(
    lake: Lake, task: str, fingerprint: str, members: Members, options: TrainingOptions
) -> StoredTrainingSet:
    """Bring one pair's training set and its card up to date; leave them alone when they are.

    Scores and rubric scores are those of the evaluator that the pair's judges belong to, so that
    the offline evaluator's never stand beside a model's.

    Args:
        lake: where the tables are and the files go.
        task: the pair's task.
        fingerprint: the pair's fingerprints.
        members: its session ids by week.
        options: what was chosen at launch.
    """
    source = _Source.read(lake, fingerprint, members)
    made_from = digest_of(LINE_FORMAT, options.model_dump(mode="json"), source)
    standing = _standing(lake, task, fingerprint, made_from)
    if standing is not None:
        return standing
    made = build_training_set(
        task,
        fingerprint,
        (
            session
            for week, found in sorted(members.items())
            for session in lake.read("raw_sessions", week, Session, only=("id", found))
        ),
        source.scores,
        source.judgements,
        source.rubric_evaluations,
        source.snapshots,
        source.metadata,
        options,
        eval_digest=source.eval_digest,
    )
    card = made.card.encode()
    written = lake.write_bytes(training_path(task, fingerprint), made.lines)
    lake.write_bytes(training_path(task, fingerprint, ".card.md"), card)
    row = TrainingSetRow(
        task=task,
        fingerprint=fingerprint,
        considered=made.considered,
        samples=made.samples,
        train=made.train,
        eval=made.eval,
        tokens=made.tokens,
        left_out=made.left_out,
        lines_digest=written.digest,
        card_digest=hashlib.sha256(card).hexdigest(),
    )
    lake.write(INDEX, f"{task}/{fingerprint}", [row], TrainingSetRow, lambda: made_from)
    return StoredTrainingSet(row=row, path=written.path, card=made.card, changed=written.changed)


class _Source(Struct, frozen=True, kw_only=True):
    """All that a training set is made from, its sessions by digest."""

    sessions: tuple[tuple[str, str], ...]
    judgements: tuple[JudgeEvaluation, ...]
    scores: tuple[SessionScores, ...]
    rubric_evaluations: tuple[RubricEvaluation, ...]
    snapshots: tuple[PromptSnapshotRow, ...]
    metadata: tuple[SessionMetadataRow, ...]
    eval_digest: str

    @classmethod
    def read(cls, lake: Lake, fingerprint: str, members: Members) -> _Source:
        eval_fingerprint = fingerprint.rpartition("-")[2]
        judged = tuple(
            row
            for row in _all(lake, "judge_evaluations", members, JudgeEvaluation)
            if row.eval_fingerprint == eval_fingerprint
        )
        offline = any(row.model == OFFLINE for row in judged)
        return cls(
            sessions=tuple(
                (head.id, head.digest)
                for week, found in sorted(members.items())
                for head in lake.read("raw_sessions", week, SessionHead, only=("id", found))
            ),
            judgements=judged,
            scores=tuple(
                row
                for row in _all(lake, "session_scores", members, SessionScores)
                if (row.model == OFFLINE) == offline
            ),
            rubric_evaluations=tuple(
                row
                for row in _all(lake, "rubric_evaluations", members, RubricEvaluation)
                if (row.model == OFFLINE) == offline
            ),
            snapshots=tuple(_all(lake, "prompt_snapshots", members, PromptSnapshotRow)),
            metadata=tuple(_all(lake, "session_metadata", members, SessionMetadataRow)),
            eval_digest=_eval_digest(lake, eval_fingerprint),
        )


def _eval_digest(lake: Lake, eval_fingerprint: str) -> str:
    judges = list(lake.read(JUDGE_SETS, eval_fingerprint, Judge))
    return eval_digest(judges) if judges else ""


def _standing(lake: Lake, task: str, fingerprint: str, made_from: str) -> StoredTrainingSet | None:
    """Return what stands already, when it is made from the same and its files are whole."""
    stamp = lake.stamp(INDEX, f"{task}/{fingerprint}")
    if stamp is None or stamp.inputs != made_from:
        return None
    rows = list(lake.read(INDEX, f"{task}/{fingerprint}", TrainingSetRow))
    lines = lake.read_bytes(training_path(task, fingerprint))
    card = lake.read_bytes(training_path(task, fingerprint, ".card.md"))
    if len(rows) != 1 or lines is None or card is None:
        return None
    digests = hashlib.sha256(lines).hexdigest(), hashlib.sha256(card).hexdigest()
    if digests != (rows[0].lines_digest, rows[0].card_digest):
        return None
    path = lake.path(training_path(task, fingerprint))
    return StoredTrainingSet(row=rows[0], path=path, card=card.decode(), changed=False)


def _all(lake: Lake, table: str, members: Members, row_type: type[Row]) -> Iterator[Row]:
    """Yield the members' rows of a table."""
    for week, found in sorted(members.items()):
        yield from lake.read(table, week, row_type, only=("session_id", found))
