"""Reports: what a run did, which prompts, tools and models do better, and each week in one page."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

import dagster as dg
from msgspec.structs import replace

from assets import versions
from assets.evaluations import judge_evaluations, session_scores
from assets.outcomes import labels
from assets.partitions import all_of
from assets.presentation import markdown, picture
from assets.rubrics import rubric_evaluations, rubrics
from assets.sessions import raw_sessions, session_metadata
from assets.training import FOLLOWS
from assets.weekly import COUNT, OFF, Metadata, StageRun, fill, stage, upstream, weekly_asset
from debrief.judging.model import JudgeEvaluation
from debrief.keys import digest_of
from debrief.rubrics.calibrating import calibrations_in
from debrief.scoring.model import SessionScores
from debrief.snapshots.model import SessionMetadataRow, fingerprint_names
from debrief.training.decomposition import (
    WeeklyMove,
    moves_markdown,
    moves_plot,
    scores_over_weeks_plot,
    weekly_moves,
)
from debrief.training.leaderboard import (
    LeaderboardRow,
    leaderboard,
    leaderboard_markdown,
    leaderboard_plot,
    work_of,
)
from debrief.view import links
from debrief.weekly import Done, added_up, headline, page_of, report_of
from resources import account_of

_ROOT, _BACKFILL = "dagster/root_run_id", "dagster/backfill"


def done_with(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[Done]:
    """Return what was made by a run, the runs that it retries, and those of its backfill."""
    backfill, root = run.tags.get(_BACKFILL), account_of(run)
    runs = {run.run_id: run}
    for tag, value in ((_BACKFILL, backfill), (_ROOT, root if root != run.run_id else None)):
        if value:
            filters = dg.RunsFilter(tags={tag: value})
            runs |= {each.run_id: each for each in instance.get_runs(filters)}
    if (first := instance.get_run_by_id(root)) is not None:
        runs[root] = first
    parts: dict[tuple[str, str], list[Done]] = {}
    for run_id in runs:
        records = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        for part in done_in(each.dagster_event for each in records if each.dagster_event):
            parts.setdefault((part.stage, part.partition), []).append(part)
    return [
        replace(
            added_up(stage, each), partition=partition, rows=each[-1].rows, failed=each[-1].failed
        )
        for (stage, partition), each in parts.items()
    ]


def done_in(events: Iterable[dg.DagsterEvent]) -> Iterator[Done]:
    """Yield what was made of each partition, in the order of the events."""
    for event in events:
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            made = event.step_materialization_data.materialization
            if OFF not in made.metadata:
                yield _done(made)


def _done(materialization: dg.AssetMaterialization) -> Done:
    values = {name: value.value for name, value in materialization.metadata.items()}
    count = Counter({name: each for name, each in values.items() if isinstance(each, int)})
    cost, unknown = values.get("cost_usd"), None if count["calls"] else 0.0
    return Done(
        stage=materialization.asset_key.to_user_string(),
        partition=materialization.partition or "",
        rows=count["dagster/partition_row_count"] or count["dagster/row_count"],
        fresh=count["made_now"],
        **{name: count[name] for name in ("failed", "calls", "input_tokens", "output_tokens")},
        cost_usd=float(cost) if isinstance(cost, int | float) else unknown,
    )


TABLE, MOVES, ALL = "fingerprint_leaderboard", "weekly_moves", "all"
FORM = "4"
"""Raised when the same sessions give other rows or pictures."""
PAGE = "reports/fingerprint_leaderboard.md"


@stage(
    group_name="reports",
    code_version=versions.LEADERBOARD,
    automation_condition=FOLLOWS,
    deps=[
        labels,
        *map(all_of, (raw_sessions, session_scores, judge_evaluations, session_metadata)),
    ],
)
def fingerprint_leaderboard(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Prompt fingerprint by tool and model: how many sessions are done and checked, with 95 %
    intervals; beside it overall quality, judges and efficiencies.

    Only what is comparable is compared: within each set of judges and scorer, sessions on the same
    task, or in the same repository on work of the same kind and size. And when the weekly mean
    moved: how much of it came with other prompts, models, judges or tasks.
    """
    run = StageRun(context)
    lake = run.lake
    weeks = lake.partitions("session_scores")
    made_from = ("session_scores", "session_metadata", "judge_evaluations")
    work = work_of(lake)
    worked_on = sorted((id_, one.task, one.growth) for id_, one in work.items())
    calibrations = calibrations_in(lake)
    inputs = digest_of(
        *(FORM, worked_on, calibrations.digest),
        [upstream(lake, *made_from, week=week) for week in weeks],
    )

    def scores() -> Iterator[SessionScores]:
        return map(calibrations.applied, lake.rows("session_scores", SessionScores, weeks))

    metadata = partial(lake.rows, "session_metadata", SessionMetadataRow, weeks)
    judged = partial(lake.rows, "judge_evaluations", JudgeEvaluation, weeks)
    board = fill(
        run,
        TABLE,
        ALL,
        LeaderboardRow,
        inputs,
        lambda _: leaderboard(scores(), metadata(), judged(), work),
    )
    moves = fill(run, MOVES, ALL, WeeklyMove, inputs, lambda _: weekly_moves(scores(), metadata()))
    unchanged = board.skipped and moves.skipped
    names = fingerprint_names(lake)
    ranking, moved = leaderboard_markdown(board.rows, names), moves_markdown(moves.rows, names)
    lake.write_bytes(PAGE, f"{ranking}\n## What moved the weekly mean\n\n{moved}".encode())

    def drawn(name: str, words: str, plot: Callable[[], bytes]) -> dg.MarkdownMetadataValue:
        png = lake.read_bytes(f"reports/{name}.png") if unchanged else None
        if png is None:
            png = plot()
            lake.write_bytes(f"reports/{name}.png", png)
        return picture(png, words)

    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(board.rows),
            "shown_at": dg.MetadataValue.url("/prompts"),
            "made_now": board.fresh,
            "leaderboard": markdown(ranking),
            "picture": drawn(
                TABLE, "sessions done and checked", lambda: leaderboard_plot(board.rows)
            ),
            "moves": markdown(moved),
            "moves_picture": drawn(
                MOVES, "what the weekly mean moved by", lambda: moves_plot(moves.rows)
            ),
            "over_weeks": drawn(
                "scores_over_weeks",
                "overall quality over the weeks",
                lambda: scores_over_weeks_plot(scores()),
            ),
        }
    )


@weekly_asset(
    group_name="reports",
    code_version=versions.WEEKLY_REPORT,
    deps=[
        *(judge_evaluations, session_scores, rubric_evaluations, rubrics),
        fingerprint_leaderboard,
    ],
)
def weekly_report(run: StageRun, week: str) -> Metadata | None:
    """One page a week: what the run did, what it cost, what failed and why, and what changed since
    the week before.

    Also `reports/<week>.md` in the lake. A run that did nothing new leaves the page of the one
    that did. The headline of the run's last week is sent where messages go.
    """
    lake = run.lake
    if lake.stamp("raw_sessions", week) is None:
        return None
    done = run.once("done", lambda: done_with(run.context.instance, run.context.run))
    names_in = run.once("names", lambda: cache(fingerprint_names))
    report = report_of(lake, week, done, names_in)
    stored = lake.read_bytes(report_path(week))
    path = links.page_path("weeks", week)
    page = page_of(report, links.address(path))
    if stored is not None and not report.did_something:
        page = stored.decode()
    written = lake.write_bytes(report_path(week), page.encode())

    def last_week() -> str:
        """Return the last of the run's weeks that holds sessions."""
        read = set(lake.partitions("raw_sessions"))
        return max(read.intersection(run.context.partition_keys), default="")

    scheduled = SCHEDULE_TAG in run.context.run.tags
    if week == run.once("last week", last_week) and (report.did_something or scheduled):
        run.webhook.send(run.context.log, f"Debrief: {headline(report)}.", run.context.run_id)
    verdicts = report.now.verdicts
    figures = {
        "mean_overall_quality": report.now.quality,
        "judges_mean": report.now.judges_mean,
        "cost_usd_of_what_stands": report.now.cost_usd,
    }
    return {
        COUNT: len(report.now.heads),
        "page": markdown(page),
        "shown_at": dg.MetadataValue.url(path),
        "path": dg.MetadataValue.path(written.path),
        "failures": len(report.now.failures),
        "with_a_verdict": verdicts.known,
        "cannot_tell": verdicts.unknown,
        **{key: round(value, 6) for key, value in figures.items() if value is not None},
        "summary": headline(report) + ("" if written.changed else " (page unchanged)"),
    }


SCHEDULE_TAG = "dagster/schedule_name"


def report_path(week: str) -> str:
    """Return where a week's page is in the lake."""
    return f"reports/{week}.md"
