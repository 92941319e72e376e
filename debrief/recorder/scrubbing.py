"""A record's secrets replaced where they stand: what a server can do without the repository.

A recorder replaces them on both sides of every file and verifies the result. What it let through
is replaced here text by text; whether the patch still fits its files has to be looked at after.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from debrief.recorder.calls import calls_of
from debrief.recorder.contracts import (
    APPLY_PATCH,
    ApplyPatch,
    AssistantMessage,
    Call,
    DeleteFile,
    Message,
    Meta,
    Operation,
    Record,
)
from debrief.recorder.encoding import encode_arguments, encode_record
from debrief.recorder.findings import Findings, suspicious
from debrief.redaction import Redactor

_PLAIN = {
    *("version", "session_id", "task_id", "base_ref", "final_tree", "started_at", "stopped_at"),
    *("contents", "verified", "redactions", "parallel_tool_calls"),
}
"""What ``meta`` tells in forms that have no room for a secret, though some look like one."""


class Scrubbed(msgspec.Struct, frozen=True, kw_only=True):
    """A record without the secrets that were found in it."""

    record: Record
    """Not verified any more: its final tree is that of the record which was sent."""
    text: bytes
    kinds: tuple[str, ...]
    """Of the secrets, sorted, each once."""


def scrubbed(
    record: Record, redactor: Redactor, ops: Sequence[Operation] | None = None
) -> Scrubbed | None:
    """Replace the secrets in all texts of a record; None when it holds none.

    All texts are scanned as one for what may be a secret, and only those that have such a place
    are looked at by themselves.

    Args:
        record: consistent, so that all of its ``tools`` and keys are those of the contract.
        redactor: what finds and replaces them.
        ops: of its patch, where they were read already.
    """
    patch = _operations(record) if ops is None else ops
    noisy = _noisy(record, patch)
    if not noisy:
        return None
    findings = Findings(redactor)
    messages = [
        _message(message, patch, findings) if number in noisy else message
        for number, message in enumerate(record.messages)
    ]
    meta = _meta(record.meta, findings)
    if not findings.kinds:
        return None
    counted = findings.counted(meta.redactions)
    meta = meta.model_copy(update={"verified": False, "redactions": counted})
    clean = record.model_copy(update={"messages": messages, "meta": meta})
    return Scrubbed(record=clean, text=encode_record(clean), kinds=findings.kinds)


def _operations(record: Record) -> list[Operation]:
    return [
        op
        for done in calls_of(record, APPLY_PATCH)
        for op in ApplyPatch.model_validate_json(done.call.function.arguments).ops
    ]


def _noisy(record: Record, ops: Sequence[Operation]) -> set[int]:
    """Return the places of the messages that may hold a secret; that of ``meta`` is -1."""
    json_texts = {-1: _free(record.meta)}
    texts = [json_texts[-1]]
    owners = [-1]
    for number, message in enumerate(record.messages):
        found = [message.content]
        if isinstance(message, AssistantMessage) and message.tool_calls:
            function = message.tool_calls[0].function
            if function.name == APPLY_PATCH:
                found += [op.path for op in ops]
                found += [op.diff for op in ops if not isinstance(op, DeleteFile)]
            else:
                json_texts[number] = function.arguments
                found.append(function.arguments)
        texts += found
        owners += [number] * len(found)
    noisy = {owners[number] for number in suspicious(texts)}
    # In JSON, a secret may hide behind a slash that is escaped.
    return noisy.union(number for number, text in json_texts.items() if "\\/" in text)


def _message(message: Message, ops: Sequence[Operation], findings: Findings) -> Message:
    changes: dict[str, object] = {}
    content = findings.clean(message.content)
    if content is not message.content:
        changes["content"] = content
    if isinstance(message, AssistantMessage) and message.tool_calls:
        call = message.tool_calls[0]
        arguments = _arguments(call, ops, findings)
        if arguments is not call.function.arguments:
            function = call.function.model_copy(update={"arguments": arguments})
            changes["tool_calls"] = [call.model_copy(update={"function": function})]
    return message.model_copy(update=changes) if changes else message


def _arguments(call: Call, ops: Sequence[Operation], findings: Findings) -> str:
    text = call.function.arguments
    if call.function.name != APPLY_PATCH:
        return findings.clean_json(text)
    clean = [_operation(op, findings) for op in ops]
    same = all(new is old for new, old in zip(clean, ops, strict=True))
    return text if same else encode_arguments(ApplyPatch(ops=clean))


def _operation(op: Operation, findings: Findings) -> Operation:
    path = findings.clean(op.path)
    diff = "" if isinstance(op, DeleteFile) else findings.clean(op.diff)
    if path == op.path and (isinstance(op, DeleteFile) or diff == op.diff):
        return op
    changes = {"path": path} if isinstance(op, DeleteFile) else {"path": path, "diff": diff}
    return op.model_copy(update=changes)


def _meta(meta: Meta, findings: Findings) -> Meta:
    free = _free(meta)
    clean = findings.clean_json(free)
    if clean == free:
        return meta
    plain = meta.model_dump(by_alias=True, include=_PLAIN)
    return Meta.model_validate({**plain, **msgspec.json.decode(clean)})


def _free(meta: Meta) -> str:
    return meta.model_dump_json(by_alias=True, exclude=_PLAIN)
