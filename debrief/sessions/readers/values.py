"""Read values of unknown type out of transcripts: texts, counts, times, contents, tools.

Programs put elements such as ``<system-reminder>…</system-reminder>`` into texts. They are found
by ``str.find`` and not by a pattern: where thousands are opened and none is closed, a pattern
would look for the end of each from there to the end of the text.

Sources declare tools in any vendor's words. OpenAI wraps a function or lays it flat, Anthropic and
the Model Context Protocol call its arguments an input schema, Bedrock wraps that once more, Gemini
puts functions into a list of their own, Codex groups them by namespace, and tracing libraries
write any of these as JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from debrief.keys import FIRST_WEEK
from debrief.sessions.model import DeclaredTool, Usage
from debrief.sessions.readers.documents import compact_json

UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""An id that its tool made up for one thing alone."""

_COUNT = re.compile(r"[0-9]{1,16}")
_FEWEST_SIGNS, _FEWEST_DIGITS = 4, 3
"""In an id that is no word, as those are with which other tools mask ids."""
NO_TIME = datetime.combine(date.fromisoformat(FIRST_WEEK), datetime.min.time(), UTC)
"""Start of the first week: stands for the time of a session that nothing tells the time of."""
_DIGITS = re.compile(r"[0-9]{9,16}(?:\.[0-9]{1,9})?")
"""A time in seconds or milliseconds since 1970, as text. Shorter text may be a date."""
_LATEST = datetime(2099, 12, 31, tzinfo=UTC)
_SECONDS_OF_LATEST_YEAR = 4_102_444_800
_REMINDER, _REMINDED = "<system-reminder>", "</system-reminder>"
_REMINDER_S_END = 32
"""Characters in which a reminder ends, with some white space."""


def is_made_up(id: str) -> bool:
    """Return whether an id looks made up by its tool for one session alone.

    A word does not (``test``, ``REDACTED``): others mask ids with one, the same for all.
    """
    if len(set(id)) < _FEWEST_SIGNS:
        return False
    return UNIQUE.search(id) is not None or sum(map(str.isdigit, id)) >= _FEWEST_DIGITS


def string(value: Any) -> str:
    """Return ``value`` when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    """Return ``value`` when it is an object, else an empty one."""
    return value if type(value) is dict else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the objects in ``value`` when it is a list, else none."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def first_string(record: dict[str, Any], *names: str) -> str:
    """Return the first of some fields that is a string and not empty; empty without one."""
    return next((value for name in names if (value := string(record.get(name)))), "")


def whole_number(value: Any) -> int:
    """Return a count out of a transcript, which may be text in digits: 0 for whatever is not a
    number from 0 to 2**53."""
    if type(value) is str and _COUNT.fullmatch(value):
        value = int(value)
    if type(value) is int:
        return value if 0 <= value < 1 << 53 else 0
    return int(value) if type(value) is float and 0 <= value < 1 << 53 else 0


def is_count(value: Any) -> bool:
    """Return whether a value is one that ``whole_number`` takes as it is."""
    return whole_number(value) != 0 or value in (0, "0")


def whole_numbers(record: Any, *names: str) -> list[int]:
    """Return counts out of an object's fields; see ``whole_number``."""
    fields = mapping(record)
    return [whole_number(fields.get(name)) for name in names]


class TokenNames(Struct, frozen=True):
    """What a source calls the four counts of a ``Usage``; empty for one that it does not have.

    What a model thought is a part of the output.
    """

    input: str
    output: str
    cache_write: str = ""
    cache_read: str = ""
    cached_inside: bool = False
    """Its input includes what was written to a cache and read from it."""

    def usage(self, counts: Any) -> Usage:
        """Return the tokens in an object that has these counts."""
        names = (self.input, self.output, self.cache_write, self.cache_read)
        return (
            usage_in(counts, *names)
            if self.cached_inside
            else Usage(*whole_numbers(counts, *names))
        )


ANTHROPIC_TOKENS = TokenNames(
    "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"
)


def usage_in(counts: Any, *names: str) -> Usage:
    """Return tokens whose input includes those that were written to a cache and read from it.

    Args:
        counts: an object.
        names: of its input, output, tokens written and tokens read; empty where it has none.
    """
    given, output, written, read = whole_numbers(counts, *names)
    return Usage(max(0, given - written - read), output, written, read)


def number_in(text: str, pattern: re.Pattern[str], otherwise: int | None = None) -> int | None:
    """Return the number in the first group of a pattern's first match.

    Args:
        otherwise: returned where nothing matches.
    """
    match = pattern.search(text)
    return int(match[1]) if match else otherwise


def moment(value: Any) -> datetime | None:
    """Return a time of a transcript in UTC; naive times are UTC.

    Takes ISO 8601 text, or a number of seconds or milliseconds since 1970, which may be text too.
    Returns None for anything else, and for times before the first week that sessions are filed
    under or after 2100: a clock that was not set must not open a partition of its own.
    """
    if type(value) is str and _DIGITS.fullmatch(value):
        value = float(value)
    try:
        if type(value) is str:
            at = datetime.fromisoformat(value)
            if at.tzinfo is None:
                at = at.replace(tzinfo=UTC)
            elif at.tzinfo is not UTC:
                at = at.astimezone(UTC)
        elif type(value) is int or type(value) is float:
            seconds = value / 1000 if value > _SECONDS_OF_LATEST_YEAR else value
            at = datetime.fromtimestamp(seconds, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return at if NO_TIME <= at <= _LATEST else None


_DATE = re.compile(r"(?<!\d)(20\d\d-\d\d-\d\d)(?:[T_ ](\d\d)[-:](\d\d)(?:[-:](\d\d))?)?(?!\d)")
_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-", re.IGNORECASE)


def time_in_name(path: str) -> datetime | None:
    """Return the time that a file's name holds, in a UUID of version 7 or as a date; None if none.

    >>> time_in_name("rollout-2026-03-02T09-30-00.jsonl").isoformat()
    '2026-03-02T09:30:00+00:00'
    """
    name = Path(path).name
    if match := _UUID7.search(name):
        return moment(int(match[1] + match[2], 16))
    match = _DATE.search(name)
    if match is None:
        return None
    clock = ":".join(part or "00" for part in match.groups()[1:])
    return moment(f"{match[1]}T{clock}")


def time_without_records(path: str) -> datetime:
    """Return the time of a session whose records have none: its file's name's, else ``NO_TIME``,
    as that of its last change would be the time of a copy."""
    return time_in_name(path) or NO_TIME


def moment_of_change(mtime_ns: int) -> datetime:
    """Return a file's time of change, in nanoseconds since 1970, as a time that has a week."""
    try:
        at = datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return NO_TIME
    return min(max(at, NO_TIME), _LATEST)


def without_reminders(result: str) -> str:
    """Return a call's result without what the agent's program put behind it for its model.

    A result that is nothing else stays: it is what came back.

    >>> without_reminders("text\\n\\n<system-reminder>\\nTake care.\\n</system-reminder>\\n")
    'text'
    """
    while result[-_REMINDER_S_END:].rstrip().endswith(_REMINDED):
        kept, _, reminder = result.rpartition(_REMINDER)
        if reminder.count(_REMINDED) != 1 or not kept.endswith("\n") or not kept.strip():
            break
        result = kept.rstrip("\n")
    return result


def text_of(content: Any) -> str:
    """Return the text of a message's or a tool result's content, one block a line.

    Content is a string or a list of blocks of the Anthropic kind. Images and documents become a
    word in brackets; thinking becomes nothing.
    """
    if type(content) is list:
        return "\n".join(filter(None, map(_text_of_block, content)))
    return string(content)


def _text_of_block(block: Any) -> str:
    if type(block) is not dict:
        return string(block)
    text, kind = block.get("text"), block.get("type")
    if type(text) is str:
        return text
    if kind in ("image", "document"):
        return f"[{kind}]"
    if kind == "tool_reference":
        return f"[tool {block.get('tool_name') or block.get('name') or ''}]"
    return ""


CALL_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use")
"""Types of blocks that are calls, the provider's own tools' among them."""


class ServedResult(Struct, frozen=True):
    """What came back from a tool that the provider ran."""

    text: str
    failed: bool
    exit_code: int | None


def is_served_result(kind: Any) -> bool:
    """Return whether a block of this type is the result of a tool that the provider ran."""
    return type(kind) is str and kind.endswith("_tool_result")


def served_result(content: Any, is_error: Any) -> ServedResult:
    """Return what a block with the result of a provider's tool says; see ``is_served_result``."""
    about = mapping(content)
    failed = is_error is True or string(about.get("type")).endswith("_error")
    code = about.get("return_code")
    parts = content if type(content) is list else [content]
    text = "\n".join(filter(None, map(_text_served, parts)))
    return ServedResult(text, failed, code if type(code) is int else None)


def _text_served(part: Any) -> str:
    about = mapping(part)
    for names in (("text",), ("title", "url"), ("stdout", "stderr"), ("error_code",)):
        if texts := [text for name in names if (text := string(about.get(name)))]:
            return "\n".join(texts)
    shown = {name: value for name, value in about.items() if not name.startswith("encrypted")}
    return compact_json(shown) if about else text_of([part])


def words_of(content: Any) -> str:
    """Return the text of a message's content without its images and whatever else is in it."""
    blocks = [block for block in mappings(content) if block.get("type") == "text"]
    return text_of(blocks) if type(content) is list else string(content)


def arguments_text(value: Any) -> str:
    """Return a call's arguments as compact JSON text of an object.

    Text that holds an object already is parsed and written again; other text, which custom
    tools take, goes under ``input``.
    """
    if type(value) is str:
        value = decoded_arguments(value, {"input": value})
    elif type(value) is not dict:
        value = {} if value is None else {"input": value}
    return compact_json(value)


def decoded_arguments(text: str, otherwise: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the object in a JSON text; ``otherwise``, or an empty one, where there is none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return value if type(value) is dict else otherwise or {}


def inside(text: str, name: str) -> str | None:
    """Return the content of the first whole element of a name; None when there is none."""
    span = _element(text, name, 0)
    return None if span is None else text[span[0] + len(name) + 2 : span[1] - len(name) - 3]


def elements(text: str, name: str) -> Iterator[str]:
    """Yield the whole elements of a name, tags included."""
    done = 0
    while (span := _element(text, name, done)) is not None:
        yield text[span[0] : span[1]]
        done = span[1]


def without(text: str, names: Iterable[str]) -> str:
    """Return a text without the elements of some names, nor the white space before these."""
    for name in names:
        kept: list[str] = []
        done = 0
        while (span := _element(text, name, done)) is not None:
            kept.append(text[done : span[0]].rstrip())
            done = span[1]
        text = "".join([*kept, text[done:]]) if done else text
    return text


def without_leading(text: str, names: Iterable[str]) -> str:
    """Return a text without the elements of some names that it begins with, nor the white space
    around these."""
    opened = tuple((name, f"<{name}>") for name in names)
    done = start = 0
    while True:
        while start < len(text) and text[start].isspace():
            start += 1
        name = next((name for name, tag in opened if text.startswith(tag, start)), None)
        span = _element(text, name, start) if name is not None else None
        if span is None:
            return text[start:] if done else text
        done = start = span[1]


def consists_of(text: str, names: Iterable[str]) -> bool:
    """Return whether a text, without white space around it, is elements of some names alone.

    >>> consists_of("<a>1</a> <b>2</b>", ("a", "b")), consists_of("<a>1</a> 2", ("a",))
    (True, False)
    """
    return bool(text) and not without_leading(text, names).strip()


def _element(text: str, name: str, start: int) -> tuple[int, int] | None:
    """Return where the next whole element begins and ends."""
    begin = text.find(f"<{name}>", start)
    end = text.find(f"</{name}>", begin) if begin >= 0 else -1
    return None if end < 0 else (begin, end + len(name) + 3)


class Repeats:
    """Tells the records that are there a second time, by their ids and all that is in them: of two
    that share an id alone, another tool may have masked all ids to one word."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def hold(self, id: str, record: Mapping[str, Any]) -> bool:
        """Return whether a record was there before; one without an id never was."""
        known = len(self._seen)
        if id:
            self._seen.add((id, hash(compact_json(record))))
        return bool(id) and len(self._seen) == known


_GROUPS = ("tools", "functionDeclarations", "function_declarations")
_SCHEMAS = (
    *("parameters", "input_schema", "inputSchema"),
    *("parametersJsonSchema", "parameters_json_schema", "schema"),
)
_FREE_TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""What a tool takes whose input is no JSON."""
_DEEPEST = 4


def declared_tools(value: object) -> tuple[DeclaredTool, ...]:
    """Return the tools that ``value`` declares, each name once; what declares none is passed over.

    Args:
        value: a list of tools, one tool, or tools by their names, as decoded from JSON or as its
            text.
    """
    return unique(_tools(value, _DEEPEST))


def unique(tools: Iterable[DeclaredTool]) -> tuple[DeclaredTool, ...]:
    """Return tools, the first of each name; one that tells its arguments beats one that does
    not."""
    known: dict[str, DeclaredTool] = {}
    for tool in tools:
        if tool.name not in known or (tool.parameters and not known[tool.name].parameters):
            known[tool.name] = tool
    return tuple(known.values())


def qualified(namespace: object, name: str) -> str:
    """Return a tool's name with the namespace that it is one of, as servers' tools are called.

    >>> qualified("mcp__docs", "search"), qualified("mcp__docs", "_search"), qualified("", "search")
    ('mcp__docs__search', 'mcp__docs_search', 'search')
    """
    if not isinstance(namespace, str) or not namespace:
        return name
    return f"{namespace}{'' if namespace.endswith('_') or name.startswith('_') else '__'}{name}"


def _tools(value: object, depth: int, namespace: object = "") -> Iterator[DeclaredTool]:
    value = _decoded(value)
    if not depth:
        return
    if isinstance(value, list):
        for item in value:
            yield from _tools(item, depth - 1, namespace)
        return
    if not isinstance(value, dict):
        return
    group = next((value[key] for key in _GROUPS if isinstance(value.get(key), list)), None)
    if group is not None:
        named = value.get("name") if value.get("type") == "namespace" else ""
        yield from _tools(group, depth - 1, named or namespace)
    elif isinstance(function := value.get("function"), dict):
        yield from _tool(function)
    elif isinstance(custom := value.get("custom"), dict):
        yield from _tool({**custom, "type": "custom"})
    elif isinstance(specification := value.get("toolSpec"), dict):
        yield from _tool(specification)
    elif isinstance(value.get("name"), str):
        yield from _tool(value, value.get("namespace") or namespace)
    else:
        for name, item in value.items():
            item = _decoded(item)
            if isinstance(item, dict) and any(key in item for key in (*_SCHEMAS, "description")):
                yield from _tool({**item, "name": name})


def _tool(value: Mapping[str, Any], namespace: object = "") -> Iterator[DeclaredTool]:
    name, description = value.get("name"), value.get("description")
    if not isinstance(name, str) or not name.strip():
        return
    schemas = (_schema(value[key]) for key in _SCHEMAS if key in value)
    schema = next((schema for schema in schemas if schema is not None), None)
    if schema is None and value.get("type") == "custom":
        schema = _FREE_TEXT
    yield DeclaredTool(
        name=qualified(namespace, name),
        description=description if isinstance(description, str) else "",
        parameters="" if schema is None else compact_json(schema),
    )


def _schema(value: object) -> dict[str, Any] | None:
    value = _decoded(value)
    for wrapper in ("jsonSchema", "json"):
        if isinstance(value, dict) and isinstance(value.get(wrapper), dict):
            value = value[wrapper]
    return value if isinstance(value, dict) else None


def _decoded(value: object) -> object:
    if isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return value
