"""From the bytes of an upload to a row: read strictly, checked, searched for secrets.

Everything that a server can check without the repository is checked here, before anything is
stored. The bytes of the record are kept as they were sent, unless they contain a secret.
"""

from __future__ import annotations

from hashlib import sha256

from pydantic.alias_generators import to_camel

from debrief.recorder.checks import ReadyRule, is_validated, problems_of, readiness
from debrief.recorder.contracts import Upload
from debrief.recorder.encoding import SCHEMA, decode, decode_record, member
from debrief.recorder.errors import UnfitError
from debrief.recorder.scrubbing import scrubbed
from debrief.recorder.storage.rows import NewRow
from debrief.redaction import Redactor

_REPEATED = ("task_id", "repo_name", "repo_remote", "branch", "base_ref")


class Ingest:
    """Checks uploaded records.

    Args:
        redactor: replaces secrets that a recorder let through.
        rule: when a record may be marked ready.
    """

    def __init__(self, redactor: Redactor, rule: ReadyRule) -> None:
        self._redactor = redactor
        self._rule = rule

    def check(self, body: bytes) -> NewRow:
        """Return the row that a request's body makes; always a draft.

        Raises:
            MalformedError: the body cannot be read.
            UnfitError: it is not of the contract, contradicts itself, or contains a secret that
                cannot be replaced.
        """
        upload = decode(Upload, body, "body", next_move=SCHEMA)
        if reasons := contradictions(upload) + problems_of(upload.record):
            raise UnfitError("record", reasons, "Record the session again, or correct its record.")
        sent = member(body, "record")
        text, record = sent, upload.record
        if clean := scrubbed(record, self._redactor):
            text, record = clean.text, clean.record
            if problems_of(decode_record(text)):
                raise UnfitError(
                    "record",
                    [f"holds a secret ({kind}) that cannot be replaced" for kind in clean.kinds],
                    "Take it out of the files, change it wherever it is used, and record again.",
                )
        reasons = readiness(record, self._rule)
        if text is not sent:
            kinds = ", ".join(record.meta.redactions.kinds)
            reasons.insert(0, f"the service replaced secrets that its recorder left in ({kinds})")
        return NewRow(
            **upload.model_dump(exclude={"record"}),
            sha256=sha256(sent).hexdigest(),
            text=text,
            verified=record.meta.verified,
            files=len(record.meta.changes),
            validated=is_validated(record),
            redactions=record.meta.redactions.count,
            not_ready=tuple(reasons),
        )


def contradictions(upload: Upload) -> list[str]:
    """Return where an upload and its record's ``meta`` differ."""
    meta = upload.record.meta
    reasons = [
        f"{to_camel(name)}: is not what record.meta says"
        for name in _REPEATED
        if getattr(upload, name) != getattr(meta, name)
    ]
    if upload.id != meta.session_id:
        reasons.append("id: is not record.meta.sessionId")
    if upload.created_at != meta.stopped_at:
        reasons.append("createdAt: is not record.meta.stoppedAt")
    return reasons
