"""Show a session to a model for a rubric, and check that what its answer quotes is there."""

from __future__ import annotations

import re

from msgspec import Struct, structs

from debrief.models.answers import fold
from debrief.models.fencing import (
    BAR,
    bare_words,
    defuse_session,
    fence,
    finish,
    is_suspected,
    new_marker,
)
from debrief.models.templates import load_template, render
from debrief.rubrics.model import RubricEvidence
from debrief.sessions.model import Message, Session, texts_of
from debrief.sessions.rendering import render_session
from debrief.signals.request import spelled_out
from debrief.tokens import count_tokens

BUDGET = 60_000
"""Tokens of a session in one prompt."""

_STEPS = ((4_000, 40_000), (1_000, 12_000), (200, 4_000), (0, 1_500), (0, 400))
"""Characters that stay of each text of the agent, and of each prompt, step by step."""
_LONGEST_TOKEN = 12
"""Characters that no text has per token on average."""


class ShownSession(Struct, frozen=True):
    """A session as a model sees it."""

    text: str
    """The notice and the fenced session: the same for every question about it."""
    pointer: str
    """Stands in a template where the session would."""
    folded: str
    """The bare words of the session, shown or not, to tell when an answer is lifted from it."""
    suspected: bool
    """It holds words that were made for a judge."""


def show(session: Session, *, marker: str = "", budget: int = BUDGET) -> ShownSession:
    """Return a session ready to be asked about.

    What does not fit is left out from the middle of its longest texts, the agent's before the
    person's: a rubric is about the person.

    Args:
        session: redacted.
        marker: at least 64 bits that the session's author cannot know; drawn when not given.
        budget: tokens.
    """
    marker = marker or new_marker()
    return ShownSession(
        text=_noticed(_fitting(defuse_session(spelled_out(session)), budget), marker),
        pointer=f"(It is the recording above, between the two lines with the marker {marker}.)",
        folded=bare_words("\n".join(texts_of(session))),
        suspected=is_suspected(session),
    )


def show_rubrics(text: str, marker: str) -> tuple[str, str]:
    """Return rubrics as fenced data with its notice, and what points to it from a template."""
    pointer = f"(They are between the two lines with the marker {marker} above.)"
    return _noticed(finish(text), marker), pointer


def _noticed(data: str, marker: str) -> str:
    notice = load_template("rubric_data_notice")
    return render(notice, {"marker": marker, "data": fence(data, marker)}).rstrip()


def _fitting(session: Session, budget: int) -> str:
    text = finish(render_session(session))
    for answer_room, prompt_room in _STEPS:
        if _fits(text, budget):
            return text
        text = finish(render_session(_cut(session, answer_room, prompt_room)))
    while not _fits(text, budget):
        text = _middle_out(text, len(text) * 3 // 4)
    return text


def _fits(text: str, budget: int) -> bool:
    """Return whether text fits; what is surely short enough or too long is not counted."""
    if len(text.encode("utf-8", "replace")) <= budget:  # no token is shorter than a byte
        return True
    return len(text) <= _LONGEST_TOKEN * budget and count_tokens(text) <= budget


def _cut(session: Session, answer_room: int, prompt_room: int) -> Session:
    return structs.replace(
        session,
        turns=tuple(
            structs.replace(
                turn,
                prompt=_middle_out(turn.prompt, prompt_room),
                messages=tuple(_cut_message(message, answer_room) for message in turn.messages),
            )
            for turn in session.turns
        ),
    )


def _cut_message(message: Message, room: int) -> Message:
    calls = tuple(
        structs.replace(call, result=call.result and _middle_out(call.result, room))
        for call in message.calls
    )
    return structs.replace(
        message, text=_middle_out(message.text, room), calls=calls if room else ()
    )


def _middle_out(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    left_out = f" … ({len(text) - room} characters left out) … "
    return text[: room * 2 // 3] + left_out + text[len(text) - room // 3 :] if room else ""


_LEAST = 8
_QUOTED = re.compile(r'"([^"\n]{8,600})"|“([^”\n]{8,600})”|`([^`\n]{8,600})`|«([^»\n]{8,600})»')
_TURN = re.compile(r"\bturns?\s+(\d{1,5})\b", re.IGNORECASE)


def stands(evidence: RubricEvidence, session: Session) -> bool:
    """Return whether the quote stands in the person's words of that turn.

    Case, line breaks, spaces and typographic quotes do not count; every other character does.
    """
    quote = _plain(evidence.quote)
    return evidence.session_id == session.id and any(
        quote and quote in _plain(words)
        for turn in session.turns
        if turn.number == evidence.turn
        for words in (turn.prompt, *(intervention.text for intervention in turn.interventions))
    )


def evidence_in(text: str, session: Session) -> tuple[RubricEvidence, ...]:
    """Find what a model's sentence of evidence quotes, where it really stands in the session.

    A passage in quotation marks is looked for in the turns that the sentence names, or in every
    turn when it names none. A sentence without quotation marks counts when it stands in a turn
    as a whole. An empty answer means that nothing was proven.
    """
    named = {int(number) for number in _TURN.findall(text)}
    quotes = [next(piece for piece in found if piece) for found in _QUOTED.findall(text)]
    found: dict[tuple[int, str], RubricEvidence] = {}
    for quote in quotes or [text]:
        for part in re.split(r"\s*(?:\.\.\.|…)\s*", quote):
            if len(part.strip()) < _LEAST:
                continue
            for turn in session.turns:
                if turn.number == 0 or (named and turn.number not in named):
                    continue
                seen = RubricEvidence(session_id=session.id, turn=turn.number, quote=part.strip())
                if stands(seen, session):
                    found.setdefault((turn.number, seen.quote), seen)
                    break
    return tuple(found.values())


def _plain(text: str) -> str:
    folded = fold(text).replace(BAR, " ").casefold()
    return " ".join(folded.translate(_QUOTES).split())


_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\t": " "})
