"""The strings of a JSON text, each with the name that it is the value of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

Visit = Callable[[str, str, str], str]
"""Takes a string, its name and the way to it (``messages.0.content``); returns its replacement."""

_LONG_NUMBER = re.compile(r"\d{17}|\d[eE]")


def decode(text: str | bytes) -> Any:
    """Decode JSON without loss: numbers too long for a machine word stay exact.

    Raises:
        ValueError: the text is no JSON, holds half a surrogate pair, or is nested too deep.
    """
    try:
        value = orjson.loads(text)
        plain = text if isinstance(text, str) else text.decode()
        return json.loads(plain) if _LONG_NUMBER.search(plain) else value
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def encode(value: Any) -> str:
    """Encode a decoded value compactly.

    Raises:
        ValueError: it is nested too deep.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def visit_strings(value: Any, visit: Visit) -> Any:
    """Return a decoded JSON value with every string, keys included, replaced by a visitor.

    Raises:
        ValueError: it is nested too deep.
    """
    try:
        return _visit(value, "", "", visit)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _visit(value: Any, name: str, path: str, visit: Visit) -> Any:
    if isinstance(value, str):
        return visit(value, name, path)
    if isinstance(value, dict):
        changed = {}
        for key, item in value.items():
            way = f"{path}.{key}" if path else key
            item_name = _named(value) if key.lower() == "value" else key
            changed[visit(key, "", way)] = _visit(item, item_name, way, visit)
        return changed
    if isinstance(value, list):
        return [
            _visit(item, name, f"{path}.{number}" if path else str(number), visit)
            for number, item in enumerate(value)
        ]
    return value


def _named(value: Mapping[str, Any]) -> str:
    """Return the name in an object such as ``{"name": "DB_PASSWORD", "value": …}``."""
    for key in ("name", "key", "Name", "Key"):
        name = value.get(key)
        if isinstance(name, str) and len(name) < 128:
            return name
    return "value"
