"""Records as lines: as they are stored, or in the forms that trainers read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol, get_args
from uuid import UUID

from msgspec import Struct

from debrief.errors import InputError
from debrief.recorder.contracts import Status
from debrief.recorder.conversion import line_of, recording_of
from debrief.redaction import contains_secret
from debrief.training.publishing.forms import in_form
from debrief.training.samples import SECRET_FOUND
from debrief.training.splitting import EVAL_SHARE, side_of

ExportForm = Literal["record", "messages", "trl", "openai", "sharegpt"]
EXPORT_FORMS: tuple[ExportForm, ...] = get_args(ExportForm)


class StoredRecord(Protocol):
    """A record on its way out of a store."""

    @property
    def cursor(self) -> str:
        """Goes on after it."""
        ...

    @property
    def id(self) -> UUID:
        """Of the session."""
        ...

    @property
    def status(self) -> Status:
        """What the store holds of it."""
        ...

    @property
    def text(self) -> bytes:
        """The record."""
        ...


class ExportedLine(Struct, frozen=True, gc=False):
    """What became of one record."""

    cursor: str
    """Goes on after it."""
    id: UUID
    line: bytes
    """With its line end; empty when the record gives none."""
    withheld: str = ""
    """Why it gives none."""


def lines_of(
    form: str,
    records: Iterable[StoredRecord],
    eval_share: float = EVAL_SHARE,
    *,
    searched: bool = False,
) -> Iterator[ExportedLine]:
    """Yield what becomes of each record, in order, one held at a time.

    A record that holds a secret, or of which no valid line can be made, is withheld with the
    reason: no line is ever sent that its reader would refuse.

    Args:
        form: one of ``EXPORT_FORMS``; ``record`` is the stored bytes themselves.
        records: as a store gives them out.
        eval_share: the share that ``metadata.split`` of form ``messages`` holds out.
        searched: each record was searched for secrets before it was stored. Records that are sent
            as they are stored are not searched again then, which takes thirty times as long as
            sending them; made lines are.

    Raises:
        InputError: there is no such form.
    """
    if form not in EXPORT_FORMS:
        raise InputError(f"format {form}", "is none", f"There are: {', '.join(EXPORT_FORMS)}.")
    return _lines(form, records, eval_share, searched)


def _lines(
    form: str, records: Iterable[StoredRecord], eval_share: float, searched: bool
) -> Iterator[ExportedLine]:
    for record in records:
        try:
            line = _line(form, record, eval_share, searched)
        except InputError as refusal:
            yield ExportedLine(record.cursor, record.id, b"", refusal.reason)
        else:
            yield ExportedLine(record.cursor, record.id, line)


def _line(form: str, record: StoredRecord, eval_share: float, searched: bool) -> bytes:
    if form == "record":
        if not searched and contains_secret(record.text):
            raise InputError(f"session {record.id}", SECRET_FOUND)
        return one_line(record.text)
    recording = recording_of(record.text, str(record.id), record.status)
    session = recording.session
    split = side_of(session.repository, session.started, eval_share)
    return in_form(form, line_of(recording, split))


def one_line(record: bytes) -> bytes:
    """Return a record's JSON with its line end, and none within: there it can only be space."""
    if b"\n" in record or b"\r" in record:
        record = record.replace(b"\n", b" ").replace(b"\r", b" ")
    return record + b"\n"
