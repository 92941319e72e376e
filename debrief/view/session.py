"""One session's page: its transcript in parts, with what was said of it beside it."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from msgspec import Struct

from debrief.errors import InputError, without_controls
from debrief.rubrics.model import EVALUATIONS
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.training.store import LINES, LineRow
from debrief.view.assessment import read_assessment
from debrief.view.indexed import SessionRow
from debrief.view.links import session_path, training_set_path
from debrief.view.opening import Opened, file_of, label_words, opened, title_of
from debrief.view.session_view import SessionView
from debrief.view.templating import Page, PageContext, environment
from debrief.view.transcript import ShownTranscript

router = APIRouter()
_TABLES = (SESSIONS_TABLE, "session_scores", "judge_evaluations", EVALUATIONS)
_KEPT = 4
"""Sessions that stay in memory, so that the parts of a long one need not read it again."""


class TrainingLine(Struct, frozen=True):
    """A session's line in a training set."""

    href: str
    pair: str
    split: str


class Neighbours(Struct, frozen=True):
    """The sessions on the same task before and after one."""

    before: SessionRow | None
    after: SessionRow | None


@router.get("/sessions/{session_id:path}")
def session(
    page: Page,
    session_id: str,
    at: str = "",
    part: Annotated[int, Query(ge=0)] = 0,
    agent: Annotated[int, Query(ge=0)] = 0,
    whole: str = "",
    fragment: bool = False,
    save: bool = False,
) -> Response:
    """Show a session turn by turn.

    Args:
        page: made by the application.
        session_id: whose page it is.
        at: an anchor in the part that is shown.
        part: which part is shown, from 0.
        agent: show the work of this subagent instead, from 1.
        whole: the anchor of a call or of a turn whose text is given out in full.
        fragment: give out the part alone, for the page to take in.
        save: give out one file that holds everything.
    """
    row = page.index.find(session_id)
    if row is None:
        raise InputError(session_id, "is no session of this lake", "Search the list of sessions.")
    one = _opened(page, row)
    path, transcript = session_path(session_id), one.transcript
    if save:
        name = re.sub(r"[^\w-]", "-", session_id, flags=re.ASCII)
        headers = {"Content-Disposition": f'attachment; filename="debrief-{name}.html"'}
        return HTMLResponse(file_of(one), headers=headers)
    if agent:
        if agent > len(transcript.agents):
            raise InputError(session_id, f"has no subagent {agent}")
        transcript = ShownTranscript(transcript.as_session(transcript.agents[agent - 1]))
    if whole:
        text = transcript.text_at(whole)
        if text is None:
            raise InputError(session_id, f"has nothing at {whole}")
        return PlainTextResponse(without_controls(text))
    parts = transcript.parts
    here = transcript.part_with(at) or next((p for p in parts if p.number == part), None)
    if here is None and parts:
        raise InputError(session_id, f"has no part {part}")
    number = here.number if here else 0
    query = f"agent={agent}&" if agent else ""
    view = SessionView(transcript, one.assessment, f"{path}?{query}", [number])
    values: dict[str, Any] = {
        "view": view,
        "part": here,
        "next": parts[number + 1 : number + 2],
    }
    if fragment:
        return HTMLResponse(environment().get_template("session/part.html").render(values))
    return page.render(
        "session/page.html",
        title=title_of(transcript.session),
        row=row,
        agent=agent,
        before=parts[:number],
        figure=None if agent else one.figure,
        neighbours=_neighbours(page, row),
        lines=_lines(page, row),
        **values,
    )


def _opened(page: PageContext, row: SessionRow) -> Opened:
    """Return a session as the lake has it now, from memory where nothing of it has changed."""
    stamps = [page.lake.stamp(table, row.week) for table in _TABLES]
    said = page.index.select(
        "SELECT name, value, source, rater FROM labels WHERE session_id = ?", (row.id,)
    )
    labels = label_words(tuple(each) for each in said)
    key = (row.id, labels, *(stamp and stamp.digest for stamp in stamps))
    kept: OrderedDict[object, Opened] = page.request.app.state.__dict__.setdefault(
        "opened", OrderedDict()
    )
    one = kept.get(key)
    if one is None:
        found = page.lake.read(SESSIONS_TABLE, row.week, Session, ("id", {row.id}))
        assessment = read_assessment(page.lake, row.week, row.id, labels)
        one = kept[key] = opened(next(found), assessment, page.settings)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    return one


def _neighbours(page: PageContext, row: SessionRow) -> Neighbours:
    known = (row.task, msgspec.to_builtins(row.started), row.id)
    earlier = "task = ? AND (started, id) < (?, ?)"
    later = "task = ? AND (started, id) > (?, ?)"
    before = page.index.sessions(earlier, known, "started DESC, id DESC", 1)
    after = page.index.sessions(later, known, "started, id", 1)
    return Neighbours(next(iter(before), None), next(iter(after), None))


def _lines(page: PageContext, row: SessionRow) -> list[TrainingLine]:
    """Return where a session is in training sets, one line for each set."""
    found = []
    for key in page.lake.partitions(LINES):
        task, _, pair = key.partition("/")
        if task == row.task:
            rows = page.lake.read(LINES, key, LineRow)
            for number, line in enumerate(rows, 1):
                if line.session_id == row.id and not line.parent_session:
                    href = f"{training_set_path(task, pair)}?line={number}#line-{number}"
                    found.append(TrainingLine(href, pair, line.split))
                    break
    return found
