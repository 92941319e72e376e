"""Reading a judge's answer: a score that is certain, and feedback, or a refusal with the reason."""

from __future__ import annotations

import re

from msgspec import Struct

from debrief.models.answers import answer_text, json_values, refuse
from debrief.models.fractions import parse_fraction

_SECTION = re.compile(r"^[ \t]*\[\[ ## (\w+) ## \]\][ \t]*", re.MULTILINE)
_INLINE = re.compile(r"^([ \t]*\[\[ ## \w+ ## \]\])[ \t]+(?=\S)", re.MULTILINE)
_LABEL = re.compile(
    r"^[\s#*_`>-]*feedback[*_`\"']*[ \t]*:[*_`]*[ \t]*", re.IGNORECASE | re.MULTILINE
)
_FINISHED = "completed"


class Reading(Struct, frozen=True):
    """What a judge said."""

    score: float
    """From 0 to 1."""
    feedback: str


def read_judgement(answer: str, *, cut: bool = False) -> Reading:
    """Read an answer, in DSPy's sections, as a JSON object, or with labelled lines.

    Args:
        answer: as the model sent it.
        cut: it came to its greatest length, so its end is missing.

    Raises:
        AnswerError: it holds no score from 0 to 1, several that differ, or no feedback.
    """
    if cut:
        refuse("it was cut off at its greatest length; be shorter")
    answer = _INLINE.sub(r"\1\n", answer)
    score = parse_fraction(answer)
    feedback = _feedback(answer_text(answer)).strip()
    if not any(letter.isalpha() for letter in feedback):
        refuse("it has a score and no feedback")
    return Reading(score, feedback)


def _feedback(answer: str) -> str:
    headings = list(_SECTION.finditer(answer))
    if headings:
        return _sections(answer, headings)
    found = [value.value for value in json_values(answer) if isinstance(value.value, dict)]
    texts = [value["feedback"] for value in found if isinstance(value.get("feedback"), str)]
    if found:
        return str(texts[0]) if len(texts) == 1 else ""
    label = _LABEL.search(answer)
    return answer[label.end() :] if label else ""


def _sections(answer: str, headings: list[re.Match[str]]) -> str:
    """Return the feedback's section; only the known headings end it, for it may quote others."""
    known = [found for found in headings if found[1] in ("score", "feedback", _FINISHED)]
    starts = [at for at, found in enumerate(known) if found[1] == "feedback"]
    if len(starts) != 1:
        return ""
    at = starts[0]
    end = known[at + 1].start() if at + 1 < len(known) else len(answer)
    return answer[known[at].end() : end]
