"""The first page: this week against the last, because of what, and where to look."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.lake import Lake
from debrief.rubrics.model import RUBRICS, Rubric
from debrief.summary import Failure, content_of
from debrief.training.store import INDEX, TrainingSetRow
from debrief.view.index import Index
from debrief.view.templating import Page
from debrief.view.weeks import drawn, move_of, weeks_of

router = APIRouter()
_SESSIONS, _RUBRICS, _SETS, _FAILURES = 5, 6, 6, 6
"""How many the page shows of each."""


@router.get("/")
def home(page: Page) -> Response:
    """Show the newest week with sessions, what moved it, and what there is to look at."""
    weeks = weeks_of(page.index)
    if not weeks:
        return page.render("empty.html", title="Home")
    newest = weeks[0].week
    scored = "week = ? AND quality IS NOT NULL"
    half = -(-weeks[0].scored // 2)
    worst, best = (
        page.index.sessions(scored, (newest,), f"{order}, started DESC", min(_SESSIONS, count))
        for order, count in (("quality", half), ("quality DESC", weeks[0].scored - half))
    )
    failures = _failures(page.lake, newest)
    return page.render(
        "home.html",
        title="Home",
        weeks=weeks,
        move=move_of(page.lake, newest),
        worst=worst,
        best=best,
        failures=failures[:_FAILURES],
        failed=len(failures),
        rubrics=_rubrics_that_hold(page.lake)[:_RUBRICS],
        sets=_newest_sets(page.lake, page.index)[:_SETS],
        **drawn(weeks),
    )


def _failures(lake: Lake, week: str) -> tuple[Failure, ...]:
    """Return what failed in a week; what failed alike is one."""
    return tuple(dict.fromkeys(content_of(lake, [week]).failures))


def _rubrics_that_hold(lake: Lake) -> list[Rubric]:
    """Return the rubrics whose interval on unseen sessions leaves chance out."""
    held = [row for row in lake.rows(RUBRICS, Rubric) if (row.held_out_low or 0.0) > 0.0]
    return sorted(held, key=lambda row: -(row.held_out_effect or 0.0))


def _newest_sets(lake: Lake, index: Index) -> list[TrainingSetRow]:
    """Return the training sets with samples, those with the newest sessions first."""
    newest = {
        (row["task"], row["fingerprint"]): row["started"]
        for row in index.select(
            "SELECT task, fingerprint, max(started) AS started FROM sessions GROUP BY 1, 2"
        )
    }
    sets = [row for row in lake.rows(INDEX, TrainingSetRow) if row.samples]

    def started(row: TrainingSetRow) -> str:
        return str(newest.get((row.task, row.fingerprint.rpartition("-")[0]), ""))

    return sorted(sets, key=started, reverse=True)
