"""Scoring: six dimensions for each session, whatever its length."""

from collections.abc import Iterable

from assets import versions
from assets.presentation import preview
from assets.sessions import raw_sessions
from assets.weekly import (
    Filled,
    Metadata,
    StageRun,
    all_ok,
    evaluated,
    score_check,
    upstream,
    weekly_stage,
)
from debrief.digests import digest_of
from debrief.scoring.dimensions import problems_of
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import score_week


def _inputs(run: StageRun, week: str) -> str:
    return digest_of(
        upstream(run.lake, "raw_sessions", week=week), run.evaluators.scoring_fingerprint
    )


def _score(run: StageRun, week: str, stored: list[SessionScores]) -> Iterable[SessionScores]:
    by = run.evaluators
    return evaluated(
        run,
        week,
        stored,
        lambda sessions, previous: score_week(
            sessions, by.chunk_scorer, previous, concurrency=by.concurrency
        ),
        is_own=lambda row: row.scoring_fingerprint == by.scoring_fingerprint,
    )


@weekly_stage(
    SessionScores,
    inputs=_inputs,
    make=_score,
    is_final=all_ok,
    calls_models=True,
    scoped=True,
    group_name="scoring",
    code_version=versions.SCORING,
    deps=[raw_sessions],
    description=(
        "Six dimensions and `overall_quality` for each session, each with a rationale that names "
        "its evidence by turn. A session too long for one call is cut into chunks by tokens, "
        "none over budget, and put together again. Beside them the two computed efficiencies: "
        "code growth per 1,000 tokens and per human turn."
    ),
)
def session_scores(run: StageRun, week: str, filled: Filled[SessionScores]) -> Metadata:
    """Score a week's sessions."""
    fingerprint = run.evaluators.scoring_fingerprint
    current = [row for row in filled.rows if row.scoring_fingerprint == fingerprint]
    scores = [row.overall_quality for row in current if row.overall_quality is not None]
    chunked = sum(len(row.chunks) > 1 for row in current)
    return {
        "scores": preview(
            ("session", "overall", *_NAMES, "chunks"), [_line(row) for row in current]
        ),
        **({"mean_overall_quality": round(sum(scores) / len(scores), 4)} if scores else {}),
        "in_several_chunks": chunked,
        "failed": sum(row.status == "failed" for row in current),
        "scored_by": run.evaluators.name,
        "summary": f"{len(scores)} scored, {chunked} in several chunks",
    }


_NAMES = ("task", "execution", "tools", "resources", "security", "user")


def _line(row: SessionScores) -> tuple[object, ...]:
    if row.status == "failed":
        return (row.session_id, row.failure, *("" for _ in _NAMES), "")
    values = tuple(verdict.category or verdict.value for verdict in row.verdicts)
    return (row.session_id, row.overall_quality, *values, len(row.chunks))


session_scores_within_range = score_check(
    "session_scores_within_range",
    session_scores,
    SessionScores,
    lambda row: "; ".join(problems_of(row)),
    description="Every score is within its range and every category one of its dimension's.",
)
