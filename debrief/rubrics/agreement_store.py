"""The agreement stage: from the lake's tables and people's labels to rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake, Row
from debrief.langfuse.client import LangfuseClient
from debrief.rubrics.agreement import AGREEMENT, ALL, Agreement, AgreementRow, Roll, compare
from debrief.rubrics.labels import (
    Labels,
    joined,
    labels_from_csv,
    labels_from_feedback,
    labels_from_langfuse,
)
from debrief.rubrics.measures import Measure, measures_of
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.scoring.model import SCORE_NAMES, SessionScores
from debrief.sessions.heads import SessionHead
from debrief.settings import Settings


def read_labels(
    settings: Settings, client: LangfuseClient | None, repository: Path | None
) -> Labels:
    """Read people's labels from everywhere that is configured.

    ``DEBRIEF_LABELS`` names CSV files, and ``DEBRIEF_FEEDBACK`` the ``.debrief`` folders whose
    ``human_feedback.md`` files are read (both separated as PATH is); the latter is the
    repository's own by default.

    Args:
        settings: of this machine.
        client: of a Langfuse server; None when none is configured.
        repository: its top folder; None without one.

    Raises:
        InputError: a CSV file cannot be used.
    """
    folders = settings.feedback or ([repository / ".debrief"] if repository is not None else [])
    parts = [labels_from_csv(path) for path in settings.labels]
    parts.append(labels_from_feedback(folders))
    if client is not None:
        parts.append(labels_from_langfuse(client))
    return joined(parts)


def store_agreement(lake: Lake, labels: Labels) -> Agreement:
    """Compare labels with what the lake holds, and write the rows.

    Raises:
        InputError: no label matches; the rows of an earlier time are taken away, so that nothing
            relies on them.
    """
    try:
        agreement = compare(labels, _measures(lake), _roll(lake)) if labels.labels else None
    except InputError:
        lake.write(AGREEMENT, ALL, (), AgreementRow)
        raise
    if agreement is None:
        agreement = Agreement(rows=(), labels=0, matched=0, unmatched=(), problems=labels.problems)
    lake.write(AGREEMENT, ALL, agreement.rows, AgreementRow)
    return agreement


def _measures(lake: Lake) -> list[Measure]:
    return measures_of(
        _all(lake, "judge_evaluations", JudgeEvaluation),
        _all(lake, "session_scores", SessionScores),
        _all(lake, "rubric_evaluations", RubricEvaluation),
        (rubric for name in SCORE_NAMES for rubric in lake.read("rubrics", name, Rubric)),
    )


def _roll(lake: Lake) -> Roll:
    heads = _all(lake, "raw_sessions", SessionHead)
    return Roll((head.id, head.task, head.started) for head in heads)


def _all(lake: Lake, table: str, row_type: type[Row]) -> Iterator[Row]:
    for week in lake.partitions(table):
        yield from lake.read(table, week, row_type)
