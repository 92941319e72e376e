"""The week in one page: what the run did, what it cost, what failed, what changed."""

import dagster as dg

from assets import versions
from assets.doings import done_for
from assets.judging import judge_evaluations
from assets.partitions import all_of
from assets.presentation import markdown
from assets.reports import fingerprint_leaderboard
from assets.rubrics import rubric_evaluations, rubrics
from assets.scoring import session_scores
from assets.weekly import each_week, weekly_asset
from debrief.weekly.report import headline, page_of, report_of
from resources.attendance import PARENT_TAG, account_of
from resources.lake import LakeResource


@weekly_asset(
    group_name="reports",
    code_version=versions.WEEKLY_REPORT,
    deps=[
        judge_evaluations,
        session_scores,
        rubric_evaluations,
        all_of(rubrics),
        fingerprint_leaderboard,
    ],
    description=(
        "One page a week: what the run did, what it cost, what failed and why, and what changed "
        "since the week before. Also `reports/<week>.md` in the lake. A run that did nothing new "
        "leaves the page of the one that did."
    ),
)
def weekly_report(
    context: dg.AssetExecutionContext, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Write the weeks' pages."""
    tables = lake.open()
    is_part = PARENT_TAG in context.run.tags
    done = done_for(context.instance, account_of(context.run)) if is_part else []

    digests: dict[str, str] = {}

    def one_week(week: str) -> dict[str, object]:
        name = report_path(week)
        report = report_of(tables, week, done)
        standing = tables.read_bytes(name)
        page = page_of(report)
        if standing is not None and not report.did_something:
            page = standing.decode()
        written = tables.write_bytes(name, page.encode())
        digests[week] = written.digest
        figures = {
            "mean_overall_quality": report.now.quality,
            "judges_mean": report.now.judged,
            "cost_usd_of_what_stands": report.now.cost_usd,
        }
        return {
            "dagster/partition_row_count": report.now.sessions,
            "page": markdown(page),
            "path": dg.MetadataValue.path(written.path),
            "failures": report.now.failed,
            **{key: round(value, 6) for key, value in figures.items() if value is not None},
            "told": headline(report) + ("" if written.changed else " (page unchanged)"),
        }

    return each_week(context, tables, one_week, lambda: digests)


def report_path(week: str) -> str:
    """Return where a week's page is in the lake."""
    return f"reports/{week}.md"
