"""The observed pairs of task and fingerprint, and the sessions of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.snapshots.fingerprint import comparison_key
from debrief.snapshots.model import UNKNOWN, SessionMetadataRow

Pair = tuple[str, str]
Members = dict[str, set[str]]
"""Session ids by week."""


def pairs_of(
    metadata: Iterable[SessionMetadataRow], judged: Iterable[JudgeEvaluation]
) -> dict[Pair, set[str]]:
    """Return the session ids of each (task, fingerprint) pair among some sessions.

    A session that was judged by two sets of judges belongs to two pairs; one that was not judged
    at all belongs to the pair whose eval fingerprint is ``unknown``.
    """
    fingerprints: dict[str, set[str]] = defaultdict(set)
    for judgement in judged:
        fingerprints[judgement.session_id].add(judgement.eval_fingerprint)
    found: dict[Pair, set[str]] = defaultdict(set)
    for row in metadata:
        for name in fingerprints.get(row.session_id) or {UNKNOWN}:
            found[row.task, comparison_key(row.prompt_fingerprint, name)].add(row.session_id)
    return dict(found)


def observed_pairs(lake: Lake, weeks: Iterable[str] | None = None) -> dict[Pair, Members]:
    """Return every pair observed in ``weeks`` (all, when None), with its sessions by week."""
    found: dict[Pair, Members] = defaultdict(dict)
    for week in lake.partitions("session_metadata") if weeks is None else weeks:
        metadata = lake.read("session_metadata", week, SessionMetadataRow)
        judged = lake.read("judge_evaluations", week, JudgeEvaluation)
        for pair, ids in pairs_of(metadata, judged).items():
            found[pair][week] = ids
    return dict(found)
