"""For OpenAI's fine-tuning: nothing on a line but what its rules name."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from debrief.training.publishing.conversations import Line, Made
from debrief.training.validation import StrictMessage, conversation_problems

FEWEST = 10
"""Lines that a file must have."""
NOTE = (
    f"`messages` and `tools` alone. The service asks for at least {FEWEST} lines a file and cuts "
    "lines that are over its model's limit of tokens: split long sessions with `max_tokens` when "
    "the training set is made. `weight` 0 marks what is not trained on."
)


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    messages: tuple[StrictMessage, ...]
    tools: Raw


_CHECKED = msgspec.json.Decoder(_Line)
_METADATA = b',"metadata":{'
"""Begins a stored line's last column. In no string, where quotes are escaped, and nowhere within
that column, which has no such key."""


_MOST_METADATA = 32_000
"""Bytes of a stored line's end that are looked at first."""


def convert(line: Line, _: object = None) -> Iterator[Made]:
    """Yield the stored line without its metadata.

    Its messages and tools passed these very rules when it was stored, and it is read with its
    checksum.
    """
    view = memoryview(line)
    first = max(0, len(view) - _MOST_METADATA)
    place = bytes(view[first:]).rfind(_METADATA)
    if place < 0:
        first, place = 0, bytes(view).rindex(_METADATA)
    yield b"".join((view[: first + place], b"}\n")), ()


def problems(line: bytes) -> Iterator[str]:
    """Yield what the fine-tuning rules forbid."""
    try:
        made = _CHECKED.decode(line)
        yield from conversation_problems(made.messages, made.tools)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
