"""Reading a model's answer: the one object in it, out of whatever stands around it.

Models slip in form more than in substance. What has one meaning is read; what has two is refused
with the reason, and the model is asked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from debrief.models.answer_fields import folded_keys, one_object, problem_of, word
from debrief.models.answers import answer_text, is_cut_short, json_values, refuse
from debrief.scoring.answer_form import ReviewAnswer, answer_form
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.llm_review import MOST_TROUBLES


def read_answer(text: str | None, judges: Sequence[str] = ()) -> ReviewAnswer:
    """Read an answer.

    Args:
        text: as the model sent it, whole: prose, thinking and a fence around the one object are
            left aside.
        judges: names of those whose questions were asked with it.

    Raises:
        AnswerError: the answer is cut short, has several objects that differ, lacks the verdict,
            a dimension or every rationale, or has a value that its place does not take.
    """
    answer = answer_text(text)
    found = [
        candidate
        for value in json_values(answer)
        for candidate in _candidates(folded_keys(value.value))
    ]
    if is_cut_short(answer):
        refuse("it is cut short")
    fields = one_object(found, "a verdict and the six dimensions")
    names = {word(name): name for name in judges}
    given = fields.get("judges")
    if isinstance(given, dict):
        fields["judges"] = {names[key]: each for key, each in given.items() if key in names}
    else:
        fields.pop("judges", None)
    flat = {name: fields[name] for name in BY_NAME if name in fields}
    inner = fields.get("dimensions")
    dimensions = {**flat, **(inner if isinstance(inner, dict) else {})}
    for name in BY_NAME:
        if name not in dimensions:
            refuse(f"it leaves out {name}")
    if "verdict" not in fields:
        refuse("it leaves out verdict")
    try:
        read = answer_form(tuple(judges)).model_validate({**fields, "dimensions": dimensions})
    except ValidationError as error:
        refuse(problem_of(error))
    if not any(read.dimension(name).rationale for name in BY_NAME):
        refuse("no dimension has a rationale")
    return read.model_copy(update={"troubles": read.troubles[:MOST_TROUBLES]})


_KNOWN = frozenset(ReviewAnswer.model_fields) | frozenset(BY_NAME)


_TELLING: Collection[str] = {"verdict", "dimensions", "requests", *BY_NAME}


def _candidates(value: Any) -> Iterable[dict[str, Any]]:
    """Yield the objects of a value that are an answer or a piece of one, out of any wrapping."""
    while isinstance(value, list | dict) and len(value) == 1:
        inner = next(iter(value.values() if isinstance(value, dict) else value))
        if isinstance(value, dict) and not _KNOWN.isdisjoint(value):
            break
        value = inner
    if isinstance(value, dict) and not value.keys().isdisjoint(_TELLING):
        yield value
