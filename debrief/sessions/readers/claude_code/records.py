"""Records of Claude Code as they are decoded, and those that are of requests to its model.

Only what is read is decoded. Any field may hold anything, as versions differ: a value of the wrong
kind never costs the record. Fields are in the tool's own order, which decodes fastest.

``api-request-shape`` holds a system prompt with its tools, ``api-request`` what it was sent for,
``prompt_snapshot`` nearly the same where these are not there, ``instructions`` the person's own
prompt files, and ``cost-state`` the tokens of all requests since the program began the session,
those of compactions and of the program's own questions among them.
"""

# ruff: noqa: N815 - fields have the transcript's own names

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import ge
from typing import Any

import msgspec
import orjson
from msgspec import Raw, Struct
from msgspec.structs import astuple

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.documents import JsonRecord, compact_json
from debrief.sessions.readers.timeline import NO_USAGE, MessageDraft, TurnDraft
from debrief.sessions.readers.values import (
    ANTHROPIC_TOKENS,
    declared_tools,
    is_count,
    mapping,
    mappings,
    moment,
    string,
    whole_number,
    whole_numbers,
)

_Scalar = str | int | float | bool | None


class Block(Struct, gc=False):
    """A part of a message's content: text, a call, a result, an image."""

    type: Any = None
    id: Any = None
    name: Any = None
    input: Raw = Raw()
    text: Any = None
    thinking: Any = None
    tool_use_id: Any = None
    content: Any = None
    is_error: Any = None
    server_name: Any = None


class Tokens(Struct, gc=False):
    """``usage`` of an assistant's message."""

    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None
    iterations: Any = None
    """What it is the sum of, and what other models used for it, which it leaves out."""


class ClaudeMessage(Struct, gc=False):
    """``message`` of user and assistant records."""

    role: Any = None
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


class Attachment(Struct, gc=False):
    """``attachment``: what was typed while the model worked, or what the program tells it."""

    type: Any = None
    prompt: list[Block | _Scalar | list[Any]] | _Scalar | dict[str, Any] = None
    commandMode: Any = None
    origin: Any = None
    isMeta: Any = None
    files: Any = None
    content: Any = None
    filename: Any = None
    path: Any = None
    snippet: Any = None
    addedLines: Any = None
    addedBlocks: Any = None
    removedNames: Any = None
    removedTypes: Any = None
    isInitial: Any = None
    showConcurrencyNote: Any = None
    newDate: Any = None
    hookName: Any = None
    hookEvent: Any = None
    blockingError: Any = None
    response: Any = None
    systemPrompt: Raw = Raw()
    tools: Raw = Raw()
    cliPrefix: Any = None


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
    content: Any = None
    data: Report | _Scalar | list[Any] = None
    parentToolUseID: Any = None
    isMeta: Any = None
    uuid: Any = None
    timestamp: Any = None
    toolUseResult: ToolOutcome | _Scalar | list[Any] = None
    isCompactSummary: Any = None
    isVisibleInTranscriptOnly: Any = None
    attachment: Attachment | _Scalar | list[Any] = None
    summary: Any = None
    leafUuid: Any = None
    aiTitle: Any = None
    customTitle: Any = None
    origin: Any = None
    promptSource: Any = None
    sourceToolUseID: Any = None
    toolDenialKind: Any = None
    userFeedback: Any = None
    interruptedMessageId: Any = None
    logicalParentUuid: Any = None
    shapeHash: Any = None
    shape: Raw = Raw()
    querySource: Any = None
    modelUsage: Raw = Raw()
    startTime: Any = None
    hash: Any = None
    operation: Any = None


class RecordLook(Struct, gc=False):
    """What a look takes of a record."""

    sessionId: Any = None
    message: Raw = Raw()
    type: Any = None
    uuid: Any = None
    timestamp: Any = None
    attachment: Raw = Raw()

    @property
    def is_speech(self) -> bool:
        """Whether somebody says something in it."""
        if self.type == "attachment":
            attachment = mapping(_decoded(self.attachment))
            is_queued = attachment.get("type") == "queued_command"
            return is_queued and attachment.get("commandMode") == "prompt"
        return self.type in ("user", "assistant") and bytes(self.message)[:1] == b"{"


def usage_of(tokens: Any) -> Usage:
    """Return what a message used, as far as its record says."""
    if type(tokens) is not Tokens:
        return Usage()
    return Usage(
        whole_number(tokens.input_tokens),
        whole_number(tokens.output_tokens),
        whole_number(tokens.cache_creation_input_tokens),
        whole_number(tokens.cache_read_input_tokens),
    )


def strange_counts(tokens: Tokens) -> list[str]:
    """Return the counts of a message that are there and no numbers."""
    counts = {name: getattr(tokens, name) for name in _COUNTS}
    return [name for name, value in counts.items() if value is not None and not is_count(value)]


_COUNTS = tuple(name for name in Tokens.__struct_fields__ if name.endswith("_tokens"))


class OtherUsage(Struct, frozen=True):
    """What was used for a message beside its own tokens."""

    kind: str
    model: str
    """Empty for the message's own."""
    usage: Usage


def others_of(tokens: Any) -> list[OtherUsage]:
    """Return the tokens in a message's ``usage`` that its sum leaves out: an advisor's, a
    compaction's."""
    listed = mappings(tokens.iterations) if type(tokens) is Tokens else []
    used = [(each, ANTHROPIC_TOKENS.usage(each)) for each in listed]
    others = [
        OtherUsage(string(each.get("type")), string(each.get("model")), usage)
        for each, usage in used
        if string(each.get("type")) not in ("", "message") and usage != NO_USAGE
    ]
    if not others:
        return []
    whole = sum((usage for _, usage in used), NO_USAGE)
    is_inside = all(map(ge, astuple(usage_of(tokens)), astuple(whole)))
    return [] if is_inside else others


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
    is_delivered: bool = False
    """The queue alone tells it."""


DECODER = msgspec.json.Decoder(ClaudeRecord)
LOOK = msgspec.json.Decoder(RecordLook)


def record_of(value: JsonRecord) -> ClaudeRecord:
    """Return a record as a file's are decoded."""
    return DECODER.decode(compact_json(value))


def text_or_none(value: Any) -> str | None:
    """Return ``value`` when it can be a record's id; None for anything else."""
    return value if type(value) is str else None


_CONVERSATION = ("sdk", "repl_main_thread")
"""What a request is for that goes on with the session, and is no question of the program's."""
_COUNTED = (*("inputTokens", "outputTokens"), *("cacheCreationInputTokens", "cacheReadInputTokens"))


class Requests:
    """Collects what one file says of a session's own requests."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self._draft = draft
        self._shapes: dict[str, msgspec.Raw] = {}
        self._snapshot = ""
        self.is_whole = True
        """The file has all that its account of the tokens is of; a fork of a compacted session
        has not."""
        self._spent: Usage | None = None
        self._from: datetime | None = None
        self._until: datetime | None = None

    @staticmethod
    def goes_on(record: ClaudeRecord) -> bool:
        """Return whether a request goes on with the session, not a question of the program's."""
        return string(record.querySource).startswith(_CONVERSATION)

    def take(self, record: ClaudeRecord) -> None:
        """Take one of the records that are of requests alone."""
        if record.type == "api-request-shape":
            self._shapes[string(record.shapeHash)] = record.shape
        elif record.type == "api-request":
            self._request(record)
        else:
            self._cost(record)

    def _request(self, record: ClaudeRecord) -> None:
        """Take the shape of a request that goes on with the session."""
        if not self.goes_on(record):
            return
        shape = self._shapes.pop(string(record.shapeHash), None)
        if shape is not None:
            sent = mapping(_decoded(shape))
            texts = [string(block.get("text")) for block in mappings(sent.get("system"))]
            self._draft.system_prompt = self._draft.system_prompt or "\n\n".join(texts)
            self._draft.declared += declared_tools(sent.get("tools"))
            self._draft.shows_instructions = True

    def attachment(self, attachment: Attachment) -> None:
        """Take prompt files, and a prompt's snapshot."""
        if attachment.type == "instructions":
            files = mappings(attachment.files)
            given = [(string(file.get("path")), string(file.get("content"))) for file in files]
            self._draft.add_instructions((file for file in given if file[1]), "message")
        elif attachment.type == "prompt_snapshot" and not self._draft.system_prompt:
            parts = _decoded(attachment.systemPrompt)
            parts = [string(attachment.cliPrefix), *(parts if type(parts) is list else ())]
            whole = "\n\n".join(part for part in map(string, parts) if part)
            self._draft.shows_instructions = True
            self._snapshot = max(self._snapshot, whole, key=len)
            self._draft.declared += declared_tools(
                [tool.get("schema") for tool in mappings(_decoded(attachment.tools))]
            )

    def _cost(self, record: ClaudeRecord) -> None:
        """Take the tokens of all models until now; the file's latest account counts."""
        models = mapping(_decoded(record.modelUsage)).values()
        self._spent = sum((Usage(*whole_numbers(model, *_COUNTED)) for model in models), NO_USAGE)
        self._from, self._until = moment(record.startTime), self._draft.ended

    def settle(self, spent: Iterable[CountedUsage]) -> None:
        """Complete the session by what was collected.

        What was spent before the account began (by an older version) or after it was written
        (the program was killed) is added to it. Where it then covers all that was read, it is the
        session's usage; where it does not, the disagreement is left for all to see.

        Args:
            spent: every message's, subagents' included; ``draft.usage`` is its sum.
        """
        draft = self._draft
        draft.system_prompt = draft.system_prompt or self._snapshot
        if self._spent is None or not self.is_whole:
            return
        total = sum((usage.usage for usage in spent if not self._covers(usage)), self._spent)
        draft.reported_usage = total
        if draft.usage is not None and all(map(ge, astuple(total), astuple(draft.usage))):
            draft.usage = total

    def _covers(self, spent: CountedUsage) -> bool:
        at = spent.draft.at
        if at is None:
            return True
        return (self._from is None or at >= self._from) and (
            self._until is None or at <= self._until
        )


def _decoded(value: msgspec.Raw) -> Any:
    try:
        return orjson.loads(bytes(value) or b"null")
    except orjson.JSONDecodeError:
        return None
