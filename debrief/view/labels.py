"""Labels: what people say of sessions."""

from __future__ import annotations

import csv
import io

from fastapi import APIRouter, Response

from debrief.outcomes.store import all_labels
from debrief.view.templating import Page

router = APIRouter()
_SHOWN = 20


@router.get("/labels/next")
def label_next(page: Page) -> Response:
    """Show the sessions without a label whose quality is the least clear."""
    where, order = "labels = '' AND quality IS NOT NULL", "uncertain DESC, abs(quality - 0.5)"
    found = page.index.sessions(where, order=order, limit=_SHOWN)
    return page.render("sessions.html", title="Label next", sessions=found)


@router.get("/labels.csv")
def labels_csv(page: Page) -> Response:
    """Give out all labels as a table."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("session_id", "name", "value", "source", "rater", "observed_at"))
    for label in all_labels(page.lake):
        when = label.observed_at.isoformat() if label.observed_at else ""
        who = (label.source, label.rater, when)
        writer.writerow((label.session_id, label.name, label.value, *who))
    return Response(out.getvalue(), media_type="text/csv")
