"""Reading a model's answer: the one object in it, out of whatever stands around it.

Models slip in form more than in substance. What has one meaning is read; what has two is refused
with the reason, and the model is asked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from debrief.models.answers import answer_text, is_cut_short, json_values, refuse
from debrief.scoring.answer_form import ReadingAnswer, answer_form, word
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.reading import MOST_TROUBLES


def read_answer(text: str | None, judges: Sequence[str] = ()) -> ReadingAnswer:
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
    found = [each for value in json_values(answer) for each in _candidates(_folded(value.value))]
    if is_cut_short(answer):
        refuse("it is cut short")
    said = _one_of(found)
    names = {word(name): name for name in judges}
    given = said.get("judges")
    if isinstance(given, dict):
        said["judges"] = {names[key]: each for key, each in given.items() if key in names}
    else:
        said.pop("judges", None)
    flat = {name: said[name] for name in BY_NAME if name in said}
    inner = said.get("dimensions")
    dimensions = {**flat, **(inner if isinstance(inner, dict) else {})}
    for name in BY_NAME:
        if name not in dimensions:
            refuse(f"it leaves out {name}")
    if "verdict" not in said:
        refuse("it leaves out verdict")
    try:
        read = answer_form(tuple(judges)).model_validate({**said, "dimensions": dimensions})
    except ValidationError as error:
        refuse(_reason(error))
    if not any(read.dimension(name).rationale for name in BY_NAME):
        refuse("no dimension has a rationale")
    return read.model_copy(update={"troubles": read.troubles[:MOST_TROUBLES]})


_KNOWN = frozenset(ReadingAnswer.model_fields) | frozenset(BY_NAME)


def _folded(value: Any) -> Any:
    """Return a value whose keys are written as the form writes them."""
    if isinstance(value, list):
        return [_folded(each) for each in value]
    if isinstance(value, dict):
        return {word(key): _folded(each) for key, each in value.items()}
    return value


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


def _one_of(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the one answer, put together where a model gave it in pieces."""
    different: list[dict[str, Any]] = []
    for each in found:
        if each not in different:
            different.append(each)
    if not different:
        refuse("it holds no object with a verdict and the six dimensions")
    names = [name for each in different for name in each]
    if len(names) != len(set(names)):
        refuse("it holds several objects that differ")
    return {name: value for each in different for name, value in each.items()}


def _reason(error: ValidationError) -> str:
    """Return the first thing that is wrong, with its place in the answer."""
    first = error.errors(include_url=False)[0]
    place = " ".join(str(part) for part in first["loc"] if part not in ("dimensions", "score"))
    given = first.get("input")
    said = first["msg"].removeprefix("Value error, ")
    if first["type"] == "literal_error":
        said = f"needs {first['ctx']['expected']}, not {str(given)[:40]!r}"
    return f"{place} {said[:1].lower()}{said[1:]}" if place else said
