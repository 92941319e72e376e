"""Training sets: the list of them, and the lines of one."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.errors import InputError
from debrief.training.store import INDEX, LINES, LineRow, TrainingSetRow, training_set_of
from debrief.view.templating import Page

router = APIRouter()


@router.get("/training")
def training_sets(page: Page) -> Response:
    """List the training sets."""
    rows = list(page.lake.rows(INDEX, TrainingSetRow))
    return page.render("training/list.html", title="Training sets", sets=rows)


@router.get("/training/{task}/{pair}")
def training_set(page: Page, task: str, pair: str) -> Response:
    """Show what a training set holds, and what it leaves out."""
    row = training_set_of(page.lake, task, pair)
    if row is None:
        raise InputError(f"{task}/{pair}", "is no training set", "Choose one of the list.")
    lines = list(page.lake.read(LINES, f"{task}/{pair}", LineRow))
    return page.render("training/set.html", title=f"{task}/{pair}", row=row, lines=lines)
