"""Labels: certificates of reviewers, the session to label next, and the bar below a session.

The page of the session to label next is blind: of that session it shows the recording and its
signals, and never a score, a verdict or a review.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, HTTPException, Query, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from msgspec import Struct
from msgspec.structs import replace

from debrief.certification import certificate_lines, certificates_in, waiting_sessions
from debrief.errors import InputError, without_controls
from debrief.outcomes.giving import give_label, given_labels, label_of, labels_csv
from debrief.outcomes.store import SUCCESS, UNSURE, Label
from debrief.redaction.redactor import Redactor, key_of
from debrief.scoring.verdict import VERDICT_LABELS
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.signals.display import (
    change_sentence,
    check_sentence,
    ending_sentence,
    event_sentence,
)
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.view.assessment import Assessment, label_words
from debrief.view.indexed import SessionRow
from debrief.view.links import page_path, session_path
from debrief.view.session import OF_A_FILE, OF_A_PAGE, SessionView
from debrief.view.templating import Form, Page, PageContext, environment
from debrief.view.transcript import ShownTranscript
from debrief.view.values import refused

router = APIRouter()
_NEXT = "/labels/next"
_ANSWERS: Final[Mapping[str, str]] = {
    "good": "complete",
    "bad": "incomplete",
    UNSURE: "unsure",
    **{name: words for name, words in VERDICT_LABELS.items() if name != "undetermined"},
}
"""What a person may say of whether a session did what was asked, each in a few words."""
_LATELY = 10
_redactor = cache(Redactor)


def _answer_shown(value: str) -> str:
    """Return what a person said of success, in words."""
    return _ANSWERS.get(value.casefold(), value)


def labels_on(page: PageContext, session_id: str) -> dict[str, Any]:
    """Return what the label bar of a session shows, labels of a moment ago included.

    That is who labels here, what they said of its success, the labels that were given on pages by
    whomever, those from elsewhere (name, value, source, rater), all of them in words, and the names
    that labels have.
    """
    rater, every = page.person.name, list(given_labels(page.lake))
    given = [one for one in every if one.session_id == session_id]
    own = [one for one in given if (one.name, one.rater) == (SUCCESS, rater)]
    others = page.index.select(
        "SELECT name, value, source, rater FROM labels WHERE session_id = ? AND source != 'view'",
        (session_id,),
    )
    said = [(one.name, one.value, one.source, one.rater) for one in given]
    return {
        "rater": rater,
        "own": own[-1] if own else None,
        "given": given,
        "others": others,
        "words": label_words([*map(tuple, others), *said]),
        "names": sorted({one.name for one in every} - {SUCCESS}),
    }


environment().globals |= {
    "labels_on": labels_on,
    "answers": _ANSWERS,
    "certificate_lines": certificate_lines,
}
environment().filters["answer_shown"] = _answer_shown


def _kept(page: PageContext, session_id: str, form: Form, *, blind: bool = False) -> None:
    """Keep what the form says of a session."""
    said, name, value = (form.get(field, "").strip() for field in ("say", "name", "value"))
    if said in _ANSWERS:
        name, value = SUCCESS, said
    elif said == "named":
        value = value or "1"
    elif said != "clear":
        raise HTTPException(400, "is no label")
    redactor = _redactor(key_of(page.settings))
    try:
        made = label_of(
            session_id,
            name,
            "" if said == "clear" else value,
            form.get("note", ""),
            page.person.name,
            lambda text: redactor.redact(text).text,
            blind=blind,
        )
    except InputError as error:
        raise HTTPException(400, f"{error.reason}. {error.next_move}") from None
    give_label(page.lake, page.settings.home, made)
    page.changed(f"label of {session_id}: {made.name}={made.value or 'taken back'}")
    page.index.expire()


@router.post("/sessions/{session_id:path}/labels")
def label(
    page: Page, session_id: str, form: Form, x_part: Annotated[str, Header()] = ""
) -> Response:
    """Keep what a person says of a session whose verdict is in sight; show the session again."""
    row = page.index.find(session_id)
    _kept(page, row.id, form)
    if x_part:
        return page.render("labels/bar.html", row=row, is_fresh=True)
    return RedirectResponse(session_path(row.id), 303)


@router.get("/labels")
def certificates(page: Page) -> Response:
    """Show what each reviewer's verdicts are worth, and what people said last."""
    found = certificates_in(page.lake)
    apart = {each.session_id for one in found.values() for each in one.disagreements}
    given = sorted(given_labels(page.lake), key=lambda one: one.seen, reverse=True)
    return page.render(
        "labels/certificates.html",
        title="Labels",
        certificates=list(found.values()),
        sessions=page.index.with_ids(apart),
        waiting=len(waiting_sessions(page.lake)),
        given=given,
        lately=given[:_LATELY],
    )


@router.get(_NEXT)
def label_next(
    page: Page,
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    session: str = "",
    part: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    whole: str = "",
    fragment: bool = False,
) -> Response:
    """Show the session to label next, without what anybody said of it.

    Args:
        page: the context.
        skip: how many sessions to leave out.
        session: of which more is asked for; the next one if empty.
        part: of the transcript, from 0.
        whole: the anchor of a call or of a turn whose text is given out in full.
        fragment: give out the part alone, for the page to take in.
    """
    waiting = waiting_sessions(page.lake)
    known = page.index.with_ids([session] if session else waiting[skip : skip + 1])
    row = next(iter(known.values()), None)
    if session and row is None:
        raise refused("session", session, "is no session of this lake")
    if row is None and whole:
        raise refused("whole", whole, "is of no session")
    if row is None:
        given = len({one.session_id for one in given_labels(page.lake)})
        return page.render(
            "labels/none.html", title="Label next", skip=skip, given=given, waiting=len(waiting)
        )
    view = _blind_view(page, row, part)
    if whole:
        text = view.transcript.text_at(whole)
        if text is None:
            raise refused("whole", whole, "is no place in this session")
        return PlainTextResponse(without_controls(text))
    parts = view.transcript.parts
    if part and part >= len(parts):
        raise refused("part", str(part), f"is no part of this session, which has {len(parts)}")
    values: dict[str, Any] = {
        "view": view,
        "part": parts[part] if parts else None,
        "next": parts[part + 1 : part + 2],
    }
    if fragment:
        return HTMLResponse(environment().get_template("session/part.html").render(values))
    only = ("session_id", {row.id})
    seen = next(page.lake.read(SIGNALS, row.week, SessionSignals, only), None)
    lately = (one for one in given_labels(page.lake) if one.blind and _is_own(page, one))
    return page.render(
        "labels/next.html",
        title="Label next",
        row=row,
        skip=skip,
        waiting=len(waiting),
        signals=[*_signals_shown(seen)] if seen else [],
        before=max(lately, key=lambda one: one.seen, default=None),
        **values,
    )


@router.post(_NEXT)
def label_blind(page: Page, form: Form) -> Response:
    """Keep what a person says of the session to label next, and show the one after it.

    Who labelled the session in the open before has seen what was said of it: theirs is not blind.
    """
    if form.get("say") == "named":
        raise HTTPException(400, "is no answer")
    row = page.index.find(form.get("session", ""))
    has_seen = any(
        one.session_id == row.id and _is_own(page, one) and not one.blind
        for one in given_labels(page.lake)
    )
    _kept(page, row.id, {**form, "name": SUCCESS}, blind=not has_seen)
    skip = form.get("skip", "")
    return RedirectResponse(f"{_NEXT}?skip={skip}" if skip.isdecimal() else _NEXT, 303)


def _is_own(page: PageContext, one: Label) -> bool:
    return one.rater == page.person.name and one.name == SUCCESS


def _blind_view(page: PageContext, row: SessionRow, part: int) -> SessionView:
    """Return a session for the templates, with nothing in it of what was said of it."""
    found = next(page.lake.read(SESSIONS_TABLE, row.week, Session, ("id", {row.id})), None)
    if found is None:
        raise InputError(row.id, "is no longer in the lake", "Label another session.")
    path = f"{_NEXT}?session={page_path(row.id).removeprefix('/')}&"
    limits = replace(OF_A_PAGE, steps=OF_A_FILE.steps)
    return SessionView(ShownTranscript(found, Assessment()), path, part, limits)


class ShownSignal(Struct, frozen=True):
    """A signal in words, and the turn that shows it; 0 for none."""

    text: str
    turn: int = 0


def _signals_shown(signals: SessionSignals) -> Iterator[ShownSignal]:
    yield ShownSignal(change_sentence(signals.change))
    for event in signals.events:
        yield ShownSignal(event_sentence(event), event.evidence[0].turn)
    for check in signals.checks:
        yield ShownSignal(check_sentence(check), check.evidence.turn)
    yield ShownSignal(ending_sentence(signals), signals.end.turn if signals.end else 0)


@router.get("/labels.csv")
def exported(page: Page) -> Response:
    """Give out the labels that were given on pages, as ``DEBRIEF_LABELS`` takes them in."""
    return Response(labels_csv(given_labels(page.lake)), media_type="text/csv")
