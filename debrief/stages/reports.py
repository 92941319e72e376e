"""Reports: the comparison of models and prompts, and each week in one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from debrief.content import folder
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.verdict import SessionVerdict
from debrief.snapshots.model import fingerprint_names
from debrief.stages.evaluations import JUDGE_EVALUATIONS, LANGFUSE_SCORES, SESSION_SCORES
from debrief.stages.outcomes import LABELS
from debrief.stages.rubrics import FINAL, RUBRIC_EVALUATIONS
from debrief.stages.run import StageRun
from debrief.stages.sessions import PROMPT_SNAPSHOTS, RAW_SESSIONS, SESSION_METADATA
from debrief.stages.shown import Shown, ShownPage
from debrief.stages.signals import SESSION_SIGNALS
from debrief.stages.stage import ALL, Read, Stage
from debrief.training.leaderboard import (
    Leaderboard,
    LeaderboardRow,
    compared_sessions,
    leaderboard,
    leaderboard_markdown,
    tasks_of,
)
from debrief.weekly import DONE, WeekDone

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
    sessions = {row.session_id for row in lake.read(SESSION_SIGNALS.table, week, _OfWeek)}
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


def _compared(run: StageRun, partition: str) -> object:
    verdicts = sorted((id_, said.verdict) for id_, said in all_verdicts(run).items())
    return sorted(_tasks(run).items()), verdicts


def _rows(run: StageRun, partition: str, stored: list[LeaderboardRow]) -> Iterable[LeaderboardRow]:
    return comparison_of(run).prompts


def _leaderboard_shown(run: StageRun, partition: str, rows: list[LeaderboardRow]) -> Shown:
    return Shown(f"{len(rows)} rows", {"leaderboard": ShownPage(leaderboard_page(run))})


def leaderboard_page(run: StageRun) -> str:
    """Return the comparison as a page."""
    return leaderboard_markdown(comparison_of(run), fingerprint_names(run.lake))


FINGERPRINT_LEADERBOARD = Stage(
    table="fingerprint_leaderboard",
    doc="""Models, and prompts by tool and model: how many of their reviewed sessions are complete,
with 95 % intervals from five of them on; beside it what a session costs and takes.

Compared are sessions on the same task, else in the same repository. Where that cannot be told, the
page says how many more reviewed sessions would do.""",
    group="reports",
    row_type=LeaderboardRow,
    partitions="all",
    version=lambda: FORM,
    reads=(
        SESSION_SIGNALS,
        SESSION_METADATA,
        *(Read(RAW_SESSIONS), Read(PROMPT_SNAPSHOTS), Read(SESSION_SCORES), Read(LABELS)),
    ),
    made_from=_compared,
    make=_rows,
    shown=_leaderboard_shown,
    page="/prompts",
)

WEEKLY_REPORT = Stage(
    asset="weekly_report",
    table=DONE,
    doc="""One page a week: what the run did, what it cost, what failed and why, and what changed
since the week before.

Also `reports/<week>.md` in the lake. After a run that did nothing new, the page still says what the
one before did. The headline of the run's last week is sent where messages go.""",
    group="reports",
    row_type=WeekDone,
    version=report_version,
    reads=(
        *(RAW_SESSIONS, SESSION_SIGNALS, PROMPT_SNAPSHOTS, JUDGE_EVALUATIONS, LABELS),
        *(SESSION_SCORES, LANGFUSE_SCORES, FINAL, RUBRIC_EVALUATIONS, FINGERPRINT_LEADERBOARD),
    ),
)


def reports_are_current(run: StageRun) -> bool:
    """Return whether the comparison of models and prompts is up to date, with its page."""
    pages = run.lake.names("reports")
    return LEADERBOARD_PAGE in pages and FINGERPRINT_LEADERBOARD.is_current(run, ALL)
