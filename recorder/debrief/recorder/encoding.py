"""Records as bytes, and bytes as records.

A record is written in one way, from the validated model; whoever stores it stores that, and not
what a sender wrote, so that no two parsers can read it differently.

``schemas/`` holds the contract's JSON Schemas for recorders and readers in other languages, written
by ``debrief record schemas``, and ``tools.json``: the definitions in every record, which never
change.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from debrief.errors import InputError
from debrief.recorder import contracts
from debrief.recorder.contracts import APPLY_PATCH, READ_FILE, RUN_COMMAND, Meta, Record
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
MAX_PARTS = 250_000
"""Brackets and commas of a body outside its strings: each value may become a model, or an error."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"[{,"))

SCHEMA = "GET /openapi.json says what fits."
_MOST_REASONS = 100

Model = TypeVar("Model", bound=BaseModel)

_TAGS = frozenset(
    {"system", "user", "assistant", "tool", "create_file", "update_file", "delete_file"}
)


def has_too_many_parts(data: bytes) -> bool:
    """Return whether a body has more values than are read. Nothing is built of it yet."""
    if sum(map(data.count, (b"[", b"{", b","))) <= MAX_PARTS:
        return False
    return len(_STRING.sub(b"", data).translate(None, _NOT_STRUCTURE)) > MAX_PARTS


_ARGUMENTS: dict[str, type[BaseModel]] = {
    READ_FILE: contracts.ReadFile,
    APPLY_PATCH: contracts.ApplyPatch,
    RUN_COMMAND: contracts.RunCommand,
}
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


def encode_record(
    record: Record, *, only_set: bool = False, without: Collection[str] = ()
) -> bytes:
    """Return the record as compact JSON in UTF-8; the same record always gives the same bytes.

    Args:
        record: the record.
        only_set: leave out what it did not say and has by default: a record that an earlier
            recorder wrote, which knew fewer fields, gives its own bytes again.
        without: fields of ``meta`` to leave out.

    Raises:
        InputError: a text cannot be written in UTF-8.
    """
    return _dump(record, "record", only_set=only_set, exclude={"meta": set(without)}).encode()


def canonical(record: Record) -> Record:
    """Return the record with its calls' arguments as ``encode_arguments`` writes them, and the
    operations of each patch in the contract's order.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    messages: list[contracts.Message] = []
    for index, message in enumerate(record.messages):
        if isinstance(message, contracts.AssistantMessage) and message.tool_calls:
            [call] = message.tool_calls
            where = f"messages[{index}], arguments of {call.function.name}"
            given = decode(_ARGUMENTS[call.function.name], call.function.arguments, where)
            if isinstance(given, contracts.ApplyPatch):
                given = contracts.ApplyPatch(ops=sorted(given.ops, key=contracts.operation_order))
            function = call.function.model_copy(update={"arguments": encode_arguments(given)})
            calls = [call.model_copy(update={"function": function})]
            message = message.model_copy(update={"tool_calls": calls})
        messages.append(message)
    return record.model_copy(update={"messages": messages})


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
        MalformedError: it is too long, or not JSON.
        UnfitError: it is not a ``model``; names every place.
    """
    if len(data) > MAX_BYTES:
        raise MalformedError(culprit, f"over {MAX_BYTES:,} bytes", "Record a smaller change.")
    try:
        # Pydantic's own parser takes up to 2 GB for 8 MB of brackets.
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise MalformedError(culprit, f"not JSON: {error}") from error
    try:
        return model.model_validate(value, strict=True, by_alias=True, by_name=False)
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


def _dump(
    model: BaseModel,
    culprit: str,
    *,
    only_set: bool = False,
    exclude: dict[str, set[str]] | None = None,
) -> str:
    try:
        return model.model_dump_json(by_alias=True, exclude_unset=only_set, exclude=exclude)
    except (PydanticSerializationError, UnicodeError) as error:
        raise InputError(culprit, "a text in it cannot be written in UTF-8") from error


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
