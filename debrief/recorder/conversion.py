"""From a stored record to a line of a training set, without the pipeline between.

The way is the pipeline's: the record is read as a session, and the session written as a line. So
an export gives the line that the pipeline will give, less what only the pipeline knows: nobody
has judged or scored it, which an empty ``scoring_fingerprint`` says.
"""

from __future__ import annotations

from msgspec import UNSET, Struct
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.recorder.contracts import Status
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import user_turn_efficiency
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Session
from debrief.sessions.readers.recorder.conversion import SOURCE, session_of
from debrief.snapshots.captures import Captures
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.snapshots.rows import metadata_row, snapshot_row
from debrief.training.model import ScoreEntry, Split
from debrief.training.samples import checked_line, sample_of
from debrief.training.selection import Candidate, TrainingOptions, candidate_of, reason_against
from debrief.training.traits import SessionTraits, was_answered, was_validated

TAKEN = TrainingOptions(allow_unsure_redactions=True)
"""What an export takes: every record that a line can be made of."""

_NOBODY = Captures(())


class Recording(Struct, frozen=True, kw_only=True):
    """A record with what the stages before a training set would file of it."""

    session: Session
    metadata: SessionMetadataRow
    snapshot: PromptSnapshotRow
    candidate: Candidate


def path_of(record_id: str) -> str:
    """Return what stands for a path where sessions from files have theirs."""
    return f"{SOURCE}:{record_id}"


def recording_of(text: bytes, record_id: str, status: Status | None = None) -> Recording:
    """Return a record as a session with its circumstances.

    Args:
        text: the record's bytes.
        record_id: of the stored session.
        status: what the store holds of it; None where it is in no store.

    Raises:
        InputError: it is no record.
    """
    session = session_of(text, path_of(record_id), status)
    session = replace(session, digest=digest_of(replace(session, status=UNSET)))
    head = _head(session)
    snapshot = snapshot_row(head, _NOBODY, str)
    metadata = metadata_row(head, snapshot, _NOBODY)
    candidate = candidate_of(_traits(session), metadata, _unscored(session))
    return Recording(session=session, metadata=metadata, snapshot=snapshot, candidate=candidate)


def line_of(recording: Recording, split: Split) -> bytes:
    """Return the stored form of a record's line, validated and through the last gate.

    Args:
        recording: the record.
        split: the side of the train/eval split that it is on.

    Raises:
        InputError: it gives no line, and why.
    """
    session = recording.session
    reason = reason_against(recording.candidate, TAKEN)
    if reason is not None:
        raise InputError(f"session {session.id}", reason)
    scores = _unscored(session)
    sample = sample_of(
        session,
        metadata=recording.metadata,
        scores=scores,
        snapshot=recording.snapshot,
        split=split,
        status=recording.candidate.status,
    )
    entries = tuple(entry for entry in sample.metadata.scores if entry.kind == "efficiency")
    metadata = replace(sample.metadata, scores=entries or (_NO_GROWTH,))
    return checked_line(replace(sample, metadata=metadata))


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
    """Return a row that holds what is computed, and no verdict of anybody."""
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


def _head(session: Session) -> SessionHead:
    return SessionHead(**{name: getattr(session, name) for name in SessionHead.__struct_fields__})


def _traits(session: Session) -> SessionTraits:
    return SessionTraits(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        tool=session.tool,
        model="",
        repository=session.repository,
        answered=was_answered(session),
        growth=session.growth,
        validated=was_validated(session),
        unsure_redactions=session.unsure_redactions,
    )
