"""Refuse wrong values in addresses, on all pages in one way: status 400 and what is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError

from debrief.errors import without_controls
from debrief.markdown import shorten

_MOST_SHOWN, _LONGEST = 12, 60
_FORMS = {
    "int_parsing": "is no whole number",
    "bool_parsing": "is neither 1 nor 0",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "missing": "is missing",
}
"""What is wrong with a value that FastAPI refuses, by the type of its error."""


def refused(name: str, value: str, reason: str, known: Iterable[object] = ()) -> HTTPException:
    """Return the refusal of a value of an address, to be raised.

    Args:
        name: of the parameter.
        value: that it has.
        reason: what is wrong with it, as a clause that goes on from the value.
        known: values that it may have.
    """
    names = list(map(str, known))
    more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
    listed = f". Known: {', '.join(names[:_MOST_SHOWN])}{more}" if names else ""
    shown = shorten(without_controls(value), _LONGEST)
    return HTTPException(400, f"{name}={shown} {reason}{listed}")


def number_of(name: str, value: str, *, least: int, most: int) -> int:
    """Return a whole number of an address, within bounds.

    Raises:
        HTTPException: It is none.
    """
    if not (value.isascii() and value.isdecimal() and least <= int(value[:9]) <= most):
        raise refused(name, value, f"is no whole number from {least} to {most:,}")
    return int(value)


def refused_by_form(error: RequestValidationError) -> HTTPException:
    """Return the refusal of an address whose values have the wrong form."""
    first: dict[str, Any] = error.errors()[0]
    name, kind = str(first["loc"][-1]), first["type"]
    reason = _FORMS.get(kind, first["msg"]).format(**first.get("ctx", {}))
    value = "" if kind == "missing" else str(first["input"])
    return refused(name, value, reason)
