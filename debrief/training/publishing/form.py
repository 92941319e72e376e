"""What a form is: its columns, and what several forms do to a stored line's messages.

A loader that infers types from the first lines sees an object's keys as fixed; a call's arguments
have others on every line. So an exported file's columns are declared, and such ones as JSON.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.training.formats import TOOLS
from debrief.training.model import ChatMessage, SampleMetadata, ToolFunction
from debrief.training.publishing.rows import Messages, Row

if TYPE_CHECKING:
    import pyarrow as pa


Column: TypeAlias = "str | list[Column] | dict[str, Column]"
"""A plain type's name, a list of a column, or a record of columns: ``["json"]`` is a list of
objects of any shape."""
Columns: TypeAlias = Mapping[str, Column]

_PLAIN: dict[Any, str] = {str: "string", float: "float64", int: "int64", bool: "bool"}


def column_of(hint: Any) -> Column:
    """Return the column that holds values of a type of ours."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        return [column_of(args[0])]
    if origin is Literal:
        return column_of(type(args[0]))
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = typing.get_type_hints(hint)
        return {name: column_of(hints[name]) for name in hint.__struct_fields__}
    return _PLAIN[hint]


def as_features(columns: Columns) -> list[dict[str, Any]]:
    """Return columns as the ``features`` of a dataset card's header."""
    return [{"name": name, **_feature(column)} for name, column in columns.items()]


def _feature(column: Column) -> dict[str, Any]:
    match column:
        case [dict() as fields]:
            return {"list": as_features(fields)}
        case [item]:
            return {"list": item}
        case dict():
            return {"struct": as_features(column)}
        case _:
            return {"dtype": column}


def as_schema(columns: Columns) -> pa.Schema:
    """Return columns as an Arrow schema."""
    import pyarrow as pa

    return pa.schema([pa.field(name, _arrow(column)) for name, column in columns.items()])


def _arrow(column: Column) -> pa.DataType:
    import pyarrow as pa

    match column:
        case [item]:
            return pa.list_(_arrow(item))
        case dict():
            return pa.struct([pa.field(name, _arrow(kind)) for name, kind in column.items()])
        case "json":
            return pa.json_()
        case _:
            return pa.type_for_alias(column)


RewardKind = Literal["verdict", "outcome", "execution", "quality"]


class StoredLine(Struct, frozen=True):
    """A line of a training set, decoded as far as forms need it."""

    messages: tuple[ChatMessage, ...]
    tools: Raw
    metadata: Raw
    reward: RewardKind = "verdict"
    """Not stored: it is for each export to say."""

    @property
    def session_id(self) -> str:
        """Its session."""
        return self.about.session_id

    @property
    def about(self) -> SampleMetadata:
        """What the metadata says of the session and its scores."""
        return _ABOUT.decode(self.metadata)

    @property
    def functions(self) -> list[ToolFunction]:
        """The tools."""
        return [tool.function for tool in TOOLS.decode(self.tools)]


class Form(Struct, frozen=True, kw_only=True):
    """A form in which training sets are exported: its columns, and how to make its lines.

    ``convert`` or ``pair`` is given, or both. Every stored line was validated when it was written,
    so they only check what their readers ask for beyond that.
    """

    name: str
    reader: str
    """Who reads it, in words."""
    columns: Columns
    note: str
    """What a person should know about it."""
    convert: Callable[[StoredLine], Iterable[dict[str, Any]]] | None = None
    """Makes new lines, as objects that JSON can hold, of a stored one. Raises ValueError when the
    reader would not take it."""
    pair: Callable[[StoredLine, StoredLine], dict[str, Any] | None] | None = None
    """Makes one line of a better and a worse stored line that answer one prompt, or None."""
    rows: Callable[[Messages], Iterable[Row]] | None = None
    """Makes its rows of a line's messages, where it has no weights: an export counts what they
    hold."""
    takes_reasoning: bool = True
    """It has a place for what the model thought."""
    is_closed: bool = False
    """Its reader refuses lines with other columns."""
    of_conversations: bool = False
    """Its rows are made of one conversation alone, so those of subagents have rows of their own."""
    of_labels: bool = False
    """Its lines have a ``label`` and a ``label_source``, and its reader wants both labels."""
    of_rewards: bool = False
    """Its lines have a ``reward``, null where it is not known."""
    min_lines: int = 0
    """Lines that its reader asks for at least."""
    extra_files: Callable[[Mapping[str, str]], dict[str, bytes]] = lambda files: {}
    """Makes files that its reader needs beside the lines, by name, from the paths of the files
    with lines by the names of their sets."""


def encoded(line: Any) -> bytes:
    """Return a made line as JSON with its line end."""
    return _ENCODER.encode(line) + b"\n"


def with_readable_numbers(line: bytes) -> tuple[bytes, int]:
    """Return a line of JSON with the numbers as text that loaders refuse together with the whole
    file, and how many these are: integers outside of 64 bits, and what is no finite float.

    >>> with_readable_numbers(b'{"wei": 20000000000000000000, "id": "20000000000000000000"}')
    (b'{"wei": "20000000000000000000", "id": "20000000000000000000"}', 1)
    """
    if not _MAY_BE_TOO_GREAT.search(line):
        return line, 0
    count = 0

    def readable(token: re.Match[bytes]) -> bytes:
        nonlocal count
        if token["number"] is None or _is_readable(token["number"]):
            return token[0]
        count += 1
        return b'"%b"' % token[0]

    return _TOKEN.sub(readable, line), count


_MAY_BE_TOO_GREAT = re.compile(rb"[0-9]{19}|[0-9][eE]\+?[0-9]{3}")
_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)', re.DOTALL
)


def _is_readable(number: bytes) -> bool:
    # Loaders read the digits before the point as an integer, too.
    digits = re.match(rb"-?[0-9]+", number)
    whole = digits[0] if digits else b""
    return (
        len(whole) <= len("-9223372036854775808")
        and -(2**63) <= int(whole) < 2**64
        and math.isfinite(float(number))
    )


def decoded(line: bytes) -> StoredLine:
    """Return a stored line.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _STORED.decode(line)


def without_marks(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return messages as trainers take them: without why they carry weight 0, and without marks of
    what no person wrote."""
    return [
        replace(message, not_trained=None, machine=())
        if message.not_trained or message.machine
        else message
        for message in messages
    ]


def without_reasoning(line: StoredLine) -> StoredLine:
    """Return a line without what the model thought."""
    if not any(message.reasoning_content for message in line.messages):
        return line
    messages = tuple(replace(message, reasoning_content="") for message in line.messages)
    return replace(line, messages=messages)


def template_messages(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages as chat templates take them: arguments as objects, no weights."""
    made: list[dict[str, Any]] = msgspec.to_builtins(list(messages))
    for message in made:
        message.pop("weight", None)
        message.pop("not_trained", None)
        message.pop("machine", None)
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = _object(call["function"]["arguments"])
    return made


def _object(arguments: str) -> Raw:
    """Return the text of an object as that object on one line, its numbers to the digit."""
    # In JSON, line breaks can only stand between tokens.
    return Raw(arguments.replace("\n", " ").replace("\r", " ").strip().encode())


def with_single_calls(line: StoredLine) -> StoredLine:
    """Return a line without messages of several calls: call, result, call, result.

    Some chat templates refuse a message with several calls; every template takes them one at a
    time. Words beside several calls stay with the first of them.
    """
    return replace(line, messages=tuple(one_by_one(line.messages)))


def one_by_one(messages: Messages) -> Iterator[ChatMessage]:
    """Yield messages with one call at most, the others behind it with their results."""
    results: dict[str, ChatMessage] = {}
    for number, message in enumerate(messages):
        calls = message.tool_calls or ()
        if len(calls) > 1:
            following = messages[number + 1 : number + 1 + len(calls)]
            results = {str(result.tool_call_id): result for result in following}
            for place, call in enumerate(calls):
                content = "" if place else message.content
                yield replace(message, content=content, tool_calls=(call,))
                yield results[call.id]
        elif message.tool_call_id is UNSET or message.tool_call_id not in results:
            yield message


_ENCODER = msgspec.json.Encoder()
_STORED = msgspec.json.Decoder(StoredLine)
_ABOUT = msgspec.json.Decoder(SampleMetadata)


_LINES_A_BATCH = 64


def check_lines(name: str, lines: IO[bytes], columns: Columns) -> None:
    """Read lines of JSON as ``datasets`` does.

    Raises:
        InputError: one of them cannot be read.
    """
    import pyarrow as pa
    from pandas.io.json import ujson_loads

    schema = as_schema(columns)
    for number, line in enumerate(lines, 1):
        try:
            row = ujson_loads(line)
            for column, kind in columns.items():
                if "json" not in kind:
                    pa.array([row[column]], schema.field(column).type)
        except (ValueError, KeyError, pa.ArrowException) as error:
            raise InputError(f"{name}:{number}", f"cannot be read back: {error}", _TELL) from error


_TELL = "The other forms may do. Please report it: what was stored passed all checks."


def check_parquet(name: str, file: IO[bytes], lines: int) -> None:
    """Read a Parquet file as loaders do.

    Raises:
        InputError: it cannot be read, or does not hold as many lines.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = sum(len(batch) for batch in pq.ParquetFile(file).iter_batches(_LINES_A_BATCH))
    except (OSError, pa.ArrowException) as error:
        raise InputError(name, f"cannot be read back: {error}", _TELL) from error
    if found != lines:
        raise InputError(name, f"holds {found} of {lines} lines when it is read back", _TELL)


def write_parquet(lines: IO[bytes], sink: IO[bytes], columns: Columns) -> None:
    """Write lines of JSON as a Parquet file (zstd).

    Columns of JSON are of Arrow's JSON type, which loaders decode again.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = as_schema(columns)
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        while rows := [msgspec.json.decode(line) for line in islice(lines, _LINES_A_BATCH)]:
            arrays = [
                _array([row[name] for row in rows], column, schema.field(name).type)
                for name, column in columns.items()
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _array(values: list[Any], column: Column, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if column != ["json"]:
        return pa.array(values, kind)
    texts = pa.array(
        [[msgspec.json.encode(item).decode() for item in value] for value in values],
        pa.list_(pa.string()),
    )
    return pa.ListArray.from_arrays(
        texts.offsets, pa.ExtensionArray.from_storage(pa.json_(), texts.values)
    )
