"""Scoring: six dimensions for each session, whatever its length."""

from collections.abc import Iterator

import dagster as dg

from assets import versions
from assets.made_from import scored_from
from assets.presentation import picture, preview
from assets.scope import scope
from assets.sessions import raw_sessions
from assets.spending import POOL, Spending
from assets.weekly import (
    Metadata,
    checked,
    completed,
    counted,
    each_week,
    fill,
    weekly_asset,
)
from debrief.lake import Lake
from debrief.scoring.dimensions import problems_of
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import score_week
from debrief.sessions.heads import SessionHead
from debrief.training.plots import scores_over_weeks_plot
from resources.evaluator import EvaluatorResource
from resources.lake import LakeResource

TABLE = "session_scores"


@weekly_asset(
    group_name="scoring",
    pool=POOL,
    code_version=versions.SCORING,
    deps=[raw_sessions],
    description=(
        "Six dimensions and `overall_quality` for each session, each with a rationale that names "
        "its evidence by turn. A session too long for one call is cut into chunks by tokens, "
        "none over budget, and put together again. Beside them the two computed efficiencies: "
        "code growth per 1,000 tokens and per human turn."
    ),
)
def session_scores(
    context: dg.AssetExecutionContext, lake: LakeResource, evaluator: EvaluatorResource
) -> dg.MaterializeResult[None]:
    """Score the weeks' sessions."""
    tables = lake.open()
    evaluators = evaluator.open(context.run)
    spending = Spending(evaluators)
    mark = evaluators.scoring_fingerprint

    fresh: list[str] = []

    def one_week(week: str) -> Metadata:
        def make(previous: list[SessionScores]) -> Iterator[SessionScores]:
            made = score_week(
                scope().sessions(tables, week),
                evaluators.chunk_scorer,
                scope().reusable(previous),
                concurrency=evaluators.concurrency,
            )
            own = [row for row in previous if row.scoring_fingerprint == mark]
            yield from completed(tables, week, made, own)
            yield from _of_other_scorers(tables, week, previous, mark)

        filled = fill(
            tables,
            TABLE,
            week,
            SessionScores,
            scored_from(tables, evaluators, week),
            make,
            done=lambda row: row.status == "ok",
            dry=evaluators.dry_run,
            narrowed=True,
        )
        if not filled.skipped and not evaluators.dry_run:
            fresh.append(week)
        current = [row for row in filled.rows if row.scoring_fingerprint == mark]
        marks = [row.overall_quality for row in current if row.overall_quality is not None]
        chunked = sum(len(row.chunks) > 1 for row in current)
        return {
            **counted(filled.rows),
            "scores": preview(
                ("session", "overall", *_NAMES, "chunks"),
                [_line(row) for row in current],
            ),
            **({"mean_overall_quality": round(sum(marks) / len(marks), 4)} if marks else {}),
            "in_several_chunks": chunked,
            "failed": sum(row.status == "failed" for row in current),
            "scored_by": evaluators.name,
            **spending.metadata(),
            "told": f"{len(marks)} scored, {chunked} in several chunks"
            + (" (unchanged)" if filled.skipped else ""),
        }

    result = each_week(context, tables, one_week)
    if fresh:
        plot = scores_over_weeks_plot(
            row
            for week in tables.partitions(TABLE)
            for row in tables.read(TABLE, week, SessionScores)
        )
        context.add_asset_metadata(
            {"over_weeks": picture(plot, "overall quality over the weeks")}, partition_key=fresh[-1]
        )
    return result


_NAMES = ("task", "execution", "tools", "resources", "security", "user")


def _line(row: SessionScores) -> tuple[object, ...]:
    if row.status == "failed":
        return (row.session_id, row.failure, *("" for _ in _NAMES), "")
    said = tuple(verdict.category or verdict.value for verdict in row.verdicts)
    return (row.session_id, row.overall_quality, *said, len(row.chunks))


def _of_other_scorers(
    lake: Lake, week: str, previous: list[SessionScores], mark: str
) -> Iterator[SessionScores]:
    """Keep what other scorers said of sessions that are still the same."""
    digests = {head.id: head.digest for head in lake.read("raw_sessions", week, SessionHead)}
    for row in previous:
        same = digests.get(row.session_id) == row.session_digest
        if row.scoring_fingerprint != mark and row.status == "ok" and same:
            yield row


@dg.asset_check(
    asset=session_scores,
    description="Every score is within its range and every category one of its dimension's.",
)
def session_scores_within_range(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Look at every row of the run's weeks."""
    tables = lake.open()
    rows = [
        row for w in checked(context, tables, TABLE) for row in tables.read(TABLE, w, SessionScores)
    ]
    outside = [(row.session_id, problem) for row in rows for problem in problems_of(row)]
    failed = [(row.session_id, row.failure) for row in rows if row.status == "failed"]
    return dg.AssetCheckResult(
        passed=not outside and not failed,
        severity=dg.AssetCheckSeverity.ERROR if outside else dg.AssetCheckSeverity.WARN,
        metadata={
            "rows": len(rows),
            "outside": preview(("session", "problem"), outside),
            "failed": preview(("session", "reason"), failed),
        },
    )
