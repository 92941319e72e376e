"""Find the strings in JSON together with the names of their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

Visit = Callable[[str, str, str], str]
"""Takes a string, its name and the way to it (``messages.0.content``); returns its replacement."""

_LONG_NUMBER = re.compile(r"\d{17}|\d[eE]")


def decode(text: str) -> Any:
    """Decode JSON without loss: numbers too long for a machine word stay exact.

    Raises:
        ValueError: the text is no JSON, or holds half a surrogate pair.
        RecursionError: it is nested too deep.
    """
    value = orjson.loads(text)
    return json.loads(text) if _LONG_NUMBER.search(text) else value


def encode(value: Any) -> str:
    """Encode a decoded value compactly.

    Raises:
        RecursionError: it is nested too deep.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def visit_strings(value: Any, visit: Visit, name: str = "", path: str = "") -> Any:
    """Return a decoded JSON value with every string, keys included, replaced by a visitor.

    Args:
        value: decoded JSON.
        visit: called with each string.
        name: that ``value`` is the value of.
        path: the way to ``value``.

    Raises:
        RecursionError: it is nested too deep.
    """
    if isinstance(value, str):
        return visit(value, name, path)
    if isinstance(value, dict):
        changed = {}
        for key, item in value.items():
            way = f"{path}.{key}" if path else key
            item_name = _named(value, name) if key.lower() in _VALUES else key
            changed[visit(key, "", way)] = visit_strings(item, visit, item_name, way)
        return changed
    if isinstance(value, list):
        return [
            visit_strings(item, visit, name, f"{path}.{number}" if path else str(number))
            for number, item in enumerate(value)
        ]
    return value


def strings_in(json_text: str) -> list[tuple[str, str, str]]:
    """Return the strings of a JSON text, each with its name and the way to it.

    Raises:
        ValueError: the text is no JSON, or holds half a surrogate pair.
        RecursionError: it is nested too deep.
    """
    leaves: list[tuple[str, str, str]] = []

    def note(leaf: str, name: str, way: str) -> str:
        leaves.append((leaf, name, way))
        return leaf

    visit_strings(orjson.loads(json_text), note)
    return leaves


_VALUES = ("value", "raw", "plaintext", "current", "default")


def _named(value: Mapping[str, Any], above: str) -> str:
    """Return the name of what an object calls its value: it stands beside it, or one level up."""
    for key in ("name", "key", "Name", "Key") if above.lower() != "cookies" else ():
        name = value.get(key)
        if isinstance(name, str) and len(name) < 128:
            return name
    return above or "value"
