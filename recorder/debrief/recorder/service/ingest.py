"""A record on its way in: checked, searched for secrets, written in the form that is stored."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256

from msgspec import Struct
from pydantic.alias_generators import to_camel

from debrief.errors import InputError
from debrief.recorder.checks import ReadyRule, is_validated, problems_of, readiness
from debrief.recorder.contracts import RUN_COMMAND, RunCommand
from debrief.recorder.encoding import canonical, decode_record, encode_record
from debrief.recorder.messages import calls_of, changes_of
from debrief.recorder.scrubbing import scrubbed
from debrief.recorder.storage.rows import (
    NewRow,
    UnfitError,
    Upload,
)
from debrief.redaction import Redactor

_REPEATED = ("task_id", "repo_name", "repo_remote", "branch", "base_ref")


class Ingest(Struct, frozen=True):
    """Checks uploaded records."""

    redactor: Redactor
    """Replaces secrets that a recorder let through."""
    rule: ReadyRule
    """When a record may be marked ready."""
    programs: Collection[str] = ()
    """That records may have run; all that their own rules name, if there is none."""

    def check(self, upload: Upload) -> NewRow:
        """Return the row that an upload makes; always a draft.

        Raises:
            UnfitError: it contradicts itself, or contains a secret that cannot be replaced.
        """
        record = upload.record
        with suppress(InputError):  # which problems_of names
            record = canonical(record)
        if reasons := contradictions(upload) + problems_of(record):
            raise UnfitError("record", reasons, "Record the session again, or correct its record.")
        commands = calls_of(record, RUN_COMMAND)
        ran = {command.arguments(RunCommand).cmd for command in commands}
        if self.programs and (refused := sorted(ran.difference(self.programs))):
            reasons = [
                f"the program {program} is not one that this service takes" for program in refused
            ]
            raise UnfitError("record", reasons, "Ask who runs the service.")
        sent = text = encode_record(record, only_set=True)
        passed = _times_to_pass(upload)
        told = encode_record(record, only_set=True, without=passed) if passed else sent
        if clean := scrubbed(record, self.redactor):
            text, record = clean.text, clean.record
            if problems_of(decode_record(text)):
                raise UnfitError(
                    "record",
                    [f"holds a secret ({kind}) that cannot be replaced" for kind in clean.kinds],
                    "Take it out of the files, change it wherever it is used, and record again.",
                )
        reasons = readiness(record, self.rule)
        if text is not sent:
            kinds = ", ".join(record.meta.redactions.kinds)
            reasons.insert(0, f"the service replaced secrets that its recorder left in ({kinds})")
        return NewRow(
            **upload.model_dump(exclude={"record"}),
            sha256=sha256(told).hexdigest(),
            text=text,
            verified=record.meta.verified,
            files=len(changes_of(record)),
            validated=is_validated(record),
            redactions=record.meta.redactions.count,
            not_ready=reasons,
        )


def _times_to_pass(upload: Upload) -> list[str]:
    """Return the times that are not part of what was sent: those that the service filled in, and
    all of them where it made the id. A retry may have others."""
    missing = upload.missing
    is_id_made = "id" in missing and "record.meta.sessionId" in missing
    return [
        name
        for name in ("started_at", "stopped_at")
        if is_id_made or f"record.meta.{to_camel(name)}" in missing
    ]


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
