"""Evidence: the words that a rubric quotes must stand in the turn that it names."""

from __future__ import annotations

import re

from debrief.models.answers import fold
from debrief.models.fencing import BAR
from debrief.rubrics.model import Evidence
from debrief.sessions.model import Session

_LEAST = 8
_QUOTED = re.compile(r'"([^"\n]{8,600})"|“([^”\n]{8,600})”|`([^`\n]{8,600})`|«([^»\n]{8,600})»')
_TURN = re.compile(r"\bturns?\s+(\d{1,5})\b", re.IGNORECASE)


def stands(evidence: Evidence, session: Session) -> bool:
    """Return whether the quote stands in the person's words of that turn.

    Case, line breaks, spaces and typographic quotes do not count; every other character does.
    """
    quote = _plain(evidence.quote)
    return evidence.session_id == session.id and any(
        quote and quote in _plain(words)
        for turn in session.turns
        if turn.number == evidence.turn
        for words in (turn.prompt, *(each.text for each in turn.interventions))
    )


def evidence_in(text: str, session: Session) -> tuple[Evidence, ...]:
    """Find what a model's sentence of evidence quotes, where it really stands in the session.

    A passage in quotation marks is looked for in the turns that the sentence names, or in every
    turn when it names none. A sentence without quotation marks counts when it stands in a turn
    as a whole. An empty answer means that nothing was proven.
    """
    named = {int(number) for number in _TURN.findall(text)}
    quotes = [next(piece for piece in found if piece) for found in _QUOTED.findall(text)]
    found: dict[tuple[int, str], Evidence] = {}
    for quote in quotes or [text]:
        for part in re.split(r"\s*(?:\.\.\.|…)\s*", quote):
            if len(part.strip()) < _LEAST:
                continue
            for turn in session.turns:
                if turn.number == 0 or (named and turn.number not in named):
                    continue
                seen = Evidence(session_id=session.id, turn=turn.number, quote=part.strip())
                if stands(seen, session):
                    found.setdefault((turn.number, seen.quote), seen)
                    break
    return tuple(found.values())


def _plain(text: str) -> str:
    folded = fold(text).replace(BAR, " ").casefold()
    return " ".join(folded.translate(_QUOTES).split())


_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\t": " "})
