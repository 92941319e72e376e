"""Reports over everything: which prompts, tools and models do better."""

import dagster as dg

from assets.judging import judge_evaluations
from assets.partitions import all_of
from assets.presentation import picture
from assets.scoring import session_scores
from assets.snapshots import session_metadata
from debrief.judging.model import JudgeEvaluation
from debrief.scoring.model import SessionScores
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.leaderboard import LeaderboardRow, leaderboard, leaderboard_markdown
from debrief.training.plots import leaderboard_plot
from resources.lake import LakeResource

TABLE = "fingerprint_leaderboard"


@dg.asset(
    group_name="reports",
    owners=["team:debrief"],
    kinds={"python", "parquet"},
    deps=[all_of(session_scores), all_of(judge_evaluations), all_of(session_metadata)],
    description=(
        "Prompt fingerprint by tool and model: how many sessions, mean and 95 % interval of "
        "overall quality, judges and efficiencies. Only what is comparable is compared: each set "
        "of judges and scorer is a group of its own."
    ),
)
def fingerprint_leaderboard(lake: LakeResource) -> dg.MaterializeResult[None]:
    """Compare prompts, tools and models."""
    tables = lake.open()
    weeks = tables.partitions("session_scores")
    rows = leaderboard(
        (row for week in weeks for row in tables.read("session_scores", week, SessionScores)),
        (r for week in weeks for r in tables.read("session_metadata", week, SessionMetadataRow)),
        (r for week in weeks for r in tables.read("judge_evaluations", week, JudgeEvaluation)),
    )
    tables.write(TABLE, "all", rows, LeaderboardRow)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "leaderboard": dg.MetadataValue.md(leaderboard_markdown(rows)),
            "picture": picture(leaderboard_plot(rows), "overall quality with 95 % intervals"),
        }
    )
