"""Stored records as lines, and as folders of lines that trainers load.

A line is made as the pipeline makes it: the record is read as a session, and the session written
as a line of a training set. Only what the pipeline alone knows is missing: nobody has judged or
scored it, which an empty ``scoring_fingerprint`` says.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import IO
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.markdown import plain, table
from debrief.recorder.contracts import Status
from debrief.recorder.storage.rows import MadeLine, StoredRecord
from debrief.redaction import contains_secret
from debrief.redaction.gate import refuse_random
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import user_turn_efficiency
from debrief.sessions.actions import with_actions
from debrief.sessions.model import Session, SessionHead
from debrief.sessions.readers.recorder import session_of, stored_path
from debrief.snapshots.captures import Captures
from debrief.snapshots.fingerprint import comparison_key
from debrief.snapshots.model import UNKNOWN
from debrief.snapshots.rows import metadata_row, snapshot_row
from debrief.training.kinship import Kinship, traits_of
from debrief.training.model import Split
from debrief.training.options import EVAL_SHARE, TrainingOptions, training_options
from debrief.training.publishing.folder import Published, PublishedFolder
from debrief.training.publishing.form import encoded
from debrief.training.publishing.forms import RECORD_FORMS, form_named, made_in
from debrief.training.samples import SECRET_FOUND, checked_line, sample_of
from debrief.training.selection import Candidate, candidate_of, reason_against, select
from debrief.training.splits import BY_WEEK

EXPORT_FORMS = ("record", *RECORD_FORMS)
_OPTIONS = training_options({"allow_unsure_redactions": True})
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

    candidate: Candidate
    of_set: tuple[str, str]
    """Task and fingerprint of its training set."""
    is_verified: bool
    line: bytes
    """In its stored form, validated."""


LINE_VERSION = 1
"""Of the way in which a record becomes a training line; raised when that changes."""


def made_line(record: StoredRecord) -> MadeLine:
    """Return the line that is stored beside a record, from which each form is made.

    Args:
        record: that was searched for secrets, of which the line has no others.
    """
    try:
        return MadeLine(LINE_VERSION, training_line(record, searched=True, compared=False).line)
    except InputError as refusal:
        return MadeLine(LINE_VERSION, b"", refusal.reason)


def lines_of(
    form: str,
    records: Iterable[StoredRecord],
    split: Split | None = None,
    keep: Callable[[UUID, MadeLine], None] = lambda id, made: None,
) -> Iterator[ExportedLine]:
    """Yield the line of each record, in order, one at a time.

    A record of which no valid line can be made is withheld with the reason: no line is ever sent
    that its reader would refuse.

    Args:
        form: one of ``EXPORT_FORMS``; ``record`` is the stored bytes themselves.
        records: of a store, searched for secrets before they were stored, and not again.
        split: only records of this side of the train/eval split.
        keep: stores the line of a record that came without it, so that it is made once.
    """
    for record in records:
        try:
            if form == "record":
                if split is not None and _side_of(_session_of(record)) != split:
                    continue
                line = record_line(record, searched=True)
            else:
                made = record.made
                if made is None:
                    made = made_line(record)
                    keep(record.id, made)
                if not made.line:
                    raise InputError(f"session {record.id}", made.reason)
                if split is not None and _STORED.decode(made.line).metadata.split != split:
                    continue
                rows = made_in(form, _with_status(made.line, record.status))
                if not rows:
                    raise InputError(f"session {record.id}", f"trains on nothing as {form}")
                line = b"".join(map(encoded, rows))
        except InputError as refusal:
            yield ExportedLine(record.id, b"", refusal.reason)
        else:
            yield ExportedLine(record.id, line)


class _Metadata(Struct, frozen=True):
    split: Split
    status: Status


class _Line(Struct, frozen=True):
    metadata: _Metadata


_STORED = msgspec.json.Decoder(_Line)


def _with_status(line: bytes, status: Status) -> bytes:
    """Return a line with the status that its session has by now."""
    if _STORED.decode(line).metadata.status == status:
        return line
    parts = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(parts["metadata"], type=dict[str, msgspec.Raw])
    metadata["status"] = msgspec.Raw(msgspec.json.encode(status))
    parts["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(parts) + b"\n"


def record_line(record: StoredRecord, *, searched: bool = False) -> bytes:
    """Return a record's JSON as one line.

    Raises:
        InputError: it contains a secret.
    """
    if not searched and contains_secret(record.text):
        raise InputError(f"session {record.id}", SECRET_FOUND)
    # Within JSON a line end can only be white space.
    return record.text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def _session_of(record: StoredRecord) -> Session:
    return with_actions(session_of(record.text, stored_path(record.id), record.status))


def _side_of(session: Session, eval_share: float = EVAL_SHARE) -> Split:
    return BY_WEEK.side_of(session.repository, session.started, eval_share)


def training_line(
    record: StoredRecord,
    eval_share: float = EVAL_SHARE,
    *,
    searched: bool = False,
    compared: bool = True,
) -> RecordLine:
    """Return a record as a line of a training set.

    Args:
        record: of a store or a server.
        eval_share: held out for evaluation.
        searched: it was searched for secrets before it was stored.
        compared: it is to be compared with others, as a set's sessions are.

    Raises:
        InputError: it is not a record, gives no line, or its line contains a secret.
    """
    session = _session_of(record)
    session = replace(session, digest=digest_of(replace(session, status=UNSET)))
    head = SessionHead(**{name: getattr(session, name) for name in SessionHead.__struct_fields__})
    snapshot = snapshot_row(head, _NO_CAPTURES)
    metadata = metadata_row(head, snapshot, _NO_CAPTURES)
    scores = _unscored(session)
    candidate = candidate_of(traits_of(session, compared=compared), metadata, scores)
    excluded = reason_against(candidate, _OPTIONS)
    if excluded is not None:
        raise InputError(f"session {session.id}", excluded.reason)
    sample = sample_of(
        session,
        metadata=metadata,
        scores=scores,
        snapshot=snapshot,
        split=_side_of(session, eval_share),
        status=candidate.status,
    )
    line = checked_line(sample, searched=searched)
    if not searched:
        refuse_random(f"session {session.id}", line)
    return RecordLine(
        candidate=candidate,
        of_set=(metadata.task, comparison_key(metadata.prompt_fingerprint, UNKNOWN)),
        is_verified=bool(session.recorded and session.recorded.verified),
        line=line,
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
        user_turn_efficiency=user_turn_efficiency(session),
    )


RECORD_SUFFIX = ".record.jsonl"


class PublishedRecords(Struct, frozen=True, kw_only=True):
    """The outcome of publishing records."""

    records: int
    """That were read."""
    left_out: dict[str, str]
    """Reasons by session id."""
    published: Published | None = None
    """The sets; None if the records were written as they are."""
    files: dict[str, int] = {}
    """Records by file, if they were written as they are."""
    changed: bool
    """False when the folder held the same before."""


class _Spool:
    """Lines in a scratch file, by session id; of two with one id the later counts."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._positions: dict[str, tuple[int, int]] = {}

    def put(self, id: str, line: bytes) -> None:
        """Add a line."""
        self._positions[id] = (self._file.seek(0, os.SEEK_END), len(line))
        self._file.write(line)

    def get(self, id: str) -> bytes:
        """Return a line."""
        offset, size = self._positions[id]
        self._file.seek(offset)
        return self._file.read(size)


def publish_records(
    records: Iterable[StoredRecord],
    target: str,
    form: str,
    options: TrainingOptions,
    split: Split | None = None,
) -> PublishedRecords:
    """Write records to a folder that ``load_dataset`` takes as splits.

    Args:
        records: of a store or a server; of two with one id the later counts.
        target: a folder or an fsspec URL.
        form: one of ``RECORD_FORMS``.
        options: which of them, and how many are held out.
        split: write this side alone.

    Raises:
        InputError: there is no such form, or the folder holds something else.
    """
    if form not in RECORD_FORMS:
        names = ", ".join(RECORD_FORMS)
        raise InputError(f"form {form}", "is none for a folder of sets", f"There are: {names}.")
    left_out: dict[str, str] = {}
    made: dict[str, RecordLine] = {}
    count = 0
    with tempfile.TemporaryFile() as scratch:
        spool = _Spool(scratch)
        for record in records:
            count += 1
            id = str(record.id)
            left_out.pop(id, None)
            try:
                new = training_line(record, options.eval_share)
            except InputError as refusal:
                left_out[id] = refusal.reason
                continue
            spool.put(id, new.line)
            made[id] = replace(new, line=b"")
        candidates = [one.candidate for one in made.values()]
        selection = select(candidates, options, Kinship(one.traits for one in candidates))
        left_out |= {id: excluded.reason for id, excluded in selection.left_out.items()}
        sets: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
        for candidate in selection.selected:
            if split in (None, candidate.split):
                sets[made[candidate.session_id].of_set].append(candidate)
        with PublishedFolder(target, form_named(form)) as folder:
            for key in sorted(sets):
                lines = (
                    (one.split, row)
                    for one in sets[key]
                    for row in made_in(form, spool.get(one.session_id))
                )
                folder.write_set(*key, lines)
                verified = sum(made[one.session_id].is_verified for one in sets[key])
                card = "\n".join(_card(key, sets[key], verified))
                folder.write(f"{'/'.join(key)}/card.md", card.encode())
            published = folder.finish()
    return PublishedRecords(
        records=count, left_out=left_out, published=published, changed=published.changed
    )


def publish_as_records(
    records: Iterable[StoredRecord], target: str, split: Split | None = None
) -> PublishedRecords:
    """Write records as they are, one ``<task>.record.jsonl`` for each task, by start and id.

    Such a folder is a source of sessions; of two records with one id the later counts.
    """
    folder = Lake(target)
    left_out: dict[str, str] = {}
    tasks: dict[str, dict[str, datetime]] = defaultdict(dict)
    count, changed = 0, False
    with tempfile.TemporaryFile() as scratch:
        spool = _Spool(scratch)
        for record in records:
            count += 1
            try:
                session = _session_of(record)
                line = record_line(record)
            except InputError as refusal:
                left_out[str(record.id)] = refusal.reason
                continue
            if split in (None, _side_of(session)):
                spool.put(session.id, line)
                tasks[session.task][session.id] = session.started
        for task, started in sorted(tasks.items()):
            with folder.create(f"{task}{RECORD_SUFFIX}", durable=False) as creation:
                for _, id in sorted((moment, id) for id, moment in started.items()):
                    creation.file.write(spool.get(id))
            changed |= creation.changed
    return PublishedRecords(
        records=count,
        left_out=left_out,
        files={f"{task}{RECORD_SUFFIX}": len(ids) for task, ids in sorted(tasks.items())},
        changed=changed,
    )


def _card(key: tuple[str, str], candidates: list[Candidate], verified: int) -> Iterator[str]:
    repositories = Counter(candidate.repository or "unknown" for candidate in candidates)
    ready = sum(candidate.status == "ready" for candidate in candidates)
    sides = Counter(candidate.split for candidate in candidates)
    days = [candidate.traits.started.date() for candidate in candidates]
    yield f"# {key[0]} · {key[1]}"
    yield ""
    yield (
        f"{len(candidates)} recorded sessions of {min(days)} to {max(days)}: "
        f"{sides['train']} train, {sides['eval']} eval. {ready} are ready. Of {verified}, applying "
        "the patch to the base commit was seen to give the very tree that was left behind. "
        "Nobody has judged or scored them."
    )
    yield ""
    yield (
        "A repository's sessions of one week are on one side of the split, and so are those that "
        "resemble each other."
    )
    yield ""
    rows = [(plain(name), str(count)) for name, count in sorted(repositories.items())]
    yield table(("repository", "sessions"), rows)
    yield ""
