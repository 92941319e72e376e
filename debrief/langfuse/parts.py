"""Parts of a message in any provider's format: texts, images, tool calls and results; and the
tools that an observation declares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from msgspec import Struct

from debrief.langfuse import vendors
from debrief.langfuse.client import Row
from debrief.langfuse.vendors import Json, arguments_of, decoded, first_of, plain, without_binaries
from debrief.sessions.model import CallStatus, DeclaredTool
from debrief.sessions.readers.values import declared_tools, first_string, mapping

_COVERED, _COVERED_SOON = '"function_result"', 64
"""A cover that some write as text around a result, and in how many characters it shows."""
_REMINDER, _REMINDED = "<system-reminder>", "</system-reminder>"
"""Around what an agent's program tells its model between a person's words."""
_WRAPPED_KINDS = ("image", "video", "audio", "document")
_NUMBERED_NAMES = {"tool.name": "name", "tool.description": "description"}


class ReportedCall(Struct, frozen=True, gc=False):
    """A call as a message reports it."""

    id: str
    """Empty where the vendor gives calls none."""
    name: str
    arguments: str
    """As compact JSON text of an object; empty where the message does not tell them."""
    key: str
    """The arguments in one spelling, whatever order they were written in; of none ``{}``."""


class ReportedResult(Struct, frozen=True, gc=False):
    """What came back from a call, as a message reports it."""

    call_id: str
    name: str
    text: str
    status: CallStatus = "ok"


class Parts:
    """What the parts of one message hold, gathered part by part."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.images = 0
        self.calls: list[ReportedCall] = []
        self.results: list[ReportedResult] = []
        self.known = 0
        """Parts that were understood, whatever they held."""

    def add_all(self, parts: Iterable[Any]) -> None:
        """Add parts in their order; what nobody understands is passed over."""
        for part in parts:
            self.known += self._add(part)

    @property
    def text(self) -> str:
        """The words, parts on lines of their own."""
        return "\n".join(filter(None, self.texts))

    def _add(self, part: Any) -> bool:
        if isinstance(part, str):
            self.texts.append(without_binaries(part))
            return True
        if not isinstance(part, dict):
            return False
        if isinstance(part.get("message_content"), dict):
            part = part["message_content"]
        kind = first_string(part, "type")
        if (result := result_in(part)) is not None:
            self.results.append(result)
        elif (call := call_in(part)) is not None:
            self.calls.append(call)
            self.results.extend(own_results(part, call))
        elif kind in vendors.TYPES_OF_THOUGHTS or part.get("thought") is True:
            pass
        elif kind in vendors.TYPES_OF_PICTURES or _mime(part).startswith("image"):
            self.images += 1
        elif kind in vendors.TYPES_OF_BINARIES or _mime(part):
            pass
        elif (text := _text(part)) is not None:
            inner = text.strip()
            if not (inner.startswith(_REMINDER) and inner.endswith(_REMINDED)):
                self.texts.append(without_binaries(text))
        else:
            return False
        return True


def call_in(item: Json) -> ReportedCall | None:
    """Return the call that a part, or an item beside a message's content, is; None if it is none.

    A tool's definition, which looks much like a call of it, has no arguments.
    """
    for key in vendors.WRAPPED_CALLS:
        if isinstance(item.get(key), dict):
            return call_of({**item[key], "id": first_string(item[key], *vendors.IDS)})
    kind = first_string(item, "type", "block_type")
    if kind in vendors.TYPES_OF_BUILT_IN_CALLS:
        return call_of({"name": kind.removesuffix("_call"), **item})
    function = item.get("function") or item.get("custom")
    if isinstance(function, dict):
        return call_of(item) if any(key in function for key in vendors.GIVEN) else None
    if kind in vendors.TYPES_OF_CALLS or (
        "toolCallId" in item and any(key in item for key in vendors.GIVEN)
    ):
        return call_of(item)
    return None


def call_of(item: Any) -> ReportedCall | None:
    """Return the call that an entry of a list of calls tells; None when it names no tool."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("tool_call"), dict):
        item = item["tool_call"]
    inner: Json = next(
        (one for key in ("function", "custom") if isinstance(one := item.get(key), dict)), {}
    )
    name = first_string(inner, *vendors.NAMES) or first_string(item, *vendors.NAMES)
    if not name:
        return None
    given = first_of(inner, *vendors.GIVEN)
    if given is None:
        given = first_of(item, *vendors.GIVEN)
    if given is None:
        given = {key: item[key] for key in ("code", "queries") if item.get(key)}
    text = arguments_of(given)
    is_given = given or any(key in holder for holder in (inner, item) for key in vendors.GIVEN)
    id, key = first_string(item, *vendors.IDS), same_spelling(text)
    return ReportedCall(id, name, text if is_given else "", key)


def result_in(item: Json) -> ReportedResult | None:
    """Return the result that a part, or an item beside messages, is; None if it is none."""
    for key in vendors.WRAPPED_RESULTS:
        if isinstance(inner := item.get(key), dict):
            return result_of({**mapping(inner.get("origin")), **inner})
    kind = first_string(item, "type")
    return (
        result_of(item)
        if kind in vendors.TYPES_OF_RESULTS or kind.endswith(vendors.ENDINGS_OF_RESULTS)
        else None
    )


def result_of(item: Json) -> ReportedResult:
    """Return the result that an item tells which is known to be one."""
    came_back = first_of(item, *vendors.CAME_BACK)
    status = _status(item)
    if status == "ok" and isinstance(cover := decoded(came_back), dict):
        status = _status({key: cover.get(key) for key in ("type", "isError", "is_error")})
    return ReportedResult(
        call_id=first_string(item, *vendors.IDS),
        name=first_string(item, *vendors.NAMES),
        text=result_text(came_back),
        status=status,
    )


def own_results(item: Json, call: ReportedCall) -> tuple[ReportedResult, ...]:
    """Return the result of a call that the model's own server carried out, which stands in it."""
    if item.get("type") != "mcp_call" or first_of(item, "output", "error") is None:
        return ()
    failed = item.get("error") is not None
    text = result_text(item["error"] if failed else item["output"])
    return (ReportedResult(call.id, call.name, text, "failed" if failed else "ok"),)


def _status(item: Json) -> CallStatus:
    if item.get("type") == "execution-denied":
        return "rejected"
    if any(item.get(key) is True for key in ("is_error", "isError", "error")):
        return "failed"
    marks = item.get("status"), item.get("type")
    return "failed" if any(mark in vendors.ERRORS for mark in marks) else "ok"


def result_text(value: object, depth: int = 6) -> str:
    """Return a result as text: the words where it comes as parts of a message or in one of the
    usual covers, else as it is. A text is what the model saw, whatever it holds."""
    if isinstance(value, str):
        value = decoded(value) if _COVERED in value[:_COVERED_SOON] else value
    if depth and isinstance(value, dict):
        inner = _inside(value)
        if inner is not None:
            return result_text(inner, depth - 1)
    if isinstance(value, list) and value:
        parts = Parts()
        for part in value:
            is_json = isinstance(part, dict) and set(part) == {"json"}
            parts.add_all([{"text": plain(part["json"])} if is_json else part])
        if parts.known == len(value) and not isinstance(value[0], str):
            return "\n".join([*filter(None, parts.texts), *["[image]"] * parts.images])
    return plain(value)


def _inside(item: Json) -> object:
    """Return what a cover around a result holds; None when it is no cover."""
    kind = first_string(item, "type")
    if item.get("lc") == 1 and isinstance(item.get("kwargs"), dict):
        return item["kwargs"].get("content", "")
    if kind in ("text", "json", "error-text", "error-json", "content") and "value" in item:
        return item["value"] if item["value"] is not None else ""
    if kind == "execution-denied":
        return item.get("reason") or ""
    if kind == "function_result":
        return first_of(item, "result", "output") or ""
    if kind == "tool" and "content" in item:
        return item["content"] if item["content"] is not None else ""
    if isinstance(item.get("content"), list) and set(item) <= vendors.AROUND_RESULTS:
        return item["content"]
    if len(item) == 1 and isinstance(only := first_of(item, "result", "output"), str):
        return only
    return None


def _text(part: Json) -> str | None:
    text = part.get("text")
    if isinstance(text, dict):
        text = text.get("value")
    if isinstance(text, str):
        return text
    kind = first_string(part, "type")
    if kind == "refusal":
        return first_string(part, "refusal")
    content = part.get("content")
    return content if isinstance(content, str) and kind.endswith("text") else None


def _mime(part: Json) -> str:
    """Return the kind of data that a part holds in place of words; empty for none."""
    for key in vendors.WRAPPED_DATA:
        if isinstance(inner := part.get(key), dict):
            return first_string(inner, *vendors.MIME_TYPES) or "data"
    if first_string(part, "type") in vendors.TYPES_OF_BINARIES:
        return first_string(part, "modality", "mime_type", "mimeType", "mediaType")
    wrapped = (key for key in _WRAPPED_KINDS if isinstance(part.get(key), dict))
    return next(wrapped, "")


def same_spelling(arguments: str) -> str:
    """Return JSON text with its keys sorted."""
    try:
        return orjson.dumps(orjson.loads(arguments), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, TypeError):
        return arguments


def is_definition(item: object) -> bool:
    """Return whether an entry among messages defines a tool, as LangChain's handler writes it."""
    if not isinstance(item, dict) or item.get("role") != "tool" or "tool_call_id" in item:
        return False
    content = item.get("content")
    return isinstance(content, dict) and (
        isinstance(content.get("function"), dict)
        or (isinstance(content.get("name"), str) and any(key in content for key in vendors.SCHEMAS))
    )


def declared_by(row: Row, given: object, gave: object) -> Iterator[DeclaredTool]:
    """Yield the tools that an observation tells the model of.

    Args:
        row: as the server has it.
        given: its input, decoded.
        gave: its output, decoded: the Responses API repeats the tools there.
    """
    yield from declared_tools(row.get("toolDefinitions"))
    if isinstance(given, dict):
        yield from _in_request(given)
        given = _listed(given.get("messages"))
    for item in given if isinstance(given, list) else ():
        if is_definition(item):
            yield from declared_tools(item["content"])
    if isinstance(gave, dict) and gave.get("object") == "response":
        yield from _in_request(gave)
    yield from _in_request(mapping(decoded(row.get("modelParameters"))))
    metadata = mapping(decoded(row.get("metadata")))
    yield from _tools_under(metadata, vendors.TOOL_LISTS)
    attributes = attributes_in(metadata, vendors.TOOL_MARKS)
    yield from _tools_under(attributes, vendors.TOOL_ATTRIBUTES)
    parameters = mapping(decoded(attributes.get("model_request_parameters")))
    yield from declared_tools(parameters.get("function_tools"))
    yield from _numbered(attributes)


def _in_request(request: Row) -> Iterator[DeclaredTool]:
    for holder in (request, mapping(request.get("config"))):
        for key in vendors.TOOL_LISTS:
            if any(map(_is_like_a_tool, _listed(holder.get(key)))):
                yield from declared_tools(holder[key])


def attributes_in(metadata: Row, marks: Iterable[str]) -> Json:
    """Return the attributes in an observation's metadata; none when their text has no mark."""
    given = metadata.get("attributes")
    is_marked = not isinstance(given, str) or any(mark in given for mark in marks)
    return mapping(decoded(given)) if is_marked else {}


def _tools_under(holder: Row, keys: Iterable[str]) -> Iterator[DeclaredTool]:
    """Yield what lists that anybody may have put there hold, if it is tools and nothing else."""
    for key in keys:
        listed = _listed(holder.get(key))
        if listed and all(map(_is_like_a_tool, listed)):
            yield from declared_tools(holder[key])


def _listed(value: object) -> list[Any]:
    found = decoded(value)
    return found if isinstance(found, list) else []


def _is_like_a_tool(item: object) -> bool:
    tool = mapping(decoded(item))
    return any(key in tool for key in vendors.IN_TOOLS)


def _numbered(attributes: Row) -> Iterator[DeclaredTool]:
    """Yield the tools that are spread over attributes with a number in their names."""
    tools: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if (found := vendors.NUMBERED_TOOLS.fullmatch(key)) is not None:
            tool = tools.setdefault(int(found[1]), {})
            if found[2] == "tool.json_schema":
                schema = mapping(decoded(value))
                is_bare = schema.get("type") == "object"
                tool.update({"parameters": schema} if is_bare else schema)
            else:
                tool.setdefault(_NUMBERED_NAMES.get(found[2], found[2]), value)
    for _, tool in sorted(tools.items()):
        yield from declared_tools(tool)
