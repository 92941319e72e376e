"""The training stage: from the tables of the lake to the files of a pair.

Memory does not grow with the number of samples: sessions stream through week by week, finished
lines wait in a scratch file until they are put in order, and a line whose session and scores have
not changed is copied from the standing file rather than made again.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.rubrics.agreement_page import agreement_text
from debrief.sessions.model import Session
from debrief.training.cards import CardFacts, training_card
from debrief.training.index import TrainingIndex, read_index
from debrief.training.materials import Materials
from debrief.training.model import LeftOut, Split, Status
from debrief.training.pairs import Members
from debrief.training.selection import Candidate, TrainingOptions, candidate_of, counted, select
from debrief.training.tallies import Tally
from debrief.training.writing import LineMaker, metadata_of_line

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
    left_out: tuple[LeftOut, ...] = ()
    lines_digest: str
    """SHA-256 of the JSONL, in hex."""
    card_digest: str


class LineRow(Struct, frozen=True, kw_only=True):
    """One line of a training set: where it is, how it is chosen, what it was made from."""

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
    made_from: str
    """Digest of all that the line depends on."""
    conversation: str
    """Digest of what its messages and tools alone depend on."""


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
    with Materials(lake, fingerprint, members) as materials:
        ids = sorted(name for found in members.values() for name in found)
        digests = {name: materials.digest_of(name) for name in ids}
        agreement = agreement_text(lake, materials.judged_by)
        made_from = digest_of(
            LINE_FORMAT,
            options.model_dump(mode="json"),
            agreement,
            [(name, _session_digest(index, name), digests[name]) for name in ids],
            [index.kinship.of(name) for name in ids],
        )
        standing = None if again else _standing(lake, task, fingerprint, made_from)
        if standing is not None:
            return standing
        maker = _SetMaker(
            lake, training_path(task, fingerprint), index, materials, digests, options
        )
        return maker.store(task, fingerprint, members, made_from, agreement, again=again)


class _SetMaker:
    """Makes one training set; of no use twice."""

    def __init__(
        self,
        lake: Lake,
        name: str,
        index: TrainingIndex,
        materials: Materials,
        digests: dict[str, str],
        options: TrainingOptions,
    ) -> None:
        self._lake = lake
        self._name = name
        self._index = index
        self._materials = materials
        self._digests = digests
        self._options = options
        self._lines = LineMaker(
            materials.eval_fingerprint,
            eval_digest=materials.eval_digest,
            max_tokens=options.max_tokens,
        )
        self._left_out: dict[str, str] = {}
        self._made: dict[str, list[LineRow]] = {}
        """By session; offsets are those of the scratch file."""

    def store(
        self,
        task: str,
        fingerprint: str,
        members: Members,
        made_from: str,
        agreement: str,
        *,
        again: bool,
    ) -> StoredTrainingSet:
        chosen = self._select(members)
        partition = f"{task}/{fingerprint}"
        earlier: dict[str, list[LineRow]] = {}
        for line in self._lake.read(LINES, partition, LineRow) if not again else ():
            earlier.setdefault(line.session_id, []).append(line)
        with tempfile.TemporaryFile() as unordered:
            fresh = self._reuse(chosen, earlier, unordered)
            self._make(chosen, fresh, members, earlier, unordered)
            with self._lake.create(self._name) as creation:
                rows, tally, digest = self._put_in_order(chosen, unordered, creation.file)
        facts = CardFacts(
            task=task,
            fingerprint=fingerprint,
            options=self._options,
            considered=len(self._digests),
            tally=tally,
            left_out=counted(self._left_out),
            agreement=agreement,
        )
        card = training_card(facts)
        self._lake.write_bytes(training_path(task, fingerprint, ".card.md"), card.encode())
        self._lake.write(LINES, partition, rows, LineRow, lambda: digest)
        row = TrainingSetRow(
            task=task,
            fingerprint=fingerprint,
            considered=facts.considered,
            sessions=tally.sessions,
            samples=tally.samples,
            train=tally.train,
            eval=tally.eval,
            tokens=tally.tokens,
            left_out=facts.left_out,
            lines_digest=digest,
            card_digest=hashlib.sha256(card.encode()).hexdigest(),
        )
        self._lake.write(INDEX, partition, [row], TrainingSetRow, lambda: made_from)
        return StoredTrainingSet(row=row, path=creation.path, card=card, changed=creation.changed)

    def _select(self, members: Members) -> dict[str, Candidate]:
        candidates = []
        for name in sorted(name for found in members.values() for name in found):
            traits = self._index.traits.get(name)
            if traits is None:
                continue
            material = self._materials.of(name)
            candidates.append(
                candidate_of(
                    traits, material.metadata, material.scores, material.rubric_evaluations
                )
            )
        selection = select(candidates, self._options, self._index.kinship)
        self._left_out |= selection.left_out
        return {candidate.session_id: candidate for candidate in selection.selected}

    def _reuse(
        self, chosen: dict[str, Candidate], earlier: dict[str, list[LineRow]], sink: IO[bytes]
    ) -> set[str]:
        """Copy the lines that would not change; return the sessions whose lines would."""
        fresh = set(chosen)
        with self._lake.open_bytes(self._name) as standing:
            for name, candidate in chosen.items():
                rows = earlier.get(name, ())
                if standing is None or not rows or rows[0].made_from != self._key(candidate):
                    continue
                lines = []
                for row in rows:
                    standing.seek(row.offset)
                    lines.append(standing.read(row.size))
                if all(_digest(d) == row.digest for d, row in zip(lines, rows, strict=True)):
                    self._keep(name, rows, lines, sink)
                    fresh.discard(name)
        return fresh

    def _make(
        self,
        chosen: dict[str, Candidate],
        fresh: set[str],
        members: Members,
        earlier: dict[str, list[LineRow]],
        sink: IO[bytes],
    ) -> None:
        for week, found in sorted(members.items()):
            wanted = found & fresh
            if not wanted:
                continue
            for session in self._lake.read("raw_sessions", week, Session, only=("id", wanted)):
                self._make_lines(session, chosen[session.id], earlier.get(session.id, []), sink)

    def _make_lines(
        self, session: Session, candidate: Candidate, earlier: list[LineRow], sink: IO[bytes]
    ) -> None:
        material = self._materials.of(session.id)
        snapshot = material.snapshot.prompt_digest if material.snapshot else ""
        conversation = digest_of(LINE_FORMAT, session.digest, snapshot, self._options.max_tokens)
        known = [row.tokens for row in earlier if row.conversation == conversation]
        try:
            lines = self._lines.lines_of(session, material, candidate, known)
        except InputError as refusal:
            self._left_out[session.id] = refusal.reason
            return
        key = self._key(candidate)
        rows = [
            LineRow(
                session_id=session.id,
                window=line.metadata.window,
                split=line.metadata.split,
                status=line.metadata.status,
                quality=line.metadata.overall_quality,
                offset=0,
                size=len(line.data),
                opening=line.opening,
                messages=line.messages,
                tokens=line.tokens,
                digest=_digest(line.data),
                made_from=key,
                conversation=conversation,
            )
            for line in lines
        ]
        self._keep(session.id, rows, [line.data for line in lines], sink)

    def _keep(
        self, name: str, rows: Iterable[LineRow], lines: Iterable[bytes], sink: IO[bytes]
    ) -> None:
        kept = []
        for row, line in zip(rows, lines, strict=True):
            kept.append(replace(row, offset=sink.tell()))
            sink.write(line)
        self._made[name] = kept

    def _put_in_order(
        self, chosen: dict[str, Candidate], unordered: IO[bytes], sink: IO[bytes]
    ) -> tuple[list[LineRow], Tally, str]:
        tally = Tally()
        content = hashlib.sha256()
        rows: list[LineRow] = []
        for name in chosen:
            if name not in self._made:
                continue
            tally.add_session(self._index.traits[name].languages)
            for row in self._made[name]:
                unordered.seek(row.offset)
                line = unordered.read(row.size)
                rows.append(replace(row, offset=sink.tell()))
                sink.write(line)
                content.update(line)
                tally.add_line(
                    metadata_of_line(line), size=row.size, messages=row.messages, tokens=row.tokens
                )
        return rows, tally, content.hexdigest()

    def _key(self, candidate: Candidate) -> str:
        """Return the digest of all that a session's lines depend on."""
        return digest_of(
            LINE_FORMAT,
            self._options.max_tokens,
            _session_digest(self._index, candidate.session_id),
            self._digests[candidate.session_id],
            candidate.split,
            candidate.status,
        )


def _standing(lake: Lake, task: str, fingerprint: str, made_from: str) -> StoredTrainingSet | None:
    """Return what stands already, when it is made from the same and its files are whole."""
    stamp = lake.stamp(INDEX, f"{task}/{fingerprint}")
    if stamp is None or stamp.inputs != made_from:
        return None
    rows = list(lake.read(INDEX, f"{task}/{fingerprint}", TrainingSetRow))
    card = lake.read_bytes(training_path(task, fingerprint, ".card.md"))
    lines = lake.stamp(LINES, f"{task}/{fingerprint}")
    if len(rows) != 1 or card is None or lines is None or lines.inputs != rows[0].lines_digest:
        return None
    name = training_path(task, fingerprint)
    digests = lake.digest_of_file(name), hashlib.sha256(card).hexdigest()
    if digests != (rows[0].lines_digest, rows[0].card_digest):
        return None
    return StoredTrainingSet(row=rows[0], path=lake.path(name), card=card.decode(), changed=False)


def _session_digest(index: TrainingIndex, session_id: str) -> str:
    traits = index.traits.get(session_id)
    return traits.session_digest if traits else ""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
