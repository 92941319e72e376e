"""From the bytes of an upload to a row: read strictly, checked, searched for secrets.

Everything that a server can check without the repository is checked here, before anything is
stored. The bytes of the record are kept as they were sent, unless they contain a secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from debrief.errors import InputError
from debrief.recorder.checks import (
    Examined,
    ReadyRule,
    examine,
    is_validated,
    problems_of,
    readiness,
)
from debrief.recorder.contracts import Record, Upload
from debrief.recorder.encoding import check_json, decode_record, member, place_of
from debrief.recorder.scrubbing import scrubbed
from debrief.recorder.storage.rows import NewRow
from debrief.redaction import Redactor

Model = TypeVar("Model", bound=BaseModel)
_MOST_REASONS = 100
_REPEATED = ("task_id", "repo_name", "repo_remote", "branch", "base_ref")


class MalformedError(InputError):
    """Bytes that are not JSON, or JSON that two parsers would read in two ways."""


class UnfitError(InputError):
    """A body that can be read and not be stored; names everything that is wrong with it."""

    def __init__(self, culprit: str, reasons: Iterable[str], next_move: str) -> None:
        self.reasons = list(reasons)
        super().__init__(culprit, "; ".join(self.reasons), next_move)


class UnmaskableError(UnfitError):
    """A record that holds a secret which cannot be replaced without breaking its patch."""


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
            UnfitError: it is not of the contract, or contradicts itself.
            UnmaskableError: it contains a secret that cannot be replaced.
        """
        upload = read_model(Upload, body)
        reasons = contradictions(upload)
        examined = examine(upload.record)
        reasons += examined.problems
        if reasons:
            raise UnfitError("record", reasons, "Record the session again, or correct its record.")
        sent = member(body, "record")
        text, record = self._without_secrets(sent, upload.record, examined)
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

    def _without_secrets(
        self, sent: bytes, record: Record, examined: Examined
    ) -> tuple[bytes, Record]:
        result = scrubbed(record, self._redactor, examined.ops)
        if result is None:
            return sent, record
        problems = problems_of(decode_record(result.text))
        if problems:
            raise UnmaskableError(
                "record",
                [f"holds a secret ({kind}) that cannot be replaced" for kind in result.kinds],
                "Take it out of the files, change it wherever it is used, and record again.",
            )
        return result.text, result.record


def read_model(model: type[Model], body: bytes) -> Model:
    """Return what a body contains.

    Args:
        model: what the body should be.
        body: the bytes that were received.

    Raises:
        MalformedError: it is not JSON, or two parsers could read it in two ways.
        UnfitError: it is not a ``model``; names every place.
    """
    try:
        check_json(body, "body")
    except InputError as error:
        raise MalformedError(error.culprit, error.reason, error.next_move) from error
    try:
        return model.model_validate_json(body, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        items = error.errors(include_url=False, include_context=False, include_input=False)
        reasons = [
            f"{place_of(item['loc'])}: {item['msg'].removeprefix('Value error, ')}"
            for item in items[:_MOST_REASONS]
        ]
        raise UnfitError("body", reasons, "GET /openapi.json says what fits.") from error


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
