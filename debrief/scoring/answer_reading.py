"""Reading a model's answer: the one object in it, out of whatever stands around it.

Models slip in form more than in substance. Of what is not needed, whatever cannot be read is left
out. Requests, verdict and quality are needed: an answer without them is refused with the reason,
and the model is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import ValidationError

from debrief.models.answer_fields import folded_keys, one_object, problem_of, word
from debrief.models.answers import answer_text, is_cut_short, json_values, refuse
from debrief.scoring.answer_form import ReviewAnswer, answer_form

NEEDED: Final = ("requests", "verdict", "quality")
"""Fields without which an answer says too little."""
_KNOWN = frozenset(ReviewAnswer.model_fields)


def read_answer(text: str | None, judges: Sequence[str] = ()) -> ReviewAnswer:
    """Read an answer.

    Args:
        text: as the model sent it, whole: prose, thinking and a fence around the one object are
            left aside.
        judges: names of those that were asked in the same call.

    Raises:
        AnswerError: the answer is cut short, has several objects that differ, or lacks usable
            requests, verdict or quality.
    """
    answer = answer_text(text)
    found = [
        candidate
        for value in json_values(answer)
        for candidate in _candidates(folded_keys(value.value))
    ]
    if is_cut_short(answer):
        refuse("it is cut short")
    fields = one_object(found, "requests, a verdict and a quality")
    names = {word(name): name for name in judges}
    given = fields.get("judges")
    if isinstance(given, dict):
        fields["judges"] = {names[key]: each for key, each in given.items() if key in names}
    for name in NEEDED:
        if name not in fields:
            refuse(f"it leaves out {name}")
    try:
        read = answer_form(tuple(judges)).model_validate(fields)
    except ValidationError as error:
        refuse(problem_of(error))
    if read.quality is None and read.verdict != "undetermined":
        refuse("quality needs a number from 0 to 1")
    return read


def _candidates(value: Any) -> Iterable[dict[str, Any]]:
    """Yield the objects of a value that are an answer or a piece of one, out of any wrapping."""
    while isinstance(value, list | dict) and len(value) == 1:
        inner = next(iter(value.values() if isinstance(value, dict) else value))
        if isinstance(value, dict) and not _KNOWN.isdisjoint(value):
            break
        value = inner
    if isinstance(value, dict) and not value.keys().isdisjoint(NEEDED):
        yield value
