"""Find the messages in a generation's input or output, in the format of any model provider.

An integration writes down what its library hands it: the messages alone, the request around them,
the response around the answer. All of these are looked into; what is no conversation at all gives
nothing, and is somebody else's to read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from debrief.langfuse import vendors
from debrief.langfuse.parts import (
    Parts,
    ReportedCall,
    ReportedResult,
    call_in,
    call_of,
    is_definition,
    own_results,
    result_in,
    result_of,
)
from debrief.langfuse.vendors import Json, Role, decoded, first_of, plain, without_binaries
from debrief.sessions.readers.values import first_string, mapping

_OF_MESSAGES = (*vendors.CONTENTS, *vendors.CALLS, *vendors.IN_MESSAGES)
_SPELLED_OUT = ('[{"text"', '[{"tool', '[{"function"', '[{"id"', '[{"type"')
_DEEPEST = 8
_AT_ONCE = 8
"""Conversations that may be going on side by side."""


class TracedMessage(Struct, frozen=True, kw_only=True):
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


def message_in(item: Json, role: Role | None = None) -> TracedMessage | None:
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
            return TracedMessage(role="tool", results=(result,))
        if (call := call_in(item)) is not None:
            return TracedMessage(role="assistant", calls=(call,), results=own_results(item, call))
        role_name = role
    if role_name is not None and set(item) == {"role"}:
        return TracedMessage(role=role_name)
    if role_name is None or not any(key in item for key in _OF_MESSAGES):
        return None
    content = _content(item)
    for call in _calls(item):
        if not any(_is_same(call, known) for known in content.calls):
            content.calls.append(call)
    if role_name == "tool" and not content.results:
        given = first_of(item, *vendors.CONTENTS, "output")
        content.results.append(result_of({**item, "content": given, "output": None}))
        content.texts.clear()
    return message_of(role_name, content)


def message_of(role: Role, parts: Parts) -> TracedMessage:
    """Return what one says in parts."""
    return TracedMessage(
        role=role,
        text=parts.text,
        images=parts.images,
        calls=tuple(parts.calls),
        results=tuple(parts.results),
    )


def _uncovered(item: Json) -> Json:
    """Return a message without what its library or its trace put around it."""
    if item.get("lc") == 1 and isinstance(item.get("kwargs"), dict):
        path = item.get("id")
        kind = path[-1] if isinstance(path, list) and path else None
        is_known = isinstance(kind, str) and kind in vendors.ROLES
        return {**item["kwargs"], "role": kind} if is_known else item["kwargs"]
    if isinstance(event := item.get(vendors.EVENT), str):
        item = {**item, **mapping(decoded(event))}
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
        return vendors.ROLES.get(role_name) or vendors.ROLES.get(
            role_name.rpartition(".")[2].lower()
        )
    kind = first_string(item, "type")
    return vendors.ROLES[kind] if kind in vendors.TYPES_WITH_A_ROLE and "content" in item else None


def _content(item: Json) -> Parts:
    """Return what a message's content holds."""
    found = Parts()
    for key in vendors.CONTENTS:
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
    if not found.texts and (refusal := first_string(item, "refusal")):
        found.texts.append(refusal)
    return found


def _spelled_out(content: str) -> list[Json]:
    """Return the parts that some integrations write as text where the words belong."""
    if not content.startswith(_SPELLED_OUT):
        return []
    listed = decoded(content)
    if not isinstance(listed, list) or not all(isinstance(part, dict) for part in listed):
        return []
    blocks = all(len(part) == 1 and any(key in part for key in vendors.BLOCKS) for part in listed)
    return listed if blocks or all(call_in(part) is not None for part in listed) else []


def _calls(item: Json) -> Iterator[ReportedCall]:
    for holder in (item, mapping(item.get("additional_kwargs"))):
        lists = (decoded(holder.get(key)) for key in vendors.CALLS)
        entries = [one for found in lists if isinstance(found, list) for one in found]
        made = map(call_of, [*entries, holder.get("function_call")])
        yield from (call for call in made if call is not None)


def _is_same(call: ReportedCall, known: ReportedCall) -> bool:
    if call.id and known.id:
        return call.id == known.id
    return call.name == known.name and call.key == known.key


class Memory:
    """The conversations of requests before: what the next one repeats is not read again."""

    def __init__(self) -> None:
        self._known: deque[tuple[list[Json], list[TracedMessage | None]]] = deque(maxlen=_AT_ONCE)

    def read(self, items: list[Json]) -> list[TracedMessage | None]:
        """Return each item's message: the very object that was returned of it before."""
        shared = [_shared(before, items) for before, _ in self._known]
        most = max(shared, default=0)
        messages: list[TracedMessage | None] = []
        if most:
            place = shared.index(most)
            before, known = self._known[place]
            messages = known[:most]
            if most == len(before):
                del self._known[place]
        messages += [message_in(item) for item in items[most:]]
        self._known.append((items, messages))
        return messages


def _shared(before: Sequence[Json], items: Sequence[Json]) -> int:
    """Return how many items two conversations begin with in common."""
    try:
        pairs = enumerate(zip(before, items, strict=False))
        return next((n for n, (a, b) in pairs if a != b), min(len(before), len(items)))
    except RecursionError:
        return 0


def messages_to(value: object, memory: Memory | None = None) -> tuple[TracedMessage, ...]:
    """Return the conversation that a model's input is; empty when it is none.

    Args:
        value: decoded or as text.
        memory: of the session's requests.
    """
    reader = _Reader(vendors.AROUND_REQUESTS, None, memory or Memory())
    return tuple(reader.conversation(value, _DEEPEST))


def messages_by(value: object) -> tuple[TracedMessage, ...]:
    """Return the conversation that a model's output is; empty when it is none.

    What tells no role is the model's.
    """
    return tuple(
        _Reader(vendors.AROUND_ANSWERS, "assistant", Memory()).conversation(value, _DEEPEST)
    )


class _Reader:
    """Finds a conversation in what surrounds it.

    Args:
        around: the keys that it may stand under, the likeliest first.
        role: of a message that tells none; None when such an item is no message.
        memory: of what was read before.
    """

    def __init__(self, around: tuple[str, ...], role: Role | None, memory: Memory) -> None:
        self._around = around
        self._role = role
        self._memory = memory

    def conversation(self, value: object, depth: int) -> Iterator[TracedMessage]:
        """Yield what was said, in order."""
        value = decoded(value)
        if not depth:
            return
        if isinstance(value, list):
            yield from self._listed(value, depth)
        elif isinstance(value, dict):
            yield from self._in_object(value, depth)

    def _in_object(self, value: Json, depth: int) -> Iterator[TracedMessage]:
        if (message := message_in(value)) is not None:
            yield from _instructions(value)
            yield message
            return
        for key in self._around:
            if found := tuple(self._under(value, key, depth - 1)):
                if self._role is None:
                    yield from _instructions(value)
                yield from found
                return
        if self._role is not None and (message := message_in(value, self._role)) is not None:
            yield message

    def _under(self, value: Json, key: str, depth: int) -> Iterator[TracedMessage]:
        inner = decoded(value.get(key))
        if isinstance(inner, str):
            if self._role is None and inner and key in vendors.REQUESTS_IN_WORDS:
                yield TracedMessage(role="user", text=without_binaries(inner))
            return
        if isinstance(inner, list) and key in vendors.ALTERNATIVES:
            inner = inner[:1]
        if key == "content" and not isinstance(inner, dict):
            return
        yield from self.conversation(inner, depth)

    def _listed(self, items: list[Any], depth: int) -> Iterator[TracedMessage]:
        if any(isinstance(item, list) for item in items):
            for item in items:
                yield from self.conversation([item] if isinstance(item, dict) else item, depth - 1)
            return
        objects = [item for item in items if isinstance(item, dict)]
        has_role = any(_role(_uncovered(item)) for item in objects)
        if self._role is not None and objects and not has_role:
            parts = Parts()
            parts.add_all(objects)
            if parts.known == len(items) or parts.calls:
                yield message_of(self._role, parts)
            return
        yield from (message for message in self._memory.read(objects) if message is not None)


def _instructions(value: Json) -> Iterator[TracedMessage]:
    for item in (value, mapping(value.get("config"))):
        instructions = first_of(item, *vendors.INSTRUCTIONS)
        if isinstance(instructions, dict):
            instructions = first_of(instructions, "parts", "content", "text")
        parts = Parts()
        parts.add_all(instructions if isinstance(instructions, list) else [instructions])
        if parts.text:
            yield TracedMessage(role="system", text=parts.text)
            return
