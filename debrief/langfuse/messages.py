"""One message of a conversation, in any vendor's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from debrief.langfuse.parts import (
    Parts,
    ReportedCall,
    ReportedResult,
    call_in,
    call_of,
    own_results,
    result_in,
    result_of,
)
from debrief.langfuse.values import decoded, first_of, first_text, plain, without_binaries

Role = Literal["system", "user", "assistant", "tool"]
Json = dict[str, Any]

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer", "SystemMessage", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("user", "human", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "chatbot"), "assistant"),
    **dict.fromkeys(("AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("tool", "function", "ToolMessage", "FunctionMessage"), "tool"),
    **{"tool-call": "assistant", "tool-response": "tool"},
}
_KINDS_OF_MESSAGES = frozenset(("human", "ai", "system", "tool"))
"""Of LangChain's own form, which has no role."""
_CALLS = ("tool_calls", "toolCalls", "invalid_tool_calls")
_CONTENTS = ("content", "parts", "contents", "blocks")
_OF_MESSAGES = (
    *_CONTENTS,
    *_CALLS,
    "function_call",
    "additional_kwargs",
    "refusal",
    "tool_call_id",
)
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "args_schema")
_SPELLED_OUT = ('[{"text"', '[{"tool', '[{"function"', '[{"id"', '[{"type"')
_BLOCKS = ("text", "toolUse", "toolResult", "reasoningContent")
"""Bedrock's parts, each of which is the only key of an object."""
_EVENT = "gen_ai.event.content"


class Said(Struct, frozen=True, kw_only=True):
    """One message."""

    role: Role
    text: str = ""
    """The words alone."""
    images: int = 0
    calls: tuple[ReportedCall, ...] = ()
    results: tuple[ReportedResult, ...] = ()

    @property
    def has_words(self) -> bool:
        """Whether somebody says or shows something."""
        return bool(self.text.strip() or self.images)


def is_definition(item: object) -> bool:
    """Return whether an entry among messages defines a tool, as LangChain's handler writes it."""
    if not isinstance(item, dict) or item.get("role") != "tool" or "tool_call_id" in item:
        return False
    content = item.get("content")
    return isinstance(content, dict) and (
        isinstance(content.get("function"), dict)
        or (isinstance(content.get("name"), str) and any(key in content for key in _SCHEMAS))
    )


def message_in(item: Json, role: Role | None = None) -> Said | None:
    """Return the message that an item of a conversation is; None when it is none.

    Args:
        item: as it is there.
        role: of a message that tells none; None when such an item is no message.
    """
    item = _uncovered(item)
    if is_definition(item):
        return None
    role_name = _role(item)
    if role_name is None:
        if (result := result_in(item)) is not None:
            return Said(role="tool", results=(result,))
        if (call := call_in(item)) is not None:
            return Said(role="assistant", calls=(call,), results=own_results(item, call))
        role_name = role
    if role_name is None or not any(key in item for key in _OF_MESSAGES):
        return None
    content = _content(item)
    for call in _calls(item):
        if not any(_is_same(call, known) for known in content.calls):
            content.calls.append(call)
    if role_name == "tool" and not content.results:
        given = first_of(item, *_CONTENTS, "output")
        content.results.append(result_of({**item, "content": given, "output": None}))
        content.texts.clear()
    return message_of(role_name, content)


def message_of(role: Role, parts: Parts) -> Said:
    """Return what one says in parts."""
    return Said(
        role=role,
        text=parts.text,
        images=parts.images,
        calls=tuple(parts.calls),
        results=tuple(parts.results),
    )


def has_role(item: Json) -> bool:
    """Return whether an item says whose message it is."""
    return _role(_uncovered(item)) is not None


def _uncovered(item: Json) -> Json:
    """Return a message without what its library or its trace put around it."""
    if item.get("lc") == 1 and isinstance(item.get("kwargs"), dict):
        path = item.get("id")
        kind = path[-1] if isinstance(path, list) and path else None
        is_known = isinstance(kind, str) and kind in _ROLES
        return {**item["kwargs"], "role": kind} if is_known else item["kwargs"]
    if isinstance(event := item.get(_EVENT), str):
        found = decoded(event)
        item = {**item, **found} if isinstance(found, dict) else item
    content = item.get("content")
    if (
        "role" not in item
        and isinstance(content, dict)
        and ("parts" in content or "role" in content)
    ):
        return content
    if "content" in item:
        return item
    inner = decoded(item.get("message"))
    if isinstance(inner, dict):
        return inner if "role" in inner or "role" not in item else {**inner, "role": item["role"]}
    return {**item, "content": inner} if isinstance(inner, list) else item


def _role(item: Json) -> Role | None:
    role_name = item.get("role")
    if isinstance(role_name, str):
        return _ROLES.get(role_name) or _ROLES.get(role_name.rpartition(".")[2].lower())
    kind = first_text(item, "type")
    return _ROLES[kind] if kind in _KINDS_OF_MESSAGES and "content" in item else None


def _content(item: Json) -> Parts:
    """Return what a message's content holds."""
    found = Parts()
    for key in _CONTENTS:
        content = item.get(key)
        if isinstance(content, str):
            if listed := _spelled_out(content):
                found.add_all(listed)
            else:
                found.texts.append(without_binaries(content))
        elif isinstance(content, list | dict) and content:
            found.add_all(content if isinstance(content, list) else [content])
            if not found.known:
                found.texts.append(plain(content))
    if not found.texts and (refusal := first_text(item, "refusal")):
        found.texts.append(refusal)
    return found


def _spelled_out(content: str) -> list[Json]:
    """Return the parts that some integrations write as text where the words belong."""
    if not content.startswith(_SPELLED_OUT):
        return []
    listed = decoded(content)
    if not isinstance(listed, list) or not all(isinstance(part, dict) for part in listed):
        return []
    blocks = all(len(part) == 1 and any(key in part for key in _BLOCKS) for part in listed)
    return listed if blocks or all(call_in(part) is not None for part in listed) else []


def _calls(item: Json) -> Iterator[ReportedCall]:
    beside = item.get("additional_kwargs")
    for holder in (item, beside if isinstance(beside, dict) else {}):
        for key in _CALLS:
            listed = decoded(holder.get(key))
            for one in listed if isinstance(listed, list) else ():
                if (call := call_of(one)) is not None:
                    yield call
        if isinstance(holder.get("function_call"), dict):
            call = call_of(holder["function_call"])
            if call is not None:
                yield call


def _is_same(call: ReportedCall, known: ReportedCall) -> bool:
    if call.id and known.id:
        return call.id == known.id
    return call.name == known.name and call.key == known.key
