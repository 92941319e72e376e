"""Quotations of a model, checked against what it was shown and placed where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from debrief.models.answers import refuse
from debrief.models.fencing import bare_words
from debrief.scoring.answer_form import LONGEST_QUOTE, LONGEST_TEXT, Quotation, ReviewAnswer
from debrief.scoring.llm_review import (
    ClaimReview,
    FrictionReview,
    Incident,
    PersonWords,
    RequestReview,
    SessionReview,
    ToolUse,
    TrainOn,
)
from debrief.scoring.model import Chunk
from debrief.scoring.traces import trace_text
from debrief.sessions.model import Evidence, Session

_LEFT_OUT = re.compile(r"\[?(?:…|\.{3,})\]?")
_MADE_UP = 3
"""So many quotations that all stand nowhere are no slips."""


class Recording:
    """What a model was shown of a session, as quotations are looked for in it.

    Args:
        session: whole.
        chunk: the part that was shown.
        shown: the bare words of all that was shown, headings and signals included.
    """

    def __init__(self, session: Session, chunk: Chunk, shown: str) -> None:
        self._session = session
        self._chunk = chunk
        self._shown = shown
        self.quoted = self.standing = 0

    @cached_property
    def turns(self) -> frozenset[int]:
        """Return the numbers of the session's turns, and of the part's."""
        traces = (*self._chunk.overlap, *self._chunk.traces)
        numbers = {turn.number for turn in self._session.turns}
        return frozenset(numbers | {trace.number for trace in traces})

    @cached_property
    def _by_turn(self) -> Mapping[int, str]:
        texts: dict[int, str] = {}
        for trace in (*self._chunk.overlap, *self._chunk.traces):
            texts[trace.number] = texts.get(trace.number, "") + trace_text(trace)
        said = {number: bare_words(text) for number, text in texts.items()}
        return {n: said.get(n, "") + self._by_person.get(n, "") for n in self.turns}

    @cached_property
    def _by_person(self) -> Mapping[int, str]:
        return {
            turn.number: bare_words(
                "\n".join(
                    [turn.prompt, *(intervention.text for intervention in turn.interventions)]
                )
            )
            for turn in self._session.turns
        }

    @cached_property
    def _calls(self) -> Mapping[int, list[tuple[str, str]]]:
        return {
            turn.number: [
                (call.id, bare_words(f"{call.input}\n{call.result}"))
                for message in turn.messages
                for call in message.calls
            ]
            for turn in self._session.turns
        }

    def place(self, said: Quotation | None, *, by_person: bool = False) -> Evidence | None:
        """Return where a quotation stands: in the turn that it names, else in the nearest one.

        Args:
            said: what the model quotes; without words the turn alone is the place.
            by_person: look among the person's own words only.

        Returns:
            None where it stands nowhere, or names neither words nor a turn of the session.
        """
        if said is None:
            return None
        named = said.turn if said.turn in self.turns else None
        pieces = [bare for each in _LEFT_OUT.split(said.quote) if (bare := bare_words(each))]
        if not pieces:
            return None if named is None or by_person else Evidence(named)
        self.quoted += 1
        texts = self._by_person if by_person else self._by_turn
        found = [number for number, text in texts.items() if _stands(pieces, text)]
        if not found and (by_person or named is None or not _stands(pieces, self._shown)):
            return None
        self.standing += 1
        turn = min(found, key=lambda n: abs(n - (named or 0))) if found else (named or 0)
        calls = () if by_person else self._calls.get(turn, ())
        call = next((id_ for id_, text in calls if _stands(pieces, text)), "")
        return Evidence(turn, call, said.quote[:LONGEST_QUOTE])


def _stands(pieces: Iterable[str], text: str) -> bool:
    """Return whether the pieces of a quotation follow each other in a text."""
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def verified_review(answer: ReviewAnswer, recording: Recording) -> SessionReview:
    """Return the review of an answer, with the quotations that stand; the others are dropped.

    Raises:
        AnswerError: the answer has several quotations and none of them stands in the recording.
    """
    review = _review(answer, recording)
    if recording.quoted >= _MADE_UP and not recording.standing:
        refuse("none of its quotations stands in the recording")
    return review


def _review(answer: ReviewAnswer, recording: Recording) -> SessionReview:
    place = recording.place
    known = recording.turns
    incidents = ((incident, place(incident)) for incident in answer.incidents)
    frictions = ((each, place(each) or place(each.without_words)) for each in answer.frictions)
    claims = ((claim, place(claim)) for claim in answer.claims)
    person = ((words, place(words, by_person=True)) for words in answer.person)
    train = answer.train
    return SessionReview(
        requests=tuple(
            RequestReview(
                turn=request.turn if request.turn in known and request.turn is not None else 0,
                asked=request.asked[:LONGEST_TEXT],
                state=request.state,
                proof=place(request.proof),
            )
            for request in answer.requests
        ),
        claims=tuple(
            ClaimReview(
                turn=at.turn,
                call=at.call,
                quote=at.quote,
                state=claim.state,
                proof=place(claim.proof),
            )
            for claim, at in claims
            if at is not None and at.quote
        ),
        verdict=answer.verdict,
        confidence=answer.confidence,
        quality=answer.quality,
        effort=answer.effort,
        tools=None
        if answer.tools is None
        else ToolUse(value=answer.tools.value, what=answer.tools.what[:LONGEST_TEXT]),
        incidents=tuple(
            Incident(
                turn=at.turn,
                call=at.call,
                quote=at.quote,
                what=incident.what[:LONGEST_TEXT],
                harm=incident.harm,
            )
            for incident, at in incidents
            if at is not None
        ),
        person=tuple(
            PersonWords(turn=at.turn, quote=at.quote, says=words.says)
            for words, at in person
            if at is not None
        ),
        frictions=tuple(
            FrictionReview(
                turn=at.turn,
                call=at.call,
                quote=at.quote,
                what=friction.what[:LONGEST_TEXT],
                instead=friction.instead[:LONGEST_TEXT],
            )
            for friction, at in frictions
            if at is not None
        ),
        train=None
        if train is None
        else TrainOn(
            what=train.what,
            turns=tuple((first, last) for first, last in train.turns if first in known)
            if train.what == "parts"
            else (),
        ),
    )
