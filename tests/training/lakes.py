"""A lake in a folder with sessions that every stage before training has dealt with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow, SubagentPrompt
from debrief.training.manifest import manifest_pairs, write_manifest
from debrief.training.optimisation import LEAST_HELD_OUT
from debrief.training.options import training_options
from debrief.training.selection import observed_pairs
from debrief.training.store import StoredTrainingSet, store_training_set
from tests.training.scenario import (
    FINGERPRINT,
    MONDAY,
    judgement,
    metadata,
    rubric_evaluation,
    says,
    scores,
    session,
    signals,
    snapshot,
    turn,
)

TASK = "checkout"


def lake_of(
    folder: Path, sessions: Iterable[Session], quality: Mapping[str, float] | None = None
) -> Lake:
    """File sessions and all that was said of them."""
    lake = Lake(str(folder))
    add(lake, sessions, quality)
    return lake


def add(
    lake: Lake,
    sessions: Iterable[Session],
    quality: Mapping[str, float] | None = None,
    *,
    reviewed: bool = True,
    **fields: Any,
) -> None:
    """Write the weeks that sessions fall into: all of a week's at once.

    Args:
        lake: that they are written to.
        sessions: the sessions.
        quality: by session id; 0.7 for others.
        reviewed: whether there are reviews and judgements, as without a model there are none.
        fields: of the reviews.
    """
    weeks: dict[str, list[Session]] = defaultdict(list)
    for one in sessions:
        weeks[week_of(one.started)].append(one)
    given = quality or {}
    for week, members in weeks.items():
        lake.write("raw_sessions", week, members, Session)
        lake.write("session_metadata", week, map(metadata, members), SessionMetadataRow)
        lake.write("prompt_snapshots", week, map(snapshot, members), PromptSnapshotRow)
        lake.write(SIGNALS, week, map(signals, members), SessionSignals)
        if not reviewed:
            continue
        scored = [scores(member, given.get(member.id, 0.7), **fields) for member in members]
        lake.write("session_scores", week, scored, SessionScores)
        lake.write("judge_evaluations", week, map(judgement, members), JudgeEvaluation)
        lake.write("rubric_evaluations", week, map(rubric_evaluation, members), RubricEvaluation)


def stored(
    lake: Lake, task: str = TASK, fingerprint: str = FINGERPRINT, **options: Any
) -> StoredTrainingSet:
    """Make the training set of a pair, and name it in the manifest beside those that are there."""
    members = observed_pairs(lake)[task, fingerprint]
    made = store_training_set(lake, task, fingerprint, members, training_options(options))
    write_manifest(lake, {*(manifest_pairs(lake) or ()), (task, fingerprint)})
    return made


def lake_of_lessons(folder: Path) -> Lake:
    """File ten sessions under a main prompt and a subagent's, and make their training set."""
    sessions = [
        session(
            f"s{n:02d}",
            turn(f"Fix part {n} and its word{n}.", says(f"Did it for part {n}, word{n}.")),
            started=MONDAY + timedelta(weeks=n),
            repository=f"repo{n}",
        )
        for n in range(20)
    ]
    made = lake_of(folder, sessions)
    for one in sessions:
        subagents = (SubagentPrompt("reviewer", "Review it."),)
        row = replace(snapshot(one, "Be brief."), subagents=subagents)
        made.write("prompt_snapshots", week_of(one.started), [row], PromptSnapshotRow)
    kept = stored(made, eval_share=0.5).row
    assert kept.train > 1
    assert kept.eval >= LEAST_HELD_OUT
    return made
