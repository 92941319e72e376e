"""Reports: the comparison of models and prompts, and where the pages are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from debrief.content import folder
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.verdict import SessionVerdict
from debrief.signals.schema import TABLE as SIGNALS
from debrief.snapshots.model import fingerprint_names
from debrief.stages.run import StageRun
from debrief.stages.table import TableStage, upstream
from debrief.training.leaderboard import (
    Leaderboard,
    LeaderboardRow,
    compared_sessions,
    leaderboard,
    tasks_of,
)
from debrief.weekly import DONE

ALL = "all"
FORM = "6"
"""Raised when the same sessions give other rows."""
PAGE = "2"
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


class _OfWeek(Struct, frozen=True):
    session_id: str


def report_inputs(
    lake: Lake, week: str, verdicts: Mapping[str, SessionVerdict] | None = None
) -> str:
    """Return a digest of a week's page: this version, and the verdicts, which labels change.

    Args:
        lake: with the week's signals.
        week: of the page.
        verdicts: on sessions of any week, where several pages are asked about; read when None.
    """
    verdicts = verdicts_in(lake, [week]) if verdicts is None else verdicts
    sessions = {row.session_id for row in lake.read(SIGNALS, week, _OfWeek)}
    of_week = sorted((id_, verdicts[id_].verdict) for id_ in sessions & verdicts.keys())
    return digest_of(report_version(), of_week)


def report_is_current(
    lake: Lake, week: str, verdicts: Mapping[str, SessionVerdict] | None = None
) -> bool:
    """Return whether a week's page was made of its digest's inputs; see ``report_inputs``."""
    stamp = lake.stamp(DONE, week)
    return stamp is not None and stamp.inputs == report_inputs(lake, week, verdicts)


def comparison_of(run: StageRun) -> Leaderboard:
    """Return how models and prompts compare."""

    def made() -> Leaderboard:
        sessions = compared_sessions(run.lake, all_verdicts(run), _tasks(run))
        return leaderboard(sessions, fingerprint_names(run.lake))

    return run.once("comparison", made)


def all_verdicts(run: StageRun) -> Mapping[str, SessionVerdict]:
    """Return the verdicts on all sessions of the lake."""
    return run.once("verdicts", lambda: verdicts_in(run.lake))


def _tasks(run: StageRun) -> Mapping[str, str]:
    return run.once("compared tasks", lambda: tasks_of(run.lake))


def _inputs(run: StageRun, partition: str) -> str:
    lake = run.lake
    return digest_of(
        FORM,
        sorted(_tasks(run).items()),
        sorted((id_, verdict.verdict) for id_, verdict in all_verdicts(run).items()),
        [
            upstream(lake, SIGNALS, "session_metadata", week=week)
            for week in lake.partitions("session_metadata")
        ],
    )


def _rows(run: StageRun, partition: str, stored: list[LeaderboardRow]) -> Iterable[LeaderboardRow]:
    return comparison_of(run).prompts


FINGERPRINT_LEADERBOARD = TableStage(
    table="fingerprint_leaderboard", row_type=LeaderboardRow, inputs=_inputs, make=_rows
)


def reports_are_current(run: StageRun) -> bool:
    """Return whether the comparison of models and prompts is up to date, with its page."""
    pages = run.lake.names("reports")
    return LEADERBOARD_PAGE in pages and FINGERPRINT_LEADERBOARD.is_current(run, ALL)
