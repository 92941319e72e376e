"""Records as bytes, and bytes as records: nothing gets in that two readers could take differently.

JSON leaves open what each parser settles its own way: a key that occurs twice, half of a surrogate
pair, NaN, numbers that a double cannot hold, any depth. All of it is refused, with the place where
it is, and what a bomb would unfold to is measured before anything is built of it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import orjson
from msgspec import Struct
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from debrief.errors import InputError
from debrief.recorder.contracts import Record

MAX_BYTES = 8_000_000
"""Of a record, and of the body that brings it."""
MAX_DEPTH = 64
MAX_STRING = 1_000_000
"""Characters of a string. A call's arguments are JSON of their own, whose strings are held to it
one by one."""
MAX_PARTS = 250_000
"""Brackets and commas of a document outside its strings: what it may unfold to in memory."""
MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""

Model = TypeVar("Model", bound=BaseModel)

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NOT_STRUCTURE = re.compile(r"[^\[\]{},]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARGUMENTS = re.compile(r"(?:record\.)?messages\[\d+\]\.tool_calls\[\d+\]\.function\.arguments")
_RISKY = re.compile(rb"\\u(?:0000|[dD])")
"""Escapes that may stand for NUL, or for half of a surrogate pair."""
_AS_WRITTEN = orjson.OPT_STRICT_INTEGER
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_CONTAINERS = frozenset({dict, list})
_TAGS = frozenset(
    {"system", "user", "assistant", "tool", "create_file", "update_file", "delete_file"}
)


def encode_record(record: Record) -> bytes:
    """Return the record as compact JSON in UTF-8; the same record always gives the same bytes.

    Raises:
        InputError: a text cannot be written in UTF-8.
    """
    return _dump(record, "record").encode()


def encode_arguments(arguments: BaseModel) -> str:
    """Return a call's arguments as the JSON text that stands in its message.

    Raises:
        InputError: a text cannot be written in UTF-8.
    """
    return _dump(arguments, "arguments")


def decode_record(data: bytes, culprit: str = "record") -> Record:
    """Return the record that ``data`` holds.

    Its shape is checked and no more: whether it is consistent is for ``checks.problems_of``.

    Raises:
        InputError: it is too large, not JSON, ambiguous, or not of the contract; names the place.
    """
    return decode(Record, data, culprit)


def decode(model: type[Model], data: bytes | str, culprit: str) -> Model:
    """Return the ``model`` that the JSON document ``data`` holds, coercing nothing.

    Args:
        model: a model of the contract.
        data: the JSON document.
        culprit: what errors call it.

    Raises:
        InputError: as of ``decode_record``.
    """
    try:
        return model.model_validate(
            read(data, culprit).value, strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise InputError(culprit, f"{place_of(first['loc'])}: {first['msg']}") from error


class Document(Struct, frozen=True):
    """A JSON document that all parsers read in one way."""

    data: bytes
    """In UTF-8, as it came."""
    value: object
    """What it holds."""
    compact: bool
    """It stands there as ``orjson`` writes it, and so does each of its parts."""

    def member(self, name: str) -> bytes:
        """Return the bytes of a member of the object that it is, exactly as they stand in it."""
        if self.compact and isinstance(self.value, dict):
            return orjson.dumps(self.value[name], option=_AS_WRITTEN)
        return bytes(_MEMBERS.decode(self.data)[name])


def read(data: bytes | str, culprit: str) -> Document:
    """Return a JSON document once it is certain that all parsers agree on it.

    Raises:
        InputError: it is too large or too deep, not JSON, or ambiguous; names the place.
    """
    try:
        data = data.encode() if isinstance(data, str) else data
        if len(data) > MAX_BYTES:
            raise InputError(culprit, f"over {MAX_BYTES:,} bytes", "Record a smaller change.")
        text = data.decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raise InputError(culprit, f"not UTF-8: {error.reason} at {error.start:,}") from None
    if len(data) > MAX_PARTS:
        _measure(text, culprit)
    risky = len(data) > MAX_STRING or _RISKY.search(data) is not None
    tree = None if risky else _unchanged(data)
    compact, is_ambiguous = tree is not None, False
    if tree is None:
        tree, is_ambiguous = _parse(text, culprit)
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _is_deep(tree):
        raise InputError(culprit, f"nested over {MAX_DEPTH} deep")
    if risky or is_ambiguous:
        for place, problem in _problems(tree):
            raise InputError(culprit, f"{place}: {problem}")
    return Document(data, tree, compact)


def _unchanged(data: bytes) -> object:
    """Return what a document holds if it is the same when it is written again, else None.

    Then nothing in it was dropped, rounded or replaced. It is how most writers write, and saves
    looking at every value.
    """
    try:
        tree: object = orjson.loads(data)
        return tree if orjson.dumps(tree, option=_AS_WRITTEN) == data else None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None


def _is_deep(tree: object) -> bool:
    level: list[object] = [tree]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner += [one for one in value.values() if type(one) in _CONTAINERS]
            elif isinstance(value, list):
                inner += [one for one in value if type(one) in _CONTAINERS]
        if not inner:
            return False
        level = inner
    return True


def _measure(text: str, culprit: str) -> None:
    structure = _NOT_STRUCTURE.sub("", _STRING.sub("", text))
    if len(structure) > MAX_PARTS:
        raise InputError(culprit, f"over {MAX_PARTS:,} values", "Record a smaller change.")
    depth = 0
    for mark in structure.replace(",", ""):
        depth += 1 if mark in "[{" else -1
        if depth > MAX_DEPTH:
            raise InputError(culprit, f"nested over {MAX_DEPTH} deep")


class _Ambiguous(Struct, frozen=True):
    """Stands in a parsed document for what cannot be taken, until its place is known."""

    reason: str


def _parse(text: str, culprit: str) -> tuple[object, bool]:
    """Return the document, and whether something ambiguous stands in it."""
    found: list[_Ambiguous] = []

    def ambiguous(reason: str) -> _Ambiguous:
        found.append(_Ambiguous(reason))
        return found[-1]

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) != len(pairs):
            for key, times in Counter(key for key, _ in pairs).items():
                if times > 1:
                    made[key] = ambiguous("the key occurs twice")
        return made

    def integer(digits: str) -> object:
        if len(digits) > 17 or abs(value := int(digits)) > MAX_INTEGER:
            return ambiguous("an integer that not every parser reads exactly")
        return value

    def number(digits: str) -> object:
        if len(digits) > 64 or not math.isfinite(value := float(digits)):
            return ambiguous("a number that not every parser reads the same way")
        return value

    def constant(name: str) -> object:
        return ambiguous(f"{name} is not JSON")

    parser = json.JSONDecoder(
        object_pairs_hook=members, parse_int=integer, parse_float=number, parse_constant=constant
    )
    try:
        return parser.decode(text), bool(found)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(culprit, f"not JSON at {place}: {error.msg}") from None
    except RecursionError:
        raise InputError(culprit, f"nested over {MAX_DEPTH} deep") from None


def _problems(tree: object, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(tree, _Ambiguous):
        yield place or "at the top", tree.reason
    elif isinstance(tree, str):
        if problem := _text_problem(tree, place):
            yield place or "at the top", problem
    elif isinstance(tree, list):
        for number, item in enumerate(tree):
            yield from _problems(item, f"{place}[{number}]")
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if problem := _text_problem(key, place):
                yield place or "at the top", f"in a key: {problem}"
            else:
                yield from _problems(value, f"{place}.{key[:80]}" if place else key[:80])


def _text_problem(text: str, place: str) -> str:
    if "\0" in text:
        return "the character NUL"
    if not text.isascii() and _SURROGATE.search(text):
        return "half of a surrogate pair"
    if len(text) > MAX_STRING and not _ARGUMENTS.fullmatch(place):
        return f"a string of over {MAX_STRING:,} characters"
    return ""


def place_of(steps: tuple[int | str, ...]) -> str:
    """Return the way to a value as people write it: ``messages[3].role``."""
    place, after_number = "", False
    for step in steps:
        if isinstance(step, int):
            place += f"[{step}]"
        elif not (after_number and step in _TAGS):
            place += f".{step[:80]}" if place else step[:80]
        after_number = isinstance(step, int)
    return place or "at the top"


def _dump(model: BaseModel, culprit: str) -> str:
    try:
        return model.model_dump_json(by_alias=True)
    except (PydanticSerializationError, UnicodeError) as error:
        raise InputError(culprit, "a text in it cannot be written in UTF-8") from error
