"""Stored records as lines: as they are stored, or in the forms that trainers read.

A line is made as the pipeline makes it: the record is read as a session, and the session written
as a line of a training set. Only what the pipeline alone knows is missing: nobody has judged or
scored it, which an empty ``scoring_fingerprint`` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from msgspec import UNSET, Struct
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.recorder.storage.rows import StoredRecord
from debrief.redaction import contains_secret
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import user_turn_efficiency
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.readers.recorder import session_of, stored_path
from debrief.snapshots.captures import Captures
from debrief.snapshots.model import SessionMetadataRow
from debrief.snapshots.rows import metadata_row, snapshot_row
from debrief.training.model import ScoreEntry, Split
from debrief.training.publishing.forms import RECORD_FORMS, in_form
from debrief.training.samples import SECRET_FOUND, checked_line, sample_of
from debrief.training.selection import Candidate, TrainingOptions, candidate_of, reason_against
from debrief.training.splitting import EVAL_SHARE, side_of
from debrief.training.traits import SessionTraits, traits_of

EXPORT_FORMS = ("record", *RECORD_FORMS)
_OPTIONS = TrainingOptions(allow_unsure_redactions=True)
"""Every record that a line can be made of is exported."""
_NO_CAPTURES = Captures(())


class ExportedLine(Struct, frozen=True, gc=False):
    """The line of one record."""

    id: UUID
    line: bytes
    """With its line end; empty if the record is withheld."""
    withheld: str = ""
    """Why it is."""


class RecordLine(Struct, frozen=True, kw_only=True):
    """A record as a line of a training set, with what it is selected by."""

    session: Session
    metadata: SessionMetadataRow
    traits: SessionTraits
    candidate: Candidate
    line: bytes
    """In its stored form, validated."""


def lines_of(form: str, records: Iterable[StoredRecord]) -> Iterator[ExportedLine]:
    """Yield the line of each record, in order, one at a time.

    A record that contains a secret, or of which no valid line can be made, is withheld with the
    reason: no line is ever sent that its reader would refuse.

    Args:
        form: one of ``EXPORT_FORMS``; ``record`` is the stored bytes themselves.
        records: of a store, searched for secrets before they were stored: those that are
            exported as they are stored are not searched again.
    """
    for record in records:
        try:
            if form == "record":
                line = record_line(record, searched=True)
            else:
                line = in_form(form, training_line(record).line)
        except InputError as refusal:
            yield ExportedLine(record.id, b"", refusal.reason)
        else:
            yield ExportedLine(record.id, line)


def record_line(record: StoredRecord, *, searched: bool = False) -> bytes:
    """Return a record's JSON as one line.

    Raises:
        InputError: it contains a secret.
    """
    if not searched and contains_secret(record.text):
        raise InputError(f"session {record.id}", SECRET_FOUND)
    # Within JSON a line end can only be white space.
    return record.text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def side_of_record(record: StoredRecord) -> Split:
    """Return the side of the train/eval split that a record is on.

    Raises:
        InputError: it is not a record.
    """
    session = session_of(record.text, stored_path(record.id), record.status)
    return side_of(session.repository, session.started)


def training_line(record: StoredRecord, eval_share: float = EVAL_SHARE) -> RecordLine:
    """Return a record as a line of a training set.

    Raises:
        InputError: it is not a record, gives no line, or its line contains a secret.
    """
    session = session_of(record.text, stored_path(record.id), record.status)
    session = replace(session, digest=digest_of(replace(session, status=UNSET)))
    head = SessionHead(**{name: getattr(session, name) for name in SessionHead.__struct_fields__})
    snapshot = snapshot_row(head, _NO_CAPTURES, str)
    metadata = metadata_row(head, snapshot, _NO_CAPTURES)
    traits = traits_of(session)
    scores = _unscored(session)
    candidate = candidate_of(traits, metadata, scores)
    reason = reason_against(candidate, _OPTIONS)
    if reason is not None:
        raise InputError(f"session {session.id}", reason)
    sample = sample_of(
        session,
        metadata=metadata,
        scores=scores,
        snapshot=snapshot,
        split=side_of(session.repository, session.started, eval_share),
        status=candidate.status,
    )
    entries = tuple(entry for entry in sample.metadata.scores if entry.kind == "efficiency")
    sample = replace(sample, metadata=replace(sample.metadata, scores=entries or (_NO_GROWTH,)))
    line = checked_line(sample)
    return RecordLine(
        session=session, metadata=metadata, traits=traits, candidate=candidate, line=line
    )


_NO_GROWTH = ScoreEntry(
    kind="efficiency",
    name="user_turn_efficiency",
    value=0.0,
    minimum=0.0,
    maximum=0.0,
    weight=0.0,
    category="",
    model="",
    comment="",
)


def _unscored(session: Session) -> SessionScores:
    """Return a row with what is computed, and without anybody's verdict."""
    return SessionScores(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        ended=session.ended,
        task=session.task,
        tool=session.tool,
        model="",
        scoring_fingerprint="",
        status="ok",
        overall_quality=0.0,
        user_turn_efficiency=user_turn_efficiency(session),
    )
