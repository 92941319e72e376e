"""Pages of recurring friction: sessions, cost, evidence, the line, and whether it helped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from fastapi import APIRouter, Request, Response

from debrief.errors import InputError
from debrief.friction.line_effects import OUTCOMES_SHOWN
from debrief.friction.schema import ALL, EFFECTS, RECURRING, LineEffect, RecurringFriction
from debrief.view.columns import WIDE, count_columns
from debrief.view.templating import Page, PageContext, environment
from debrief.view.values import refused

router = APIRouter()
environment().globals |= {"outcomes_shown": OUTCOMES_SHOWN}
_SESSIONS = 8
"""How many sessions a friction's page lists."""


def known_friction(page: PageContext) -> list[RecurringFriction]:
    """Return the recurring friction of the lake, what was seen last first; read again only when
    its table changed."""
    now, state = page.lake.versions(RECURRING), page.request.app.state
    if getattr(state, "friction", (None,))[0] != now:
        rows = page.lake.read(RECURRING, ALL, RecurringFriction)
        ordered = sorted(rows, key=lambda row: (row.last_seen, row.id), reverse=True)
        state.friction = now, ordered
    known: list[RecurringFriction] = state.friction[1]
    return known


def was_looked_for(page: PageContext) -> bool:
    """Return whether a run has looked for friction: without one, none is known or denied."""
    return bool(page.lake.versions(RECURRING))


def effects_by_friction(page: PageContext) -> Mapping[str, LineEffect]:
    """Return what became of each friction that a line is about, by its id."""
    return {row.friction_id: row for row in page.lake.read(EFFECTS, ALL, LineEffect)}


@router.get("/friction")
def frictions(page: Page, request: Request) -> Response:
    """List the recurring friction of all repositories, or of the one that the address names."""
    repository = request.query_params.get("repository", "")
    known = known_friction(page)
    repositories = Counter(row.repository for row in known)
    if repository and repository not in repositories:
        raise refused("repository", repository, "has no recurring friction", repositories)
    return page.render(
        "friction/list.html",
        title="Friction",
        known=len(known),
        was_looked_for=was_looked_for(page),
        found=[row for row in known if repository in ("", row.repository)],
        repository=repository,
        repositories=sorted(repositories.items()),
        effects=effects_by_friction(page),
    )


@router.get("/friction/{friction_id}")
def friction(page: Page, friction_id: str) -> Response:
    """Show one friction: what it took, two places, the line that stops it, when it happened."""
    one = next((row for row in known_friction(page) if row.id == friction_id), None)
    if one is None:
        raise InputError(
            friction_id, "is not a recurring friction of this lake", "Choose one of the list."
        )
    counts = page.index.select(
        "SELECT week, sum(id IN (SELECT session_id FROM friction WHERE friction = ?)) "
        "FROM sessions WHERE repository = ? GROUP BY week ORDER BY week",
        (friction_id, one.repository),
    )
    quoted = {event.session_id for event in one.examples}
    return page.render(
        "friction/friction.html",
        title=one.what,
        one=one,
        titles={key: row.title for key, row in page.index.with_ids(quoted).items()},
        drawn=count_columns([tuple(row) for row in counts], WIDE, friction=friction_id),
        sessions=page.index.sessions(
            "id IN (SELECT session_id FROM friction WHERE friction = ?)",
            (friction_id,),
            limit=_SESSIONS,
        ),
        effect=effects_by_friction(page).get(friction_id),
    )
