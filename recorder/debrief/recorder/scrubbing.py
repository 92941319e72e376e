"""Secrets out of a session before it becomes a record, and out of a record that still has some.

A secret inside a diff cannot be replaced where it is: the patch would no longer fit. So a recorder
redacts each file as it was and as it is, with the same stable placeholders, and makes the hunks
anew between the two. Reading, patch and result then agree, which can be verified. A server, which
has no repository, replaces what is left text by text, and checks the record again afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct, structs

from debrief.recorder import contracts
from debrief.recorder.contracts import APPLY_PATCH, Meta, Record
from debrief.recorder.encoding import encode_arguments, encode_record
from debrief.recorder.local_session import SessionFacts
from debrief.recorder.messages import operations_of
from debrief.redaction import Finding, Redacted, Redactor
from debrief.redaction.spans import WITHHELD

_LONGEST_SCANNED = 400_000
"""Characters of an output that are searched for secrets; a record keeps far fewer."""
_PLAIN = {
    *("version", "session_id", "task_id", "base_ref", "final_tree", "started_at", "stopped_at"),
    *("contents", "verified", "redactions", "parallel_tool_calls", "steps"),
}
"""Fields of ``meta`` whose forms have no room for a secret, though some look like one."""
_NONE = contracts.Redactions()


class SecretLog:
    """Replaces secrets and counts each once, wherever it occurs and whatever kind it is there."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._findings: dict[str, Finding] = {}

    def clean(self, text: str) -> str:
        """Return a text without its secrets; the very same one where it has none."""
        return self._logged(self._redactor.redact(text))

    def clean_whole(self, text: str) -> str | None:
        """Return a text without its secrets; None where a stretch of it, such as a very long line,
        would take too long to search: what was changed there would be lost."""
        result = self._redactor.redact(text)
        if any(finding.kind == WITHHELD for finding in result.findings):
            return None
        return self._logged(result)

    def clean_json(self, text: str) -> str:
        """Return a JSON text without its secrets; the very same one where it has none."""
        return self._logged(self._redactor.redact_json(text))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of the secrets, sorted, each once; none where there was no secret."""
        return tuple(sorted({finding.kind for finding in self._findings.values()}))

    def redactions(self, before: contracts.Redactions = _NONE) -> contracts.Redactions:
        """Return the secrets in numbers, with those that were replaced ``before``."""
        findings = self._findings.values()
        return contracts.Redactions(
            count=before.count + len(findings),
            unsure=before.unsure + sum(not finding.sure for finding in findings),
            kinds=sorted({*before.kinds, *self.kinds}),
        )

    def _logged(self, result: Redacted) -> str:
        for finding in result.findings:
            digest = finding.placeholder.rpartition(":")[2]
            if digest not in self._findings or self._findings[digest].sure:
                self._findings[digest] = finding
        return result.text


def mask_facts(facts: SessionFacts, secrets: SecretLog) -> SessionFacts:
    """Return a session's facts without secrets in what was typed and printed."""
    return structs.replace(
        facts,
        system=None if facts.system is None else secrets.clean(facts.system),
        prompt=secrets.clean(facts.prompt),
        summary=None if facts.summary is None else secrets.clean(facts.summary),
        commands=tuple(
            structs.replace(
                command,
                args=tuple(secrets.clean(arg) for arg in command.args),
                output=secrets.clean(command.output[:_LONGEST_SCANNED]),
                cut=command.cut or len(command.output) > _LONGEST_SCANNED,
            )
            for command in facts.commands
        ),
    )


class Scrubbed(Struct, frozen=True, kw_only=True):
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
        redactor: finds and replaces them.
    """
    secrets = SecretLog(redactor)
    patch = operations_of(record)
    messages = [_message(message, patch, secrets) for message in record.messages]
    meta = _meta(record.meta, secrets)
    if not secrets.kinds:
        return None
    redactions = secrets.redactions(meta.redactions)
    meta = meta.model_copy(update={"verified": False, "redactions": redactions})
    clean = record.model_copy(update={"messages": messages, "meta": meta})
    return Scrubbed(record=clean, text=encode_record(clean), kinds=secrets.kinds)


def _message(
    message: contracts.Message, ops: Sequence[contracts.Operation], secrets: SecretLog
) -> contracts.Message:
    changes: dict[str, object] = {"content": secrets.clean(message.content)}
    if isinstance(message, contracts.AssistantMessage) and message.tool_calls:
        call = message.tool_calls[0]
        arguments = call.function.arguments
        if call.function.name != APPLY_PATCH:
            arguments = secrets.clean_json(arguments)
        elif (clean := [_operation(op, secrets) for op in ops]) != ops:
            arguments = encode_arguments(contracts.ApplyPatch(ops=clean))
        function = call.function.model_copy(update={"arguments": arguments})
        changes["tool_calls"] = [call.model_copy(update={"function": function})]
    return message.model_copy(update=changes)


def _operation(op: contracts.Operation, secrets: SecretLog) -> contracts.Operation:
    changes = {"path": secrets.clean(op.path)}
    if not isinstance(op, contracts.DeleteFile):
        changes["diff"] = secrets.clean(op.diff)
    return op.model_copy(update=changes)


def _meta(meta: Meta, secrets: SecretLog) -> Meta:
    text = meta.model_dump_json(by_alias=True, exclude=_PLAIN)
    clean = secrets.clean_json(text)
    if clean == text:
        return meta
    plain = meta.model_dump(by_alias=True, include=_PLAIN)
    return Meta.model_validate({**plain, **msgspec.json.decode(clean)})
