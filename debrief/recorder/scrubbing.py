"""A record's secrets replaced where they stand: what a server can do without the repository.

A recorder replaces them on both sides of every file and verifies the result. What it let through
is replaced here text by text; whether the patch still fits its files has to be looked at after.
"""

from __future__ import annotations

import msgspec

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
from debrief.recorder.findings import Findings
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


def scrubbed(record: Record, redactor: Redactor) -> Scrubbed | None:
    """Replace the secrets in all texts of a record; None when it holds none.

    Args:
        record: consistent, so that all of its ``tools`` and keys are those of the contract.
        redactor: what finds and replaces them.
    """
    findings = Findings(redactor)
    messages = [_message(message, findings) for message in record.messages]
    meta = _meta(record.meta, findings)
    if not findings.kinds:
        return None
    counted = findings.counted(meta.redactions)
    meta = meta.model_copy(update={"verified": False, "redactions": counted})
    clean = record.model_copy(update={"messages": messages, "meta": meta})
    return Scrubbed(record=clean, text=encode_record(clean), kinds=findings.kinds)


def _message(message: Message, findings: Findings) -> Message:
    changes: dict[str, object] = {}
    content = findings.clean(message.content)
    if content is not message.content:
        changes["content"] = content
    if isinstance(message, AssistantMessage) and message.tool_calls:
        call = message.tool_calls[0]
        arguments = _arguments(call, findings)
        if arguments is not call.function.arguments:
            function = call.function.model_copy(update={"arguments": arguments})
            changes["tool_calls"] = [call.model_copy(update={"function": function})]
    return message.model_copy(update=changes) if changes else message


def _arguments(call: Call, findings: Findings) -> str:
    text = call.function.arguments
    if call.function.name != APPLY_PATCH:
        return findings.clean_json(text)
    ops = ApplyPatch.model_validate_json(text).ops
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
    free = meta.model_dump_json(by_alias=True, exclude=_PLAIN)
    clean = findings.clean_json(free)
    if clean == free:
        return meta
    plain = meta.model_dump(by_alias=True, include=_PLAIN)
    return Meta.model_validate({**plain, **msgspec.json.decode(clean)})
