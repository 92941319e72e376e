"""Reading what a model answers to a judge: one JSON object with its feedback and its score."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from debrief.judging.model import Criterion
from debrief.models.answer_fields import (
    AnswerPart,
    Fraction,
    Text,
    folded_keys,
    one_object,
    problem_of,
)
from debrief.models.answers import answer_text, fold, json_values, refuse

UNSEEN = "cannot be seen"
"""What a model answers where the material does not show what is asked for."""
_DECIDED = ("yes", "no", UNSEEN)
_SECTION = re.compile(r"^[ \t]*\[\[ ## (score|feedback|completed) ## \]\][ \t]*", re.MULTILINE)


class JudgeAnswer(AnswerPart):
    """What is said to a judge's instructions."""

    feedback: Text = ""
    score: Fraction = None


def read_judgement(answer: str | None) -> tuple[float | None, str]:
    """Read an answer.

    DSPy's own sections (``[[ ## score ## ]]``) are read as well: models that were trained on them
    write them whatever they are asked for.

    Args:
        answer: as the model sent it, whole.

    Returns:
        The score from 0 to 1, None where the answer says that it cannot be seen, and the feedback.

    Raises:
        AnswerError: it holds no score from 0 to 1, several that differ, or no feedback.
    """
    text = answer_text(answer)
    values = (folded_keys(found.value) for found in json_values(text))
    found = [value for value in values if isinstance(value, dict) and "score" in value]
    given = one_object([*found, *_of_sections(text)], "a feedback and a score")
    if given.get("score") == "":
        refuse("its score is empty")
    try:
        read = JudgeAnswer.model_validate(given)
    except ValidationError as error:
        refuse(problem_of(error))
    if not any(letter.isalpha() for letter in read.feedback):
        refuse("it has a score and no feedback")
    return read.score, read.feedback


def _of_sections(text: str) -> Iterator[dict[str, Any]]:
    """Yield the score and the feedback that stand in sections, one object for all of them."""
    headings = list(_SECTION.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    given: dict[str, Any] = {}
    for heading, end in zip(headings, ends, strict=False):
        decision = text[heading.end() : end].strip()
        if given.setdefault(heading[1], decision) != decision:
            refuse(f"it gives {heading[1]} twice")
    if "score" in given:
        yield given


def read_criteria(
    answer: str, criteria: Sequence[Criterion]
) -> tuple[float | None, str, list[str]]:
    """Read the answers to binary criteria.

    Args:
        answer: as the model sent it, whole.
        criteria: the questions, in their order.

    Returns:
        The weighted share of yes among yes and no, None where all cannot be seen; each answer with
        its reason; and the reasons.

    Raises:
        AnswerError: a question has no answer, no reason, or two answers that differ.
    """
    found: dict[int, tuple[str, str]] = {}
    for row in _rows(answer_text(answer)):
        place = fold(str(row.get("question"))).strip(" .")
        decision = fold(str(row.get("answer"))).strip(" .").casefold()
        reason = " ".join(str(row.get("reason") or "").split())
        if not place.isdecimal() or decision not in _DECIDED or not reason:
            refuse("an object in it has no question's number, no reason, or no known answer")
        number = int(place[:4])
        if found.setdefault(number, (decision, reason))[0] != decision:
            refuse(f"it answers question {number} by both {found[number][0]} and {decision}")
    if missing := [place for place in range(1, len(criteria) + 1) if place not in found]:
        refuse(f"it does not answer question {missing[0]}")
    answered = [(criterion, *found[place]) for place, criterion in enumerate(criteria, 1)]
    decided = [
        (criterion.weight, decision == "yes")
        for criterion, decision, _ in answered
        if decision != UNSEEN
    ]
    whole = sum(weight for weight, _ in decided)
    score = sum(weight for weight, met in decided if met) / whole if decided else None
    feedback = "\n".join(
        f"{criterion.question} {decision}: {reason}" for criterion, decision, reason in answered
    )
    return score, feedback, [reason for _, _, reason in answered]


def _rows(text: str) -> Iterator[dict[str, Any]]:
    """Yield the answers of an object with ``answers``, of a bare array, or of objects in a row."""
    for found in json_values(text):
        value = folded_keys(found.value)
        if isinstance(value, dict) and isinstance(value.get("answers"), list):
            value = value["answers"]
        for row in value if isinstance(value, list) else [value]:
            yield row if isinstance(row, dict) else {}
