"""Say what is due, from the tables' stamps alone: for commands, sensors and pages."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from debrief.lake import Lake
from debrief.outcomes.gathering import gather_labels
from debrief.outcomes.store import PROBLEMS, LabelProblem
from debrief.redaction.redactor import Redactor
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import UnreadTranscript
from debrief.sessions.scanning import Scan, ScanEntry
from debrief.sessions.store import SCAN_PARTITION, SCAN_TABLE, UNREAD_TABLE, read_from
from debrief.settings import load_settings
from debrief.stages.catalog import weekly_tables
from debrief.stages.friction import LINE_EFFECTS, RECURRING_FRICTION
from debrief.stages.reports import (
    all_verdicts,
    report_is_current,
    report_path,
    reports_are_current,
)
from debrief.stages.rubrics import rubrics_are_current
from debrief.stages.run import StageRun
from debrief.stages.sessions import RAW_SESSIONS, scan_of
from debrief.stages.stage import ALL
from debrief.stages.training import stale_pairs


class Due(Enum):
    """What there is to do for a lake."""

    NOTHING = "nothing"
    OF_ALL_WEEKS = "of all weeks"
    """Only what is made of all weeks together; a run over one of them makes it."""
    WEEKS = "weeks"


def unread(
    lake: Lake, scan: Scan, redactor: Redactor, weeks: Iterable[str] | None = None
) -> dict[str, str]:
    """Return the weeks whose sessions the lake does not have as they are now.

    Args:
        lake: with the sessions that were read.
        scan: what there is.
        redactor: that takes secrets out.
        weeks: to look at; all of the scan by default.

    Returns:
        by week, a digest of what there is of it.
    """
    found: dict[str, str] = {}
    for week in scan.weeks() if weeks is None else weeks:
        made_from = read_from(scan, week, redactor)
        stamp = lake.stamp(RAW_SESSIONS.table, week)
        if stamp is None or stamp.inputs != made_from:
            found[week] = made_from
    return found


def due(run: StageRun, repository: Path | None) -> Due:
    """Return what a run would do.

    What a Langfuse server has of scores and labels has no stamp: where one is configured, only a
    run finds out.

    Args:
        run: over weeks with sessions.
        repository: whose ``human_feedback.md`` files are read; None without one.
    """
    if not run.weeks:
        return Due.NOTHING
    if load_settings().has_langfuse or not _weeks_are_current(run, repository):
        return Due.WEEKS
    return Due.NOTHING if _rest_is_current(run) else Due.OF_ALL_WEEKS


def _weeks_are_current(run: StageRun, repository: Path | None) -> bool:
    """Return whether a run would leave what it makes week by week as it is.

    Labels are gathered for it, since verdicts rest on them.
    """
    lake, pages = run.lake, set(run.lake.names("reports"))
    if unread(lake, scan_of(run), run.redactor, run.weeks):
        return False
    forgotten = Forgotten.of(lake, run.redactor)
    gather_labels(lake, load_settings(), None, repository, forgotten)
    return (
        pages.issuperset(map(report_path, run.weeks))
        and all(report_is_current(lake, week, all_verdicts(run)) for week in run.weeks)
        and all(stage.is_current(run, week) for stage in weekly_tables() for week in run.weeks)
    )


def _rest_is_current(run: StageRun) -> bool:
    """Return whether a run would leave what is made of all weeks as it is, and succeed."""
    return (
        not _has_failed(run)
        and all(stage.is_current(run, ALL) for stage in (RECURRING_FRICTION, LINE_EFFECTS))
        and rubrics_are_current(run)
        and reports_are_current(run)
        and not stale_pairs(run.lake, run.weeks)
    )


def _has_failed(run: StageRun) -> bool:
    """Return whether a server did not answer, or a file of labels cannot be used: a run fails for
    it, and says so each time."""
    lake = run.lake
    read: list[ScanEntry | UnreadTranscript] = [
        *lake.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry),
        *lake.rows(UNREAD_TABLE, UnreadTranscript, run.weeks),
    ]
    problems = lake.read(PROBLEMS, ALL, LabelProblem)
    return any(row.cause == "server" for row in read) or any(problem.whole for problem in problems)
