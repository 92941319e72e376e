"""Scores from 0 to 1 as models write them: read when certain, refused otherwise."""

from __future__ import annotations

import re

from debrief.models.answers import answer_text, fold, json_values, refuse

_SECTION = re.compile(r"^[ \t]*\[\[ ## (\w+) ## \]\][ \t]*$", re.MULTILINE)
_LABEL = re.compile(r"^[\s#*_`>-]*score[\s*_`\"']*[:=][ \t]*(.+)$", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?")


def parse_fraction(text: str | None) -> float:
    """Return the score that an answer gives: a plain number from 0 to 1.

    The answer is the number alone, a line ``score: 0.8``, a section ``[[ ## score ## ]]``, or an
    object with a ``score``. Percentages, decimal commas and fractions are refused, for they may
    be slips of another scale, and nothing is clamped.

    Raises:
        AnswerError: there is no score, several that differ, or one outside 0 to 1.
    """
    answer = fold(answer_text(text))
    found = {_number(candidate) for candidate in _candidates(answer)}
    if len(found) != 1:
        refuse(f"it gives {len(found) or 'no'} different scores" if found else "it has no score")
    return found.pop()


def _candidates(answer: str) -> list[str]:
    headings = list(_SECTION.finditer(answer))
    if headings:
        ends = [heading.start() for heading in headings[1:]] + [len(answer)]
        return [
            answer[heading.end() : end]
            for heading, end in zip(headings, ends, strict=True)
            if heading[1].casefold() == "score"
        ]
    values = json_values(answer)
    scores = [found.value["score"] for found in values if _has_score(found.value)]
    if scores:
        return [str(score) if not isinstance(score, bool) else "a truth value" for score in scores]
    labelled = _LABEL.findall(answer)
    return labelled or [answer]


def _has_score(value: object) -> bool:
    return isinstance(value, dict) and "score" in value


def _number(text: str) -> float:
    plain = text.strip().strip("*_`\"'").strip()
    if not _NUMBER.fullmatch(plain):
        refuse(f"its score {plain[:40]!r} is not a plain number from 0 to 1")
    value = float(plain)
    if not 0 <= value <= 1 or plain.startswith("-"):
        refuse(f"its score {plain[:40]} is not from 0 to 1")
    return value
