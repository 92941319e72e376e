"""What was said in a model's input or output, wherever its integration puts it.

An integration writes down what its library hands it: the messages alone, the request around them,
the response around the answer. All of these are looked into; what is no conversation at all gives
nothing, and is somebody else's to read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from debrief.langfuse.messages import Role, Said, has_role, message_in, message_of
from debrief.langfuse.parts import Parts
from debrief.langfuse.values import decoded, first_of, without_binaries, words

Json = dict[str, Any]

_AROUND_REQUESTS = ("messages", "contents", "input", "prompt", "new_message", "message")
_IN_WORDS = ("input", "prompt", "contents")
"""Of those, the ones that may be a person's words as they are."""
_AROUND_ANSWERS = words("choices candidates generations output messages message response content")
_ALTERNATIVES = ("choices", "candidates")
"""Lists of answers of which the first is the one that counts."""
_INSTRUCTIONS = ("system", "instructions", "system_instruction", "systemInstruction")
_DEEPEST = 8
_AT_ONCE = 8
"""Conversations that may be going on side by side."""


class Memory:
    """The conversations of requests before: what the next one repeats is not read again."""

    def __init__(self) -> None:
        self._known: deque[tuple[list[Json], list[Said | None]]] = deque(maxlen=_AT_ONCE)

    def read(self, items: list[Json]) -> list[Said | None]:
        """Return each item's message: the very object that was returned of it before."""
        shared = [_shared(before, items) for before, _ in self._known]
        most = max(shared, default=0)
        said: list[Said | None] = []
        if most:
            place = shared.index(most)
            before, known = self._known[place]
            said = known[:most]
            if most == len(before):
                del self._known[place]
        said += [message_in(item) for item in items[most:]]
        self._known.append((items, said))
        return said


def _shared(before: Sequence[Json], items: Sequence[Json]) -> int:
    """Return how many items two conversations begin with in common."""
    try:
        pairs = enumerate(zip(before, items, strict=False))
        return next((n for n, (a, b) in pairs if a != b), min(len(before), len(items)))
    except RecursionError:
        return 0


def said_to(value: object, memory: Memory | None = None) -> tuple[Said, ...]:
    """Return the conversation that a model's input is; empty when it is none.

    Args:
        value: decoded or as text.
        memory: of the session's requests.
    """
    reader = _Reader(_AROUND_REQUESTS, None, memory or Memory())
    return tuple(reader.conversation(value, _DEEPEST))


def said_by(value: object) -> tuple[Said, ...]:
    """Return the conversation that a model's output is; empty when it is none.

    What tells no role is the model's.
    """
    return tuple(_Reader(_AROUND_ANSWERS, "assistant", Memory()).conversation(value, _DEEPEST))


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

    def conversation(self, value: object, depth: int) -> Iterator[Said]:
        """Yield what was said, in order."""
        value = decoded(value)
        if not depth:
            return
        if isinstance(value, list):
            yield from self._listed(value, depth)
        elif isinstance(value, dict):
            yield from self._in_object(value, depth)

    def _in_object(self, value: Json, depth: int) -> Iterator[Said]:
        if (said := message_in(value)) is not None:
            yield from _instructions(value)
            yield said
            return
        for key in self._around:
            if found := tuple(self._under(value, key, depth - 1)):
                if self._role is None:
                    yield from _instructions(value)
                yield from found
                return
        if self._role is not None and (said := message_in(value, self._role)) is not None:
            yield said

    def _under(self, value: Json, key: str, depth: int) -> Iterator[Said]:
        inner = decoded(value.get(key))
        if isinstance(inner, str):
            if self._role is None and inner and key in _IN_WORDS:
                yield Said(role="user", text=without_binaries(inner))
            return
        if isinstance(inner, list) and key in _ALTERNATIVES:
            inner = inner[:1]
        if key == "content" and not isinstance(inner, dict):
            return
        yield from self.conversation(inner, depth)

    def _listed(self, items: list[Any], depth: int) -> Iterator[Said]:
        if any(isinstance(item, list) for item in items):
            for item in items:
                yield from self.conversation([item] if isinstance(item, dict) else item, depth - 1)
            return
        objects = [item for item in items if isinstance(item, dict)]
        if self._role is not None and objects and not any(map(has_role, objects)):
            parts = Parts()
            parts.add_all(objects)
            if parts.known == len(items) or parts.calls:
                yield message_of(self._role, parts)
            return
        yield from (said for said in self._memory.read(objects) if said is not None)


def _instructions(value: Json) -> Iterator[Said]:
    config = value.get("config")
    for item in (value, config if isinstance(config, dict) else {}):
        instructions = first_of(item, *_INSTRUCTIONS)
        if isinstance(instructions, dict):
            instructions = first_of(instructions, "parts", "content", "text")
        parts = Parts()
        parts.add_all(instructions if isinstance(instructions, list) else [instructions])
        if parts.text:
            yield Said(role="system", text=parts.text)
            return
