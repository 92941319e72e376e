"""Remove sessions from within rows, lines and documents, and keep the rest."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from debrief.forgetting.signs import Signs

Row = TypeVar("Row", bound=msgspec.Struct)
_GONE: Final = object()


def pruned_row(row: Row, signs: Signs, *, may_quote: bool) -> Row | None:
    """Return a row without what it holds of the sessions; None when it is one of theirs.

    Args:
        row: of a table.
        signs: of the sessions.
        may_quote: the row may hold their words without naming them.
    """
    plain = msgspec.to_builtins(row, builtin_types=(datetime, bytes))
    left = pruned(plain, signs, may_quote=may_quote and not signs.name_another(plain))
    if left is None:
        return None
    return row if left == plain else msgspec.convert(left, type(row))


def quotes_any(row: Struct, signs: Signs) -> bool:
    """Return whether a row holds words of the sessions, whichever session it names."""
    plain = msgspec.to_builtins(row, builtin_types=(datetime, bytes))
    return bool(pruned(plain, signs, may_quote=True) != plain)


def pruned(value: Any, signs: Signs, *, may_quote: bool) -> Any:
    """Return a decoded value without what it holds of the sessions; None when nothing is left.

    An entry of a list goes alone. A text takes the object along that it is a value of: an object
    that has lost a value says something else.
    """
    left = _without(value, signs, may_quote, "")
    return None if left is _GONE else left


def _without(value: Any, signs: Signs, may_quote: bool, field: str) -> Any:
    if isinstance(value, str):
        is_theirs = signs.names(value, field) or (may_quote and signs.quotes(value))
        return _GONE if is_theirs else value
    if isinstance(value, list | tuple):
        kept = (_without(item, signs, may_quote, field) for item in value)
        return type(value)(item for item in kept if item is not _GONE)
    if isinstance(value, dict):
        left = {}
        for key, item in value.items():
            if signs.names(str(key), "id"):
                continue
            left[key] = _without(item, signs, may_quote, str(key))
            if left[key] is _GONE:
                return _GONE
        return left
    return value


def pruned_lines(text: str, signs: Signs) -> tuple[str, int]:
    """Return a text without the lines that name the sessions or quote them, and how many these
    were."""
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if not signs.are_in(line)]
    return "".join(kept), len(lines) - len(kept)
