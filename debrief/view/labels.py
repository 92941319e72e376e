"""Labels: what people say of sessions, given while they read, and which session to label next."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Query, Response
from fastapi.responses import RedirectResponse

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.outcomes.giving import give_label, given_labels, label_of, labels_csv
from debrief.outcomes.proposing import PROPOSED, ProposedLabel, proposals_by_session, records_of
from debrief.outcomes.store import DECIDING, SUCCESS, UNSURE
from debrief.redaction.redactor import Redactor, key_of
from debrief.rubrics.agreement import AGREEMENT, ALL, AgreementRow
from debrief.rubrics.model import RUBRICS, Rubric
from debrief.rubrics.probes import FEWEST_LABELS, FEWEST_TASKS, PROBES, Probe
from debrief.scoring.dimensions import BY_NAME, OVERALL
from debrief.scoring.model import SessionScores
from debrief.scoring.order import LEAST, shipped_table
from debrief.scoring.precedence import in_order
from debrief.scoring.verdict import basis_text
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.signals.request import spelled_out
from debrief.validity.refitting import gain_text, refit, rows_of_lake
from debrief.view.assessment import label_words
from debrief.view.indexed import SessionRow
from debrief.view.links import session_path
from debrief.view.templating import Form, Page, PageContext, environment

router = APIRouter()
_SAID = ("good", "bad", UNSURE)
_SHOWN = 5
_redactor = cache(Redactor)


def labels_on(page: PageContext, session_id: str) -> dict[str, Any]:
    """Return what the label bar of a session shows, labels of a moment ago included.

    That is who labels here, what they said of its success, the labels that were given on pages by
    whomever, those from elsewhere (name, value, source, rater), all of them in words, and the names
    of what a label can be compared with.
    """
    rater = page.person.name
    given = [
        given_label
        for given_label in given_labels(page.lake)
        if given_label.session_id == session_id
    ]
    own = (one for one in given if (one.name, one.rater) == (SUCCESS, rater))
    others = page.index.select(
        "SELECT name, value, source, rater FROM labels WHERE session_id = ? AND source != 'view'",
        (session_id,),
    )
    said = [(one.name, one.value, one.source, one.rater) for one in given]
    return {
        "rater": rater,
        "own": next(own, None),
        "given": given,
        "others": others,
        "words": label_words([*map(tuple, others), *said]),
        "names": _measured(page.lake),
    }


environment().globals["labels_on"] = labels_on


def _measured(lake: Lake) -> tuple[str, ...]:
    """Return the names of dimensions, judges and rubrics, which a label can be compared with."""
    judges = (row.name for row in lake.read(PROBES, ALL, Probe) if row.kind == "judge")
    rubrics = (row.key for row in lake.rows(RUBRICS, Rubric))
    return tuple(dict.fromkeys((*BY_NAME, OVERALL, *sorted({*judges, *rubrics}))))


@router.post("/sessions/{session_id:path}/labels")
def label(
    page: Page, session_id: str, form: Form, x_part: Annotated[str, Header()] = ""
) -> Response:
    """Keep what a person says of a session; show the session again, or the next one to label."""
    row = page.index.find(session_id)
    session_id = row.id
    said, name, value = (form.get(field, "").strip() for field in ("say", "name", "value"))
    if said in _SAID:
        name, value = SUCCESS, said
    elif said == "named" and not value:
        if name in _measured(page.lake):
            raise HTTPException(400, f"{name} needs a value, as its scores have")
        value = "1"
    elif said not in ("named", "clear"):
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
        )
    except InputError as error:
        raise HTTPException(400, f"{error.reason}. {error.next_move}") from None
    give_label(page.lake, page.settings.home, made)
    page.changed(f"label of {session_id}: {made.name}={made.value or 'taken back'}")
    page.index.expire()
    if x_part:
        return page.render("labels/bar.html", row=row, is_fresh=True)
    then = "/labels/next" if form.get("then") == "next" else session_path(session_id)
    return RedirectResponse(then, 303)


@router.get("/labels/next")
def label_next(page: Page, skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0) -> Response:
    """Show the session whose label would teach most, and how far scores are known to be right.

    Sessions that a model proposes a label for come first.
    """
    given = list(given_labels(page.lake))
    labelled = {one.session_id for one in given}
    proposals = proposals_by_session(page.lake)
    proposed = sorted(page.index.with_ids(proposals).values(), key=lambda row: (-row.worth, row.id))
    labelled |= {row.id for row in proposed if row.labels}
    rows = page.index.sessions(
        "labels = '' AND failed = '' AND verdict != ''",
        order="worth DESC, id",
        limit=skip + _SHOWN + len(labelled) + len(proposals),
    )
    rows = [*proposed, *(row for row in rows if row.id not in proposals)]
    waiting = [row for row in rows if row.id not in labelled][skip:]
    first = waiting[0] if waiting else None
    counts = Counter(one.value for one in given if one.name == SUCCESS)
    success = page.index.select(
        "SELECT count(DISTINCT id) FROM sessions LEFT JOIN labels ON session_id = id "
        "WHERE outcome != '' OR name = 'success'"
    )
    return page.render(
        "labels/next.html",
        title="Label next",
        row=first,
        skip=skip,
        waiting=waiting[1:_SHOWN],
        proposal=proposals.get(first.id) if first else None,
        records=records_of(page.lake.rows(PROPOSED, ProposedLabel), given, labelled),
        lately=sorted(given, key=lambda one: one.seen, reverse=True)[:_SHOWN],
        counts=[(said, counts[said]) for said in _SAID],
        others=sum(one.name != SUCCESS for one in given),
        agreement=list(page.lake.read(AGREEMENT, ALL, AgreementRow)),
        calibrated=[row for row in page.lake.read(PROBES, ALL, Probe) if row.brier is not None],
        fewest=FEWEST_LABELS,
        fewest_tasks=FEWEST_TASKS,
        success=success[0][0],
        least=LEAST,
        **(_excerpt(page, first) if first else {}),
    )


def _excerpt(page: PageContext, row: SessionRow) -> dict[str, Any]:
    """Return what a person needs to decide whether to read on: what was asked, answered, seen."""
    only = {row.id}
    session = next(page.lake.read(SESSIONS_TABLE, row.week, Session, ("id", only)), None)
    scores = page.lake.read("session_scores", row.week, SessionScores, ("session_id", only))
    verdict = next((each.verdict for each in in_order(scores) if each.verdict), None)
    turns = spelled_out(session).turns if session else ()
    answers = [message.text for turn in turns for message in turn.messages if message.text.strip()]
    return {
        "prompt": next((turn.prompt for turn in turns if turn.prompt.strip()), ""),
        "answer": answers[-1] if answers else "",
        "basis": basis_text(verdict) if verdict else "",
        "evidence": verdict.evidence if verdict else (),
    }


@router.get("/labels/fit")
def label_fit(page: Page) -> Response:
    """Show what ``debrief fit`` would gain from the labels that there are; nothing is stored."""
    gains = refit(rows_of_lake(page.lake, DECIDING), shipped_table()).gains
    return page.render(
        "labels/fit.html", title="What a fit would gain", gains=map(gain_text, gains)
    )


@router.get("/labels.csv")
def exported(page: Page) -> Response:
    """Give out the labels that were given on pages, as ``DEBRIEF_LABELS`` takes them in."""
    return Response(labels_csv(given_labels(page.lake)), media_type="text/csv")
