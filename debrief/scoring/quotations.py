"""Quotations of a model, checked against what it was shown and placed where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from debrief.models.answers import refuse
from debrief.models.citing import cited_turns
from debrief.models.fencing import bare_words
from debrief.scoring.answer_form import LONGEST_QUOTE, LONGEST_TEXT, Quotation, ReadingAnswer
from debrief.scoring.dimensions import DIMENSIONS, dimension_score
from debrief.scoring.model import Chunk, DimensionScore
from debrief.scoring.reading import (
    ClaimReading,
    Incident,
    PersonWords,
    ReadTrouble,
    RequestReading,
    SessionReading,
    TrainOn,
)
from debrief.scoring.traces import trace_text
from debrief.sessions.model import Evidence, Session

_LEFT_OUT = re.compile(r"\[?(?:…|\.{3,})\]?")
_MOST_EVIDENCE = 5
_MADE_UP = 3
"""So many quotations that all stand nowhere are no slips."""


class Recording:
    """What a model was shown of a session, as quotations are looked for in it.

    Args:
        session: whole.
        chunk: the part that was shown.
        shown: the bare words of all that was shown, headings and facts included.
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
                "\n".join([turn.prompt, *(each.text for each in turn.interventions)])
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

    def places(self, said: Iterable[Quotation]) -> tuple[Evidence, ...]:
        """Return where quotations stand, without those that stand nowhere."""
        found = (self.place(each) for each in said)
        return tuple(dict.fromkeys(each for each in found if each is not None))


def _stands(pieces: Iterable[str], text: str) -> bool:
    """Return whether the pieces of a quotation follow each other in a text."""
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def checked(
    answer: ReadingAnswer, recording: Recording
) -> tuple[SessionReading, tuple[DimensionScore, ...]]:
    """Return the reading and the six scores of an answer, with quotations that stand.

    Satisfaction has a value only where words of the person approve or correct: that somebody goes
    on without a word says nothing.

    Raises:
        AnswerError: a rationale cites a turn that the session does not have, or the answer has
            several quotations and none of them stands in the recording.
    """
    reading = _reading(answer, recording)
    verdicts = []
    for dimension in DIMENSIONS:
        said = answer.dimension(dimension.name)
        cited = list(dict.fromkeys(cited_turns(said.rationale)))
        if strange := [number for number in cited if number not in recording.turns]:
            refuse(f"{dimension.name} cites turn {strange[0]}, which is not there")
        evidence = recording.places(said.evidence)[:_MOST_EVIDENCE]
        score = said.score
        if dimension.name == "user_satisfaction" and not reading.person:
            words = (recording.place(each, by_person=True) for each in said.evidence)
            score = score if any(each is not None for each in words) else None
        why = said.rationale[:LONGEST_TEXT]
        verdicts.append(
            DimensionScore(dimension=dimension.name, value=None, rationale=why, evidence=evidence)
            if score is None
            else dimension_score(
                dimension.name, score, why, evidence or tuple(map(Evidence, cited))
            )
        )
    if recording.quoted >= _MADE_UP and not recording.standing:
        refuse("none of its quotations stands in the recording")
    return reading, tuple(verdicts)


def _reading(answer: ReadingAnswer, recording: Recording) -> SessionReading:
    place = recording.place
    known = recording.turns
    incidents = ((each, place(each)) for each in answer.incidents)
    troubles = ((each, place(each) or place(each.without_words)) for each in answer.troubles)
    claims = ((each, place(each)) for each in answer.claims)
    person = ((each, place(each, by_person=True)) for each in answer.person)
    train = answer.train
    return SessionReading(
        requests=tuple(
            RequestReading(
                turn=each.turn if each.turn in known and each.turn is not None else 0,
                asked=each.asked[:LONGEST_TEXT],
                state=each.state,
                proof=place(each.proof),
            )
            for each in answer.requests
        ),
        claims=tuple(
            ClaimReading(
                turn=at.turn,
                call=at.call,
                quote=at.quote,
                state=each.state,
                proof=place(each.proof),
            )
            for each, at in claims
            if at is not None and at.quote
        ),
        verdict=answer.verdict,
        confidence=answer.confidence,
        quality=answer.quality,
        effort=answer.effort,
        incidents=tuple(
            Incident(turn=at.turn, call=at.call, quote=at.quote, what=each.what[:LONGEST_TEXT])
            for each, at in incidents
            if at is not None
        ),
        person=tuple(
            PersonWords(turn=at.turn, quote=at.quote, says=each.says)
            for each, at in person
            if at is not None
        ),
        troubles=tuple(
            ReadTrouble(
                turn=at.turn,
                call=at.call,
                quote=at.quote,
                kind=each.kind,
                what=each.what[:LONGEST_TEXT],
                rule=each.rule[:LONGEST_TEXT],
            )
            for each, at in troubles
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
