"""Fields of the JSON that models answer with, read by the same rules everywhere.

A slip that has one meaning is read: numbers in quotes, ``N/A`` for null, keys in capitals. What has
two meanings is refused, so that the model is asked again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from debrief.models.answers import answer_text, fold, json_values, refuse

_NULLS = frozenset(
    {"", "null", "none", "nil", "n/a", "na", "not_applicable", "cannot_be_seen", "-", "–", "—"}
)
_AROUND = " \t\n.,;:!\"'`*_“”‘’"
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?")


def word(value: Any) -> Any:
    """Return a word as the form writes it; anything but text as it is.

    >>> word("Done, seen."), word("Not-Done"), word(0.5)
    ('done_seen', 'failed', 0.5)
    """
    if not isinstance(value, str):
        return value
    return re.sub(r"[\s,_-]+", "_", fold(value).strip(_AROUND).casefold())


def is_null(value: Any) -> bool:
    """Return whether a value says that there is none: null itself, or a word for it."""
    return value is None or (isinstance(value, str) and word(value) in _NULLS)


def _text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = "\n".join(value)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value).strip() if plain or isinstance(value, str) else value


def _fraction(value: Any) -> Any:
    if is_null(value):
        return None
    if isinstance(value, str):
        plain = fold(value).strip(" \t\n\"'`*_").removesuffix(".")
        if not _NUMBER.fullmatch(plain):
            raise ValueError(f"{value[:40]!r} is not a number from 0 to 1")
        value = float(plain)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:40]!r} is not a number from 0 to 1")
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"{value!r} is not from 0 to 1")
    return float(value)


Text = Annotated[str, BeforeValidator(_text)]
"""Text; a list of lines and a bare number are taken too, null is empty."""
Fraction = Annotated[float | None, BeforeValidator(_fraction)]
"""A number from 0 to 1, or None. Percentages, decimal commas and fractions are refused, for they
may be slips of another scale, and nothing is clamped."""


class AnswerPart(BaseModel):
    """An object of an answer; fields that nobody asked for are left aside."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def folded_keys(value: Any) -> Any:
    """Return a JSON value whose keys are written as forms write them: ``Feed-Back`` as
    ``feed_back``."""
    if isinstance(value, list):
        return [folded_keys(each) for each in value]
    if isinstance(value, dict):
        return {word(key): folded_keys(each) for key, each in value.items()}
    return value


def one_object(found: Sequence[dict[str, Any]], fields: str) -> dict[str, Any]:
    """Return the one answer, put together where a model gave it in pieces.

    Args:
        found: the objects of an answer that are all or a piece of it.
        fields: what it must have, for the refusal.

    Raises:
        AnswerError: there is none, or several that differ.
    """
    different: list[dict[str, Any]] = []
    for each in found:
        if each not in different:
            different.append(each)
    if not different:
        refuse(f"it holds no object with {fields}")
    names = [name for each in different for name in each]
    if len(names) != len(set(names)):
        refuse("it holds several objects that differ")
    return {name: value for each in different for name, value in each.items()}


def problem_of(error: ValidationError) -> str:
    """Return the first thing that is wrong, with its place in the answer."""
    first = error.errors(include_url=False)[0]
    place = " ".join(str(part) for part in first["loc"] if part not in ("dimensions", "score"))
    given = first.get("input")
    problem = first["msg"].removeprefix("Value error, ")
    if first["type"] == "literal_error":
        problem = f"needs {first['ctx']['expected']}, not {str(given)[:40]!r}"
    return f"{place} {problem[:1].lower()}{problem[1:]}" if place else problem


Form = TypeVar("Form", bound=AnswerPart)


def read_form(form: type[Form], answer: str, field: str) -> Form:
    """Return the one object of an answer that has a field, read by its form.

    Raises:
        AnswerError: there is none, several that differ, or one that the form does not take.
    """
    values = [folded_keys(found.value) for found in json_values(answer_text(answer))]
    objects = [each for each in values if isinstance(each, dict) and field in each]
    try:
        return form.model_validate(one_object(objects, field))
    except ValidationError as error:
        refuse(problem_of(error))
