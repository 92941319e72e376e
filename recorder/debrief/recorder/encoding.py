"""Records as bytes, and bytes as records: nothing is read that two parsers could read differently.

JSON leaves open what each parser settles its own way: a key that occurs twice, half of a surrogate
pair, NaN, numbers that a double cannot hold, any depth. All of it is refused, with the place where
it is, and what a bomb would unfold to is measured before anything is built of it.

``schemas/`` holds the contract's JSON Schemas for recorders and readers in other languages, written
by ``debrief record schemas``, and ``tools.json``: the definitions in every record, which never
change.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from debrief.errors import InputError
from debrief.recorder import contracts
from debrief.recorder.contracts import APPLY_PATCH, READ_FILE, Meta, Record
from debrief.recorder.storage.rows import (
    MalformedError,
    NewTask,
    StoredSession,
    Task,
    UnfitError,
    Upload,
)

MAX_BYTES = 8_000_000
"""Of a record, and of the body that brings it."""
MAX_DEPTH = 64
MAX_STRING = 1_000_000
"""Characters of a string. A call's arguments are JSON of their own, whose strings are held to it
one by one."""
MAX_PARTS = 250_000
"""Brackets and commas of a document outside its strings: what it may expand to in memory."""
MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""

SCHEMA = "GET /openapi.json says what fits."
_MOST_REASONS = 100

Model = TypeVar("Model", bound=BaseModel)

_STRING_OR_REST = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[^"]++', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARGUMENTS = re.compile(r"(?:record\.)?messages\[\d+\]\.tool_calls\[\d+\]\.function\.arguments")
_TAGS = frozenset(
    {"system", "user", "assistant", "tool", "create_file", "update_file", "delete_file"}
)


FOLDER = Path(__file__).parent / "schemas"
PATCHED = '{"ok":true}'
"""Result of ``apply_patch``."""
_TOOLS_FILE = "tools.json"
_MODELS = (
    *(Record, Upload, NewTask, Task, StoredSession),
    *(contracts.ReadFile, contracts.ApplyPatch, contracts.RunCommand),
)
TOOLS = tuple(
    contracts.ToolDefinition(**tool)
    for tool in json.loads((FOLDER / _TOOLS_FILE).read_text(encoding="utf-8"))
)
"""The definitions in every record of a repository without rules of its own, in this order."""


def tools_for(rules: contracts.CommandRules | None) -> tuple[contracts.ToolDefinition, ...]:
    """Return the definitions of a record's tools: ``run_cmd`` names what may be run."""
    if rules is None:
        return TOOLS
    *others, run = TOOLS
    function = copy.deepcopy(run.function)
    function["description"] = "Run a command of the repository."
    known: Any = function["parameters"]
    known["properties"]["cmd"]["enum"] += sorted({rule.program for rule in rules.commands})
    return (*others, run.model_copy(update={"function": function}))


def encode_record(record: Record) -> bytes:
    """Return the record as compact JSON in UTF-8; the same record always gives the same bytes.

    Raises:
        InputError: a text cannot be written in UTF-8.
    """
    return _dump(record, "record").encode()


def encode_arguments(arguments: BaseModel) -> str:
    """Return a call's arguments as the JSON text of its message.

    Raises:
        InputError: a text cannot be written in UTF-8.
    """
    return _dump(arguments, "arguments")


def decode_record(data: bytes, culprit: str = "record") -> Record:
    """Return the record that ``data`` contains.

    Its shape is checked and no more: whether it is consistent is for ``checks.problems_of``.

    Raises:
        InputError: it is too large, not JSON, ambiguous, or not of the contract; names the place.
    """
    return decode(Record, data, culprit)


def decode(model: type[Model], data: bytes | str, culprit: str, next_move: str = "") -> Model:
    """Return the ``model`` that the JSON document ``data`` contains, coercing nothing.

    Args:
        model: a model of the contract.
        data: the JSON document.
        culprit: what errors call it.
        next_move: of an error about a document that does not fit.

    Raises:
        MalformedError: as of ``check_json``.
        UnfitError: it is not a ``model``; names every place.
    """
    check_json(data, culprit)
    try:
        return model.model_validate_json(data, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        items = error.errors(include_url=False, include_context=False, include_input=False)
        reasons = [
            f"{place_of(item['loc'])}: {item['msg'].removeprefix('Value error, ')}"
            for item in items[:_MOST_REASONS]
        ]
        raise UnfitError(culprit, reasons, next_move) from error


def upload_body(record: bytes, meta: Meta) -> bytes:
    """Return the body of ``POST /sessions``, which contains the record's bytes unchanged."""
    fields = {
        "id": str(meta.session_id),
        "taskId": meta.task_id,
        "repoName": meta.repo_name,
        "repoRemote": meta.repo_remote,
        "branch": meta.branch,
        "baseRef": meta.base_ref,
        "createdAt": meta.stopped_at.isoformat(),
    }
    return b'%s,"record":%s}' % (msgspec.json.encode(fields)[:-1], record)


def member(data: bytes, name: str) -> bytes:
    """Return the exact bytes of a member of the JSON object ``data``."""
    return bytes(msgspec.json.decode(data, type=dict[str, msgspec.Raw])[name])


def check_json(data: bytes | str, culprit: str) -> None:
    """Make sure that every JSON parser reads a document in the same way.

    Raises:
        MalformedError: it is too large or too deep, not JSON, or ambiguous; names the place.
    """
    try:
        data = data.encode() if isinstance(data, str) else data
        if len(data) > MAX_BYTES:
            raise MalformedError(culprit, f"over {MAX_BYTES:,} bytes", "Record a smaller change.")
        text = data.decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raise MalformedError(culprit, f"not UTF-8: {error.reason} at {error.start:,}") from None
    structure = _structure_of(data)
    try:
        if len(structure) > MAX_PARTS:
            if b"[" * MAX_DEPTH in structure or b"{" * MAX_DEPTH in structure:
                raise RecursionError
            raise MalformedError(culprit, f"over {MAX_PARTS:,} values", "Record a smaller change.")
        _check(_PARSER.decode(text), "", 0, culprit)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise MalformedError(culprit, f"not JSON at {place}: {error.msg}") from None
    except RecursionError:
        raise MalformedError(culprit, f"nested over {MAX_DEPTH} deep") from None


def _structure_of(data: bytes) -> bytearray:
    """Return the brackets and commas outside strings, enough to see whether they are too many.

    Nothing is built of the document yet, and other threads get their turn between two strings.
    """
    structure = bytearray()
    for part in _STRING_OR_REST.finditer(data) if len(data) > MAX_PARTS else ():
        if not part[0].startswith(b'"'):
            structure += part[0].translate(None, _NOT_STRUCTURE)
        if len(structure) > MAX_PARTS:
            break
    return structure


class _Ambiguous(Struct, frozen=True):
    """Stands in a parsed document for a value that is refused, until its place is known."""

    reason: str


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        members |= {
            key: _Ambiguous("the key occurs twice") for key, count in counts.items() if count > 1
        }
    return members


def _integer(digits: str) -> object:
    if len(digits) > 17 or abs(value := int(digits)) > MAX_INTEGER:
        return _Ambiguous("an integer that not every parser reads exactly")
    return value


def _number(digits: str) -> object:
    if len(digits) > 64 or not math.isfinite(value := float(digits)):
        return _Ambiguous("a number that not every parser reads the same way")
    return value


_PARSER = json.JSONDecoder(
    object_pairs_hook=_members,
    parse_int=_integer,
    parse_float=_number,
    parse_constant=lambda name: _Ambiguous(f"{name} is not JSON"),
)


def _check(value: object, place: str, depth: int, culprit: str) -> None:
    problem = ""
    if isinstance(value, _Ambiguous):
        problem = value.reason
    elif isinstance(value, str):
        problem = _text_problem(value, place)
    elif isinstance(value, list | dict):
        if depth == MAX_DEPTH:
            raise RecursionError
        if isinstance(value, list):
            for number, item in enumerate(value):
                _check(item, f"{place}[{number}]", depth + 1, culprit)
            return
        for key, item in value.items():
            if in_key := _text_problem(key, place):
                problem = f"in a key: {in_key}"
                break
            _check(item, f"{place}.{key[:80]}" if place else key[:80], depth + 1, culprit)
    if problem:
        raise MalformedError(culprit, f"{place or 'at the top'}: {problem}")


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


class AnsweredCall(Struct, frozen=True):
    """A call of a tool, and its result."""

    call: contracts.Call
    result: str
    index: int
    """Of the call's message in the record, from 0."""

    def arguments(self, model: type[Model]) -> Model:
        """Return the call's arguments.

        Raises:
            InputError: they are not of the contract.
        """
        where = f"messages[{self.index}], arguments of {self.call.function.name}"
        return decode(model, self.call.function.arguments, where)


def calls_of(record: Record, tool: str | None = None) -> Iterator[AnsweredCall]:
    """Yield the calls that the next message answers, in order; of one tool, or of all."""
    for index, (message, answer) in enumerate(pairwise(record.messages)):
        if not isinstance(message, contracts.AssistantMessage) or not message.tool_calls:
            continue
        call = message.tool_calls[0]
        linked = isinstance(answer, contracts.ToolMessage) and answer.tool_call_id == call.id
        if linked and tool in (None, call.function.name):
            yield AnsweredCall(call, answer.content, index)


def patches_of(record: Record) -> list[list[contracts.Operation]]:
    """Return the operations of each of the record's patches.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    return [each.arguments(contracts.ApplyPatch).ops for each in calls_of(record, APPLY_PATCH)]


def operations_of(record: Record) -> list[contracts.Operation]:
    """Return the operations of all of the record's patches, one after the other; errors as of
    ``patches_of``."""
    return [op for patch in patches_of(record) for op in patch]


def files_of(record: Record) -> dict[str, str]:
    """Return the baseline's files that the record holds: text by path, in the record's order.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    calls = calls_of(record, READ_FILE)
    return {each.arguments(contracts.ReadFile).path: each.result for each in calls}


def schemas() -> dict[str, str]:
    """Return the text of each schema's file by its name, and the definitions of the tools."""
    texts = {_TOOLS_FILE: (FOLDER / _TOOLS_FILE).read_text(encoding="utf-8")}
    for model in _MODELS:
        name = re.sub("(?<!^)(?=[A-Z])", "-", model.__name__).lower()
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **model.model_json_schema(by_alias=True),
        }
        texts[f"{name}.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return texts


def write_schemas(folder: Path) -> list[Path]:
    """Write the schemas into ``folder`` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = schemas()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in texts]
