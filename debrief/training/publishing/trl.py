"""For TRL: conversations that its trainers render with a model's own chat template."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from debrief.training.publishing.columns import Columns, ListOf
from debrief.training.publishing.conversations import (
    Made,
    Message,
    StoredLine,
    not_trained_on,
    rendered,
    template_problems,
    text_of,
)

COLUMNS: Columns = {"messages": ListOf("json"), "tools": "string", "session_id": "string"}
NOTE = (
    "`arguments` are objects, as chat templates want them, and `tools` is JSON text, which TRL "
    "reads. There are no weights: answers to a request that is not known are left out. A line "
    "whose end the transcript lacks ends on calls; a turn within it that has no end, on results."
)


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    messages: list[Message]
    tools: str
    session_id: str


_CHECKED = msgspec.json.Decoder(_Line)


def convert(stored: StoredLine, _: object = None) -> Iterator[Made]:
    """Yield the stored line as TRL takes it."""
    rest = b',"tools":%b,"session_id":%b}\n' % (text_of(stored.tools), stored.session_id)
    messages = rendered(stored, not_trained_on(stored))
    yield (b'{"messages":', *messages, rest), ()


def problems(line: bytes) -> Iterator[str]:
    """Yield what TRL or a chat template would stumble over."""
    try:
        made = _CHECKED.decode(line)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    yield from template_problems(made.messages, made.tools)
