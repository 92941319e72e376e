"""The chat form: names, ids, texts and JSON as every trainer takes them."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime

import msgspec
import orjson

CALL_ID = re.compile(r"[A-Za-z0-9]{9}\Z")
FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
MOST_TOOLS = 128
"""OpenAI takes no more in a line."""

_LONGEST_NAME = 64
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_TIME_LIKE = re.compile(r"\d{4}-\d\d?-\d\d?([T ][\d:]+(Z|[+-][\d:]+)?)?\Z")


def function_name(tool: str) -> str:
    """Return the name under which a tool stands in a training set.

    Models are tuned with ``[a-zA-Z0-9_-]{1,64}`` only; a dot, and whatever else is not allowed,
    becomes an underscore, and a name that is too long is cut and stamped.

    >>> function_name("repo.readFile")
    'repo_readFile'
    """
    name = _NOT_IN_A_NAME.sub("_", tool) or "unnamed_tool"
    if len(name) <= _LONGEST_NAME:
        return name
    stamp = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - len(stamp) - 1]}_{stamp}"


def call_id(number: int) -> str:
    """Return the id of a line's ``number``-th call, from 1: always nine letters or digits.

    >>> call_id(1)
    'call00001'
    """
    return f"call{number:05d}" if number < 100_000 else f"c{number:08d}"


def time_text(moment: datetime) -> str:
    """Return a time in UTC with six digits of a second.

    Loaders take whole-second times for timestamps and others for strings; with all six digits
    every time of every file is a string.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def label(value: str) -> str:
    """Return a name so that no loader takes it for a time.

    A task called ``2026-01-05`` would make its file's column one of timestamps, and the file
    would not load together with others. Such a value gets a space at its end.
    """
    return f"{value} " if _TIME_LIKE.match(value) else value


def whole_text(text: str) -> str:
    """Return ``text`` in a form that UTF-8 can hold: a lone surrogate becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def parsed_arguments(text: str) -> dict[str, object] | None:
    """Return a call's arguments; None when ``text`` is not the JSON text of an object."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def call_arguments(text: str) -> tuple[dict[str, object], str]:
    """Return a call's arguments, and the JSON text of an object that holds them.

    That is ``text`` itself, to the letter, where it is one. What is no object, such as the bare
    patch that some tools take, becomes ``{"input": …}``; and half a character, which JSON can
    spell and UTF-8 cannot, is mended.
    """
    arguments = parsed_arguments(text)
    if arguments is not None:
        return arguments, text
    try:
        loose = _whole(json.loads(text))
        if isinstance(loose, dict):
            return loose, _compact(loose)
    except (ValueError, RecursionError):
        pass
    bare: dict[str, object] = {"input": whole_text(text)}
    return bare, _compact(bare)


def encode(value: object) -> bytes:
    """Return ``value`` as one line of JSON, UTF-8, without the line end."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(msgspec.to_builtins(value)))


def _whole(value: object) -> object:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def _compact(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
