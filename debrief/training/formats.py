"""The chat form: names, ids, texts and JSON as every trainer takes them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

import msgspec
import orjson
from msgspec import UNSET, Raw, Struct, UnsetType

from debrief.training.model import ChatCall, SampleMetadata, ToolSchema

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


class _StrictMessage(Struct, frozen=True, forbid_unknown_fields=True, tag_field="role"):
    """A message with the keys that belong to its role, and no others."""

    content: str


class StrictSystem(_StrictMessage, frozen=True, tag="system"):
    """A system message."""


class StrictUser(_StrictMessage, frozen=True, tag="user"):
    """A user message."""


class StrictAssistant(_StrictMessage, frozen=True, tag="assistant"):
    """An assistant message."""

    tool_calls: tuple[ChatCall, ...] | UnsetType = UNSET
    weight: Literal[0, 1] | UnsetType = UNSET


class StrictTool(_StrictMessage, frozen=True, tag="tool"):
    """A call's result."""

    tool_call_id: str


class _StrictMetadata(SampleMetadata, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _StrictLine(Struct, frozen=True, forbid_unknown_fields=True):
    messages: tuple[StrictSystem | StrictUser | StrictAssistant | StrictTool, ...]
    tools: Raw
    metadata: _StrictMetadata


_LINE = msgspec.json.Decoder(_StrictLine)
_TOOLS = msgspec.json.Decoder(tuple[ToolSchema, ...])


def validate_line(line: bytes | str) -> list[str]:
    """Return what is wrong with a line of a training set; an empty list when nothing is.

    Checked are the shape and types of every column, and the rules of OpenAI's fine-tuning
    format: roles and their keys, function names, declared tools, arguments, call ids, each call
    answered at once and each result called for, an assistant's words at the end.
    """
    try:
        decoded = _LINE.decode(line)
        problems, taken = _rules_of(bytes(decoded.tools))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return [f"not a line of the expected shape: {error}"]
    return [*problems, *_messages(decoded, taken)]


@lru_cache(maxsize=32)
def _rules_of(tools: bytes) -> tuple[list[str], dict[str, frozenset[str]]]:
    """Return what is wrong with a line's tools, and the arguments that each of them takes; most
    lines of a set have the same ones."""
    declared = _TOOLS.decode(tools)
    functions = [tool.function for tool in declared]
    taken = {one.name: frozenset(one.parameters.properties) for one in functions}
    return list(_tools(declared)), taken


def _tools(tools: Sequence[ToolSchema]) -> Iterator[str]:
    if not 0 < len(tools) <= MOST_TOOLS:
        yield f"{len(tools)} tools, and there must be 1 to {MOST_TOOLS}"
    names = [tool.function.name for tool in tools]
    if len(set(names)) < len(names):
        yield "two tools have one name"
    for tool in tools:
        name, parameters = tool.function.name, tool.function.parameters
        if not FUNCTION_NAME.match(name):
            yield f"tool {name!r} is not a name that OpenAI takes"
        missing = set(parameters.required) - set(parameters.properties)
        if missing:
            yield f"tool {name}: {sorted(missing)} are required and not described"


def _messages(line: _StrictLine, taken: Mapping[str, frozenset[str]]) -> Iterator[str]:
    messages = line.messages
    if not messages:
        yield "no messages"
        return
    for role, kind in (("user", StrictUser), ("assistant", StrictAssistant)):
        if not any(isinstance(message, kind) for message in messages):
            yield f"no {role} message"
    last = messages[-1]
    if not isinstance(last, StrictAssistant) or last.tool_calls or not last.content:
        yield "does not end on an assistant's words"
    open_calls: list[str] = []
    used: set[str] = set()
    for number, message in enumerate(messages):
        if isinstance(message, StrictTool):
            if message.tool_call_id in open_calls:
                open_calls.remove(message.tool_call_id)
            else:
                yield f"message {number}: a result of no open call: {message.tool_call_id!r}"
            continue
        if open_calls:
            yield f"message {number}: before it, calls without a result: {open_calls}"
            open_calls = []
        if isinstance(message, StrictSystem) and number:
            yield f"message {number}: a system message comes first or not at all"
        if not isinstance(message, StrictAssistant):
            continue
        if message.tool_calls == ():
            yield f"message {number}: an empty list of calls"
        elif not message.tool_calls and not message.content:
            yield f"message {number}: neither words nor calls"
        for call in message.tool_calls or ():
            for problem in _call(call, taken):
                yield f"message {number}: {problem}"
            if call.id in used:
                yield f"message {number}: call id {call.id} twice"
            used.add(call.id)
            open_calls.append(call.id)
    if open_calls:
        yield f"calls without a result: {open_calls}"


def _call(call: ChatCall, taken: Mapping[str, frozenset[str]]) -> Iterator[str]:
    name = call.function.name
    arguments = parsed_arguments(call.function.arguments)
    if not CALL_ID.match(call.id):
        yield f"call id {call.id!r} is not nine letters or digits"
    if name not in taken:
        yield f"call of {name!r}, which is not among the tools"
    if arguments is None:
        yield f"arguments of {call.id} are not the JSON text of an object"
    elif name in taken and (unknown := arguments.keys() - taken[name]):
        yield f"{call.id}: {name} has no {sorted(unknown)}"
