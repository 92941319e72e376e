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
    Redactions,
)
from debrief.recorder.encoding import encode_arguments, encode_record
from debrief.redaction import Finding, Redacted, Redactor

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
    scrubber = _Scrubber(redactor)
    messages = [scrubber.message(message) for message in record.messages]
    meta = scrubber.meta(record.meta)
    findings = scrubber.findings
    if not findings:
        return None
    counted = _counted(meta.redactions, findings)
    meta = meta.model_copy(update={"verified": False, "redactions": counted})
    clean = record.model_copy(update={"messages": messages, "meta": meta})
    kinds = tuple(sorted({finding.kind for finding in findings}))
    return Scrubbed(record=clean, text=encode_record(clean), kinds=kinds)


class _Scrubber:
    """Replaces what it finds, and remembers it; values without secrets stay the very same ones."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.findings: list[Finding] = []

    def _clean(self, result: Redacted) -> str:
        self.findings.extend(result.findings)
        return result.text

    def text(self, text: str) -> str:
        return self._clean(self._redactor.redact(text))

    def message(self, message: Message) -> Message:
        changes: dict[str, object] = {}
        content = self.text(message.content)
        if content is not message.content:
            changes["content"] = content
        if isinstance(message, AssistantMessage) and message.tool_calls:
            call = message.tool_calls[0]
            arguments = self._arguments(call)
            if arguments is not call.function.arguments:
                function = call.function.model_copy(update={"arguments": arguments})
                changes["tool_calls"] = [call.model_copy(update={"function": function})]
        return message.model_copy(update=changes) if changes else message

    def _arguments(self, call: Call) -> str:
        text = call.function.arguments
        if call.function.name != APPLY_PATCH:
            return self._clean(self._redactor.redact_json(text))
        known = len(self.findings)
        ops = [self._operation(op) for op in ApplyPatch.model_validate_json(text).ops]
        return text if len(self.findings) == known else encode_arguments(ApplyPatch(ops=ops))

    def _operation(self, op: Operation) -> Operation:
        path = self.text(op.path)
        if isinstance(op, DeleteFile):
            return op.model_copy(update={"path": path})
        return op.model_copy(update={"path": path, "diff": self.text(op.diff)})

    def meta(self, meta: Meta) -> Meta:
        free = meta.model_dump_json(by_alias=True, exclude=_PLAIN)
        known = len(self.findings)
        clean = self._clean(self._redactor.redact_json(free))
        if len(self.findings) == known:
            return meta
        plain = meta.model_dump(by_alias=True, include=_PLAIN)
        return Meta.model_validate({**plain, **msgspec.json.decode(clean)})


def _counted(known: Redactions, findings: list[Finding]) -> Redactions:
    return Redactions(
        count=known.count + len(findings),
        unsure=known.unsure + sum(not finding.sure for finding in findings),
        kinds=sorted({*known.kinds, *(finding.kind for finding in findings)}),
    )
