"""Reports: the leaderboard of prompts, what moved the weekly mean, and where the pages are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from debrief.content import folder
from debrief.judging.model import JudgeEvaluation
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.rubrics.agreement_report import AGREEMENT_PAGE, agreement_is_current
from debrief.rubrics.calibrating import Calibrations, calibrations_in
from debrief.scoring.model import SessionScores
from debrief.snapshots.model import SessionMetadataRow
from debrief.stages.run import StageRun
from debrief.stages.table import TableStage, upstream
from debrief.training.decomposition import WeeklyMove, weekly_moves
from debrief.training.leaderboard import LeaderboardRow, WorkedOn, leaderboard, work_of
from debrief.weekly import DONE

ALL = "all"
FORM = "5"
"""Raised when the same sessions give other rows or pictures."""
PAGE = "1"
"""Raised when the same week gives another page by other words than those of its template."""
LEADERBOARD_PAGE = "reports/fingerprint_leaderboard.md"


def report_path(week: str) -> str:
    """Return where a week's page is in the lake."""
    return f"reports/{week}.md"


def report_version() -> str:
    """Return what a week's page is made by, beside the lake: pages of other versions are made anew,
    so that all of them speak alike."""
    template = folder("reports") / "week.md"
    return digest_of(PAGE, template.read_text(encoding="utf-8"))


def report_is_current(lake: Lake, week: str) -> bool:
    """Return whether a week's page was made by this version."""
    stamp = lake.stamp(DONE, week)
    return stamp is not None and stamp.inputs == report_version()


def calibrated_scores(run: StageRun) -> Iterator[SessionScores]:
    """Yield the scores of all sessions, each as what it is worth by labels."""
    return map(_calibrations(run).applied, run.lake.rows("session_scores", SessionScores))


def _calibrations(run: StageRun) -> Calibrations:
    return run.once("calibrations", lambda: calibrations_in(run.lake))


def _work(run: StageRun) -> dict[str, WorkedOn]:
    return run.once("work", lambda: work_of(run.lake))


def _metadata(lake: Lake) -> Iterator[SessionMetadataRow]:
    return lake.rows("session_metadata", SessionMetadataRow, lake.partitions("session_scores"))


def _inputs(run: StageRun, partition: str) -> str:
    made_from = ("session_scores", "session_metadata", "judge_evaluations")
    weeks = run.lake.partitions("session_scores")
    return digest_of(
        FORM,
        sorted((id_, worked_on.task, worked_on.growth) for id_, worked_on in _work(run).items()),
        _calibrations(run).digest,
        [upstream(run.lake, *made_from, week=week) for week in weeks],
    )


def _ranked(
    run: StageRun, partition: str, stored: list[LeaderboardRow]
) -> Iterable[LeaderboardRow]:
    lake = run.lake
    weeks = lake.partitions("session_scores")
    judged = lake.rows("judge_evaluations", JudgeEvaluation, weeks)
    return leaderboard(calibrated_scores(run), _metadata(lake), judged, _work(run))


def _moves(run: StageRun, partition: str, stored: list[WeeklyMove]) -> Iterable[WeeklyMove]:
    return weekly_moves(calibrated_scores(run), _metadata(run.lake))


FINGERPRINT_LEADERBOARD = TableStage(
    table="fingerprint_leaderboard", row_type=LeaderboardRow, inputs=_inputs, make=_ranked
)
WEEKLY_MOVES = TableStage(table="weekly_moves", row_type=WeeklyMove, inputs=_inputs, make=_moves)


def reports_are_current(run: StageRun) -> bool:
    """Return whether agreement and the leaderboard are there and up to date, with their pages."""
    return (
        agreement_is_current(run.lake)
        and {AGREEMENT_PAGE, LEADERBOARD_PAGE} <= set(run.lake.names("reports"))
        and all(stage.is_current(run, ALL) for stage in (FINGERPRINT_LEADERBOARD, WEEKLY_MOVES))
    )
