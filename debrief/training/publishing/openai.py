"""For OpenAI's fine-tuning: nothing on a line but what its rules name."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct

from debrief.training.publishing.conversations import Made, StoredLine
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


def convert(stored: StoredLine, _: object = None) -> Iterator[Made]:
    """Yield the stored line without its metadata.

    Its messages and tools passed these very rules when it was stored, and it is read with its
    checksum.
    """
    yield (stored.line[: stored.outline.tools_end], b"}\n"), ()


def problems(line: bytes) -> Iterator[str]:
    """Yield what the fine-tuning rules forbid."""
    try:
        made = _CHECKED.decode(line)
        yield from conversation_problems(made.messages, made.tools)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
