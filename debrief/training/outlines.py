"""Where the parts of a stored line are.

Stored with each line, so that publishing copies contents from place to place without looking at
them: an outline is some hundredths of its line.
"""

from __future__ import annotations

import hashlib
import re

import msgspec
from msgspec import Struct

from debrief.training.conversations import NO_PROMPT
from debrief.training.model import Role


class CallOutline(Struct, frozen=True, array_like=True, gc=False):
    """Where a call's arguments are."""

    id: str
    name: str
    start: int
    """Of the arguments as JSON text of a string, in bytes from the line's beginning."""
    end: int


class MessageOutline(Struct, frozen=True, array_like=True, gc=False):
    """Where a message's content is."""

    role: Role
    start: int
    """Of the content as JSON text of a string, in bytes from the line's beginning."""
    end: int
    calls: tuple[CallOutline, ...] = ()
    answers: str = ""
    """The id of the call whose result this is."""
    weight: int = 0
    """Where the mark of weight begins, the comma before it included; 0 without one."""

    @property
    def begins(self) -> int:
        """Where the message itself does."""
        return self.start - len(self.role) - len(b'{"role":"","content":')


class Outline(Struct, frozen=True, array_like=True, gc=False):
    """Where a line's parts are."""

    messages: tuple[MessageOutline, ...]
    messages_end: int
    """Bytes up to the list's closing bracket, which is included."""
    tools_end: int


MESSAGES, TOOLS, METADATA = b'{"messages":', b',"tools":', b',"metadata":'
WEIGHT_SIZE = len(b',"weight":0')

_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_PART = re.compile(
    rb'\{"role":"(?P<role>\w+)","content":(?P<content>%(text)s)'
    rb'|\{"id":"(?P<id>\w+)","type":"function","function":'
    rb'\{"name":"(?P<name>[\w-]+)","arguments":(?P<arguments>%(text)s)'
    rb'|,"tool_call_id":"(?P<answers>\w+)"'
    rb'|(?P<weight>,"weight":[01]\})'
    rb'|\](?P<tools>,"tools":\[)' % {b"text": _TEXT}
)
"""What is looked for in messages. Quotes in texts are escaped, and texts are passed over whole, so
nothing in them is taken for one of these."""
_STANDS_FOR_A_PROMPT = re.compile(re.escape(NO_PROMPT.encode()) + rb"|\(\d+ images?\)")
_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Outline)


def outline_of(line: bytes) -> Outline:
    """Return where a line's parts are.

    Raises:
        msgspec.DecodeError: it is not a stored line.
    """
    messages: list[MessageOutline] = []
    role, start, end, answers, weight = "", 0, 0, "", 0
    calls: list[CallOutline] = []

    def finish() -> None:
        if role:
            message = (role, start, end, tuple(calls), answers, weight)
            messages.append(MessageOutline(*message))  # type: ignore[arg-type]
            calls.clear()

    for found in _PART.finditer(line):
        kind = found.lastgroup
        if kind == "content":
            finish()
            role, answers, weight = found["role"].decode(), "", 0
            start, end = found.span("content")
        elif kind == "arguments":
            call = CallOutline(
                found["id"].decode(), found["name"].decode(), *found.span("arguments")
            )
            calls.append(call)
        elif kind == "answers":
            answers = found["answers"].decode()
        elif kind == "weight":
            weight = found.start()
        else:
            finish()
            messages_end = found.start("tools")
            tools_end = line.rfind(METADATA + b"{")
            if line.startswith(MESSAGES) and tools_end > messages_end:
                return Outline(tuple(messages), messages_end, tools_end)
            break
    raise msgspec.DecodeError("not a line in the form in which lines are stored")


def opening_of(line: bytes | memoryview, outline: Outline) -> str:
    """Return the digest of all up to the end of a line's first prompt: what was asked, of whom.

    Where a fixed text stands for it, nobody knows what was asked: no other line has that digest.
    """
    asked = next(message for message in outline.messages if message.role == "user")
    text = memoryview(line)
    is_known = not _STANDS_FOR_A_PROMPT.match(text[asked.start + 1 : asked.end - 1])
    return hashlib.sha256(text[: asked.end] if is_known else text).hexdigest()


def packed(outline: Outline) -> bytes:
    """Return an outline as it is stored."""
    return _ENCODER.encode(outline)


def unpacked(stored: bytes | memoryview) -> Outline:
    """Return an outline that was stored.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _DECODER.decode(stored)
