"""The training stage: from the tables of the lake to the files of a pair.

Sessions stream through week by week and finished lines wait in a scratch file until they are put
in order, so memory does not grow with their number. A set whose inputs have not changed is left
alone; any other is made anew.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.rubrics.agreement_report import agreement_text
from debrief.sessions.model import Session
from debrief.tokens import count_tokens
from debrief.training.cards import CardFacts, training_card
from debrief.training.conversations import NO_PROMPT
from debrief.training.counts import SetCounts
from debrief.training.formats import encode
from debrief.training.kinship import TrainingIndex, read_index
from debrief.training.materials import Materials, read_materials
from debrief.training.model import SampleLine, SkippedSessions, Split, Status
from debrief.training.pairs import Members
from debrief.training.samples import checked_line, metadata_of_line, sample_of, samples_of
from debrief.training.selection import Candidate, TrainingOptions, candidate_of, counted, select
from debrief.training.windows import tokens_of

INDEX, LINES = "training_index", "training_lines"
LINE_FORMAT = "6"
"""Raised when the same sessions give other lines: every training set is written again."""


class TrainingSetRow(Struct, frozen=True, kw_only=True):
    """What is known of a pair's training set beside its files."""

    task: str
    fingerprint: str
    considered: int
    sessions: int = 0
    samples: int
    train: int
    eval: int
    tokens: int
    left_out: tuple[SkippedSessions, ...] = ()
    lines_digest: str
    """SHA-256 of the JSONL, in hex."""
    card_digest: str


class LineRow(Struct, frozen=True, kw_only=True):
    """One line of a training set: where it is, and how it is chosen."""

    session_id: str
    window: int
    split: Split
    status: Status = "draft"
    quality: float
    offset: int
    """Bytes from the beginning of the file."""
    size: int
    """Bytes, line end included."""
    opening: str
    """Digest of its system message and first prompt; that of the line if nobody knows these."""
    messages: int
    tokens: int
    digest: str
    """SHA-256 of its bytes, in hex."""


class StoredTrainingSet(Struct, frozen=True, kw_only=True):
    """What storing a pair's training set came to."""

    row: TrainingSetRow
    path: str
    card: str
    changed: bool
    """False when the same lines had been there before."""


def training_path(task: str, fingerprint: str, suffix: str = ".jsonl") -> str:
    """Return where a pair's file is in the lake."""
    return f"training/{task}/{fingerprint}{suffix}"


def training_set_of(lake: Lake, task: str, fingerprint: str) -> TrainingSetRow | None:
    """Return what is known of a pair's stored training set; None when there is none."""
    return next(lake.read(INDEX, f"{task}/{fingerprint}", TrainingSetRow), None)


def store_training_set(
    lake: Lake,
    task: str,
    fingerprint: str,
    members: Members,
    options: TrainingOptions,
    *,
    index: TrainingIndex | None = None,
    again: bool = False,
) -> StoredTrainingSet:
    """Bring one pair's training set and its card up to date; leave them alone when they are.

    Args:
        lake: where the tables are and the files go.
        task: the pair's task.
        fingerprint: the pair's fingerprints.
        members: its session ids by week.
        options: what was chosen at launch.
        index: of the lake, where several sets are stored in a row; read when None.
        again: make every line again, though nothing that it depends on has changed.
    """
    index = index or read_index(lake)
    materials = read_materials(lake, fingerprint, members)
    ids = sorted(materials.by_session)
    agreement = agreement_text(lake, materials.judged_by)
    inputs = digest_of(
        LINE_FORMAT,
        options.model_dump(mode="json"),
        agreement,
        [(name, index.session_digest(name), materials.by_session[name].digest) for name in ids],
        [index.kinship.of(name) for name in ids],
    )
    stored = None if again else _stored_set(lake, task, fingerprint, inputs)
    if stored is not None:
        return stored
    writer = _SetWriter(lake, index, materials, options)
    return writer.store(task, fingerprint, members, inputs, agreement)


class _SetWriter:
    """Makes the files and rows of one training set."""

    def __init__(
        self, lake: Lake, index: TrainingIndex, materials: Materials, options: TrainingOptions
    ) -> None:
        self._lake = lake
        self._index = index
        self._materials = materials
        self._options = options
        self._left_out: dict[str, str] = {}
        self._rows: dict[str, list[LineRow]] = {}
        """By session; offsets are those of the scratch file."""

    def store(
        self, task: str, fingerprint: str, members: Members, inputs: str, agreement: str
    ) -> StoredTrainingSet:
        chosen = self._select()
        with tempfile.TemporaryFile() as scratch:
            self._make(chosen, members, scratch)
            with self._lake.create(training_path(task, fingerprint)) as creation:
                rows, counts, digest = self._put_in_order(chosen, scratch, creation.file)
        facts = CardFacts(
            task=task,
            fingerprint=fingerprint,
            options=self._options,
            considered=len(self._materials.by_session),
            counts=counts,
            left_out=counted(self._left_out),
            agreement=agreement,
        )
        card = training_card(facts)
        self._lake.write_bytes(training_path(task, fingerprint, ".card.md"), card.encode())
        self._lake.write(LINES, f"{task}/{fingerprint}", rows, LineRow, lambda: digest)
        row = TrainingSetRow(
            task=task,
            fingerprint=fingerprint,
            considered=facts.considered,
            sessions=counts.sessions,
            samples=counts.samples,
            train=counts.train,
            eval=counts.eval,
            tokens=counts.tokens,
            left_out=facts.left_out,
            lines_digest=digest,
            card_digest=_digest(card.encode()),
        )
        self._lake.write(INDEX, f"{task}/{fingerprint}", [row], TrainingSetRow, lambda: inputs)
        return StoredTrainingSet(row=row, path=creation.path, card=card, changed=creation.changed)

    def _select(self) -> dict[str, Candidate]:
        candidates = [
            candidate_of(traits, made.metadata, made.scores, made.rubric_evaluations)
            for name, made in sorted(self._materials.by_session.items())
            if (traits := self._index.traits.get(name)) is not None
        ]
        selection = select(candidates, self._options, self._index.kinship)
        self._left_out |= selection.left_out
        return {candidate.session_id: candidate for candidate in selection.selected}

    def _make(self, chosen: dict[str, Candidate], members: Members, scratch: IO[bytes]) -> None:
        """Write the lines of the chosen sessions to a scratch file, a week at a time."""
        for week, ids in sorted(members.items()):
            only = ("id", ids & chosen.keys())
            for session in self._lake.read("raw_sessions", week, Session, only=only):
                try:
                    samples = self._samples(session, chosen[session.id])
                    lines = [checked_line(sample) for sample in samples]
                except InputError as refusal:
                    self._left_out[session.id] = refusal.reason
                    continue
                rows = self._rows[session.id] = []
                for sample, line in zip(samples, lines, strict=True):
                    rows.append(_row(session.id, sample, line, scratch.tell()))
                    scratch.write(line)

    def _samples(self, session: Session, candidate: Candidate) -> tuple[SampleLine, ...]:
        material = self._materials.by_session[session.id]
        assert material.metadata is not None
        assert material.scores is not None, "without either, no session is selected"
        sample = sample_of(
            session,
            metadata=material.metadata,
            scores=material.scores,
            judgements=material.judgements,
            rubric_evaluations=material.rubric_evaluations,
            snapshot=material.snapshot,
            split=candidate.split,
            status=candidate.status,
            eval_fingerprint=self._materials.eval_fingerprint,
            eval_digest=self._materials.eval_digest,
        )
        budget = self._options.max_tokens
        return samples_of(sample, budget) if budget else (sample,)

    def _put_in_order(
        self, chosen: dict[str, Candidate], scratch: IO[bytes], file: IO[bytes]
    ) -> tuple[list[LineRow], SetCounts, str]:
        counts = SetCounts()
        content = hashlib.sha256()
        rows: list[LineRow] = []
        for name in chosen:
            if name in self._rows:
                counts.add_session(self._index.traits[name].languages)
            for row in self._rows.get(name, ()):
                scratch.seek(row.offset)
                line = scratch.read(row.size)
                rows.append(replace(row, offset=file.tell()))
                file.write(line)
                content.update(line)
                metadata = metadata_of_line(line)
                counts.add_line(metadata, size=row.size, messages=row.messages, tokens=row.tokens)
        return rows, counts, content.hexdigest()


def _row(session_id: str, sample: SampleLine, line: bytes, offset: int) -> LineRow:
    metadata = sample.metadata
    return LineRow(
        session_id=session_id,
        window=metadata.window,
        split=metadata.split,
        status=metadata.status,
        quality=metadata.overall_quality,
        offset=offset,
        size=len(line),
        opening=opening_of(sample, line),
        messages=len(sample.messages),
        tokens=tokens_of(sample.messages, count_tokens),
        digest=_digest(line),
    )


def _stored_set(lake: Lake, task: str, fingerprint: str, inputs: str) -> StoredTrainingSet | None:
    """Return the stored set if its inputs digest and file digests match."""
    partition, name = f"{task}/{fingerprint}", training_path(task, fingerprint)
    stamp, lines = lake.stamp(INDEX, partition), lake.stamp(LINES, partition)
    card = lake.read_bytes(training_path(task, fingerprint, ".card.md"))
    row = training_set_of(lake, task, fingerprint)
    if stamp is None or stamp.inputs != inputs or card is None or row is None or lines is None:
        return None
    digests = lines.inputs, lake.digest_of_file(name), _digest(card)
    if digests != (row.lines_digest, row.lines_digest, row.card_digest):
        return None
    return StoredTrainingSet(row=row, path=lake.path(name), card=card.decode(), changed=False)


_STAND_IN = re.compile(re.escape(NO_PROMPT) + r"|\(\d+ images?\)")


def opening_of(sample: SampleLine, line: bytes) -> str:
    """Return the digest of a line's system message and first prompt; of the line if not known."""
    number, prompt = next(x for x in enumerate(sample.messages) if x[1].role == "user")
    if _STAND_IN.match(prompt.content):
        return _digest(line)
    start = encode({"messages": sample.messages[: number + 1]})
    return _digest(start.removesuffix(b"}]}"))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
