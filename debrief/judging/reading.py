"""Reading a judge's answer: a score that is certain, and feedback, or a refusal with the reason."""

from __future__ import annotations

import re

from debrief.models.answers import answer_text, fold, json_values, refuse

_SECTION = re.compile(r"^[ \t]*\[\[ ## (\w+) ## \]\][ \t]*", re.MULTILINE)
_INLINE = re.compile(r"^([ \t]*\[\[ ## \w+ ## \]\])[ \t]+(?=\S)", re.MULTILINE)
_LABEL = re.compile(
    r"^[\s#*_`>-]*feedback[*_`\"']*[ \t]*:[*_`]*[ \t]*", re.IGNORECASE | re.MULTILINE
)
_FINISHED = "completed"
_HEADING = re.compile(r"^[ \t]*\[\[ ## (\w+) ## \]\][ \t]*$", re.MULTILINE)
_SCORE_LABEL = re.compile(
    r"^[\s#*_`>-]*score[\s*_`\"']*[:=][ \t]*(.+)$", re.IGNORECASE | re.MULTILINE
)
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?")


def read_judgement(answer: str, *, cut: bool = False) -> tuple[float, str]:
    """Read an answer, in DSPy's sections, as a JSON object, or with labelled lines.

    Args:
        answer: as the model sent it.
        cut: it came to its greatest length, so its end is missing.

    Returns:
        The score from 0 to 1, and the feedback.

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
    return score, feedback


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
    headings = list(_HEADING.finditer(answer))
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
    labelled = _SCORE_LABEL.findall(answer)
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
