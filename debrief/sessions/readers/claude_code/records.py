"""The parts of Claude Code's records that are read; everything else is left undecoded.

Every field that is looked at may hold anything, as versions differ: a value of the wrong kind is
left to the reader of the field, and never costs the record. Fields are in the order in which
the tool writes them, which is the order that decodes fastest.
"""

# ruff: noqa: N815 - fields have the transcript's own names

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.timeline import MessageDraft, TurnDraft

_Scalar = str | int | float | bool | None


class Block(Struct, gc=False):
    """A part of a message's content: text, a call, a result, an image."""

    type: Any = None
    id: Any = None
    name: Any = None
    input: Raw = Raw()
    text: Any = None
    tool_use_id: Any = None
    content: Any = None
    is_error: Any = None


class Tokens(Struct, gc=False):
    """``usage`` of an assistant's message."""

    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None


class ClaudeMessage(Struct, gc=False):
    """``message`` of user and assistant records."""

    model: Any = None
    id: Any = None
    content: list[Block | _Scalar | list[Any]] | _Scalar | dict[str, Any] = None
    usage: Tokens | _Scalar | list[Any] = None


class ToolOutcome(Struct, gc=False):
    """``toolUseResult``: what a tool did, beside the text that the model was shown."""

    type: Any = None
    filePath: Any = None
    content: Any = None
    structuredPatch: Any = None
    interrupted: Any = None
    agentId: Any = None
    answers: Any = None
    exitCode: Any = None
    backgroundTaskId: Any = None
    returnCodeInterpretation: Any = None


class Report(Struct, gc=False):
    """``data`` of progress records; of a subagent's, its message as a record of its own."""

    message: ClaudeRecord | _Scalar | list[Any] = None
    type: Any = None
    prompt: Any = None
    agentId: Any = None


class ClaudeRecord(Struct, gc=False):
    """One line of a transcript."""

    parentUuid: Any = None
    isSidechain: Any = None
    agentId: Any = None
    cwd: Any = None
    sessionId: Any = None
    version: Any = None
    gitBranch: Any = None
    message: ClaudeMessage | _Scalar | list[Any] = None
    requestId: Any = None
    type: Any = None
    subtype: Any = None
    data: Report | _Scalar | list[Any] = None
    parentToolUseID: Any = None
    isMeta: Any = None
    uuid: Any = None
    timestamp: Any = None
    toolUseResult: ToolOutcome | _Scalar | list[Any] = None
    isCompactSummary: Any = None
    isVisibleInTranscriptOnly: Any = None
    attachment: Any = None
    summary: Any = None
    leafUuid: Any = None
    aiTitle: Any = None
    customTitle: Any = None


class CountedUsage(Struct):
    """The largest usage that was reported for one message of the API."""

    thread: TranscriptDraft
    draft: MessageDraft
    usage: Usage
    total: int


class Asked(Struct):
    """A prompt's turn, and where in the chain of records it is."""

    turn: TurnDraft
    uuid: str | None
    parent: str | None
    queued: bool
    """Typed while the model ran: a later record may repeat it."""
