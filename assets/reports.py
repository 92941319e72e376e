"""Reports over everything: which prompts, tools and models do better."""

import dagster as dg

from assets import versions
from assets.automation import FOLLOWS
from assets.judging import judge_evaluations
from assets.partitions import all_of
from assets.presentation import markdown, picture
from assets.scoring import session_scores
from assets.snapshots import session_metadata
from assets.weekly import fill, upstream, working
from debrief.digests import digest_of
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.decomposition import WeeklyMove, moves_markdown, weekly_moves
from debrief.training.leaderboard import LeaderboardRow, leaderboard, leaderboard_markdown
from debrief.training.plots import leaderboard_plot, moves_plot
from resources.lake import LakeResource

TABLE = "fingerprint_leaderboard"
FORM = "2"
"""Raised when the same sessions give other rows."""
MOVES, MOVES_PICTURE = "weekly_moves", "reports/weekly_moves.png"
PAGE, PICTURE = "reports/fingerprint_leaderboard.md", "reports/fingerprint_leaderboard.png"


@dg.asset(
    group_name="reports",
    code_version=versions.LEADERBOARD,
    automation_condition=FOLLOWS,
    owners=["team:debrief"],
    kinds={"python", "parquet"},
    deps=[all_of(session_scores), all_of(judge_evaluations), all_of(session_metadata)],
    description=(
        "Prompt fingerprint by tool and model: how many sessions, mean and 95 % interval of "
        "overall quality, judges and efficiencies. Only what is comparable is compared: each set "
        "of judges and scorer is a group of its own. And when the weekly mean moved: how much of "
        "it came with other prompts, models, judges or tasks."
    ),
)
def fingerprint_leaderboard(
    context: dg.AssetExecutionContext, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Compare prompts, tools and models."""
    tables = lake.open()
    with working(context, tables, TABLE, "all"):
        return _compared(tables)


def _compared(tables: Lake) -> dg.MaterializeResult[None]:
    weeks = tables.partitions("session_scores")
    made_from = digest_of(
        FORM,
        [
            upstream(tables, "session_scores", "session_metadata", "judge_evaluations", week=week)
            for week in weeks
        ],
    )
    filled = fill(
        tables,
        TABLE,
        "all",
        LeaderboardRow,
        made_from,
        lambda _: leaderboard(
            (row for w in weeks for row in tables.read("session_scores", w, SessionScores)),
            (r for w in weeks for r in tables.read("session_metadata", w, SessionMetadataRow)),
            (r for w in weeks for r in tables.read("judge_evaluations", w, JudgeEvaluation)),
        ),
    )
    png = tables.read_bytes(PICTURE) if filled.skipped else None
    if png is None:
        png = leaderboard_plot(filled.rows)
        tables.write_bytes(PICTURE, png)
    moves = fill(
        tables,
        MOVES,
        "all",
        WeeklyMove,
        made_from,
        lambda _: weekly_moves(
            (row for w in weeks for row in tables.read("session_scores", w, SessionScores)),
            (r for w in weeks for r in tables.read("session_metadata", w, SessionMetadataRow)),
        ),
    )
    moved = tables.read_bytes(MOVES_PICTURE) if moves.skipped else None
    if moved is None:
        moved = moves_plot(moves.rows)
        tables.write_bytes(MOVES_PICTURE, moved)
    ranking, told = leaderboard_markdown(filled.rows), moves_markdown(moves.rows)
    tables.write_bytes(PAGE, f"{ranking}\n## What moved the weekly mean\n\n{told}".encode())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(filled.rows),
            "made_now": filled.fresh,
            "leaderboard": markdown(ranking),
            "picture": picture(png, "overall quality with 95 % intervals"),
            "moves": markdown(told),
            "moves_picture": picture(moved, "what the weekly mean moved by"),
        }
    )
