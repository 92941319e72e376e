"""Two sessions compared by a model: asked in both orders, and a difference counts only if both
agree on it.

Models favour a place: which recording comes first moves many answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median_low
from typing import Annotated, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from debrief.errors import InputError
from debrief.signals.extract import SessionKind
from debrief.models.answer_fields import Text, is_null, word
from debrief.models.answers import (
    Answer,
    Question,
    answer_text,
    ask_until_read,
    json_values,
    refuse,
)
from debrief.models.fencing import bare_words, fence, is_suspected, refuse_lifted
from debrief.models.language_model import DryRunError
from debrief.models.subject import asking_about
from debrief.models.templates import COMPARER, load_template, render
from debrief.models.usage import ModelUsage, total
from debrief.scoring.answer_form import Quotation
from debrief.scoring.model import SessionScores
from debrief.scoring.model_scorer import Ask, shown_with_end
from debrief.scoring.quotations import Recording
from debrief.scoring.scorer import DEFAULT
from debrief.scoring.shown_session import shown_text
from debrief.sessions.model import Evidence, Session

MOST_GROUNDS = 6
FEWEST_FOR_MEDIAN = 5
"""Sessions with a number that a median needs."""
Finding = Literal["first", "second", "no_difference", "order_decides"]
"""``first``, ``second``: in both orders that session did better. ``no_difference``: neither did, in
one order at least, and no order says the opposite of the other. ``order_decides``: each order
names another session, so nothing is known."""
FINDINGS_SHOWN: Final[Mapping[Finding, str]] = {
    "first": "{a} did better what was asked of it, in both orders.",
    "second": "{b} did better what was asked of it, in both orders.",
    "no_difference": "No difference that holds in both orders.",
    "order_decides": "Not known: the order in which they are shown decides.",
}
"""Each finding as a sentence; ``a`` and ``b`` are the sessions."""


class ComparisonGround(Struct, frozen=True, kw_only=True):
    """What a comparison rests on."""

    session_id: str
    place: Evidence
    what: str


class OrderedComparison(Struct, frozen=True, kw_only=True):
    """What a model says of two sessions in one order."""

    shown_first: str
    """A session's id."""
    better: str
    """A session's id; empty where neither did better."""
    grounds: tuple[ComparisonGround, ...]
    """Each with words that stand in its recording."""
    lessons: Mapping[str, str]
    """What each session could do as the other did, by session id; those without are left out."""


class SessionComparison(Struct, frozen=True, kw_only=True):
    """Two sessions, which of them did better, and why."""

    sessions: tuple[str, str]
    model: str
    finding: Finding
    orders: tuple[OrderedComparison, OrderedComparison]
    injection_suspected: bool = False
    usage: ModelUsage = ModelUsage()


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


def _number(value: Any) -> Any:
    said = word(value)
    if is_null(value) or said in ("neither", "tie", "0"):
        return 0
    plain = said.removeprefix("recording_") if isinstance(said, str) else said
    return int(plain) if plain in ("1", "2") else plain


class _Ground(Quotation):
    recording: Annotated[Literal[1, 2], BeforeValidator(_number)]
    what: Text = ""


class _ComparisonAnswer(_Form):
    grounds: list[_Ground]
    better: Annotated[Literal[0, 1, 2], BeforeValidator(_number)]
    lesson_1: Text = ""
    lesson_2: Text = ""


_EXAMPLE = {
    "grounds": [
        {"recording": 2, "turn": 4, "quote": "12 passed in 0.3s", "what": "one sentence"},
        {"recording": 1, "turn": 3, "quote": "words copied from that turn", "what": "..."},
    ],
    "better": 2,
    "lesson_1": "one sentence",
    "lesson_2": "",
}

Fence = Callable[[str], str]


def compare(
    first: Session, second: Session, ask: Ask, model: str, put_between: Fence = fence
) -> SessionComparison:
    """Ask which of two sessions did better what was asked of it, once in each order.

    Args:
        first: a session.
        second: another one.
        ask: the door to the model.
        model: its name.
        put_between: puts text that was made safe between markers.

    Raises:
        InputError: they are one session, or one does not fit into a call.
        ModelError: there was no usable answer.
    """
    if first.id == second.id:
        raise InputError(first.id, "is the same session", "Name another one with --against.")
    shown = {session.id: _Shown(session) for session in (first, second)}
    said: list[tuple[OrderedComparison, Answer]] = []
    nothing: DryRunError | None = None
    with asking_about(first.id, second.id):
        for one, other in ((first.id, second.id), (second.id, first.id)):
            try:
                said.append(_in_order(shown[one], shown[other], ask, model, put_between))
            except DryRunError as error:  # goes on, or it would count the first order alone
                nothing = error
    if nothing is not None:
        raise nothing
    orders = (said[0][0], said[1][0])
    return SessionComparison(
        sessions=(first.id, second.id),
        model=model,
        finding=_finding(first.id, [order.better for order in orders]),
        orders=orders,
        injection_suspected=is_suspected(first) or is_suspected(second),
        usage=total(answer.usage for _, answer in said),
    )


def _finding(first: str, better: Sequence[str]) -> Finding:
    if "" in better:
        return "no_difference"
    if len(set(better)) > 1:
        return "order_decides"
    return "first" if better[0] == first else "second"


class _Shown:
    """A session as it is shown, and as quotations are looked for in it."""

    def __init__(self, session: Session) -> None:
        chunks = DEFAULT.chunks_of(session)
        if len(chunks) != 1:
            reason = "does not fit into one call" if chunks else "has no turns"
            raise InputError(session.id, f"{reason}, so it cannot be compared")
        text = shown_text(session, chunks[0])
        self.id = session.id
        self.text = shown_with_end(session, chunks[0])
        self.bare = bare_words(text)
        self.recording = Recording(session, chunks[0], self.bare)


def _in_order(
    one: _Shown, other: _Shown, ask: Ask, model: str, put_between: Fence
) -> tuple[OrderedComparison, Answer]:
    constant, mark, recordings = load_template(COMPARER).partition("## Recording 1")
    data = {"first": put_between(one.text), "second": put_between(other.text)}
    question = Question(
        constant=render(constant, {"form": json.dumps(_EXAMPLE, indent=2)}).rstrip(),
        text=render(mark + recordings, data),
    )

    def again(reason: str) -> Answer:
        if not reason:
            return ask(question)
        refused = f"\nYour answer before this could not be used: {reason}. Answer again."
        return ask(replace(question, text=question.text + refused))

    return ask_until_read(
        again,
        lambda answer: _read(answer.text, one, other),
        model=model,
        about=f"on {one.id} beside {other.id}",
    )


def _read(text: str, one: _Shown, other: _Shown) -> OrderedComparison:
    """Read an answer; quotations that stand nowhere go.

    Raises:
        AnswerError: it is not of the form, or names a better session and quotes nothing that
            stands in a recording.
    """
    found = [
        json_value.value
        for json_value in json_values(answer_text(text))
        if isinstance(json_value.value, dict)
    ]
    if len(found) != 1:
        refuse("it holds no single JSON object")
    try:
        said = _ComparisonAnswer.model_validate(found[0])
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        refuse(f"{' '.join(map(str, wrong['loc']))}: {wrong['msg']}")
    refuse_lifted(
        text, [basis.what for basis in said.grounds if basis.what], one.bare + other.bare
    )
    by_number = {1: one, 2: other}
    grounds = [
        ComparisonGround(session_id=by_number[basis.recording].id, place=place, what=basis.what)
        for basis in said.grounds
        if basis.quote
        and (place := by_number[basis.recording].recording.place(basis)) is not None
    ]
    if said.better and not grounds:
        refuse("none of its quotations stands in the recordings")
    return OrderedComparison(
        shown_first=one.id,
        better=by_number[said.better].id if said.better else "",
        grounds=tuple(grounds[:MOST_GROUNDS]),
        lessons={
            shown.id: lesson
            for shown, lesson in ((one, said.lesson_1), (other, said.lesson_2))
            if not is_null(lesson)
        },
    )


class Placed(Struct, frozen=True):
    """What the middle of several sessions is found by."""

    id: str
    repository: str
    kind: SessionKind
    quality: float | None


def median_session(of: Session, kind: SessionKind, placed: Iterable[Placed]) -> str:
    """Return the middle one, by overall quality, of the other sessions of a session's repository
    and kind.

    Args:
        of: the session that it is for.
        kind: of its work.
        placed: all sessions that may be taken.

    Raises:
        InputError: there are too few to speak of a middle.
    """
    alike = sorted(
        (each.quality, each.id)
        for each in placed
        if each.quality is not None
        and each.id != of.id
        and (each.repository, each.kind) == (of.repository, kind)
    )
    if len(alike) < FEWEST_FOR_MEDIAN:
        where = of.repository or "no repository"
        raise InputError(
            "--against median",
            f"needs {FEWEST_FOR_MEDIAN} scored {kind} sessions of {where}; there are {len(alike)}",
            "debrief run scores them.",
        )
    return median_low(alike)[1]


def placed_of(rows: Iterable[SessionScores], repositories: Mapping[str, str]) -> list[Placed]:
    """Return what a median looks at of each session's row, one row a session."""
    return [
        Placed(row.session_id, repositories.get(row.session_id, ""), row.kind, row.overall_quality)
        for row in rows
        if row.status == "ok"
    ]
