"""The training stage: from the tables of the lake to the files of a pair.

Sessions stream through week by week and finished lines wait in a scratch file until they are put
in order, so memory does not grow with their number. A set whose inputs have not changed is left
alone; any other is made anew.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.outcomes.store import Success, success_labels
from debrief.redaction.gate import gate_digest, refuse_secrets
from debrief.rubrics.agreement_report import agreement_text
from debrief.sessions.model import Session
from debrief.tokens import count_tokens
from debrief.training.cards import SetCounts, training_card
from debrief.training.contexts import Lengths, lengths_of
from debrief.training.conversations import NO_PROMPT, encode
from debrief.training.given import given_to, without_reminder
from debrief.training.kinship import Kinship, read_kinship
from debrief.training.materials import Materials, read_materials
from debrief.training.model import SampleLine, SkippedSessions, Split, Status
from debrief.training.options import TrainingOptions
from debrief.training.samples import checked_line, sample_of, weight_by_success
from debrief.training.selection import (
    Members,
    SelectionResult,
    below_bar,
    candidate_of,
    counted,
    select,
)
from debrief.training.subagents import subagent_samples
from debrief.training.windows import samples_of, tokens_of

INDEX, LINES = "training_index", "training_lines"
LINE_FORMAT = "13"
"""Raised when the same sessions give other lines: every training set is written again."""


_COUNTED = ("sessions", "samples", "train", "eval", "tokens")


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
    bar: str = ""
    """What the bar left out, in words."""
    below_bar: int = 0
    """Sessions that it left out."""
    lines_digest: str
    """SHA-256 of the JSONL, in hex."""
    card_digest: str
    gate: str = ""
    """Digest of the last gate's table, which every line has passed; exports refuse a set that has
    passed another, and do not search again."""


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
    """Digest of its repository and of the person's first words, whatever their white space; that of
    the line if nobody knows these."""
    messages: int
    tokens: int
    lengths: tuple[Lengths, ...] = ()
    """Without the model's thinking, and with it."""
    parent_session: str = ""
    """As in the line's metadata."""
    undecided: int = 0
    """Redactions of its session that nobody has decided on."""
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
    kinship: Kinship | None = None,
    outcomes: Mapping[str, Success] | None = None,
    again: bool = False,
) -> StoredTrainingSet:
    """Bring one pair's training set and its card up to date; leave them alone when they are.

    Args:
        lake: where the tables are and the files go.
        task: the pair's task.
        fingerprint: the pair's fingerprints.
        members: its session ids by week.
        options: what was chosen at launch.
        kinship: of the lake, where several sets are stored in a row; read when None.
        outcomes: of the lake, likewise.
        again: make every line again, though nothing that it depends on has changed.
    """
    kinship = kinship or read_kinship(lake)
    traits = kinship.traits
    outcomes = success_labels(lake) if outcomes is None else outcomes
    materials = read_materials(lake, fingerprint, members, outcomes)
    agreement = agreement_text(lake, materials.judged_by)
    inputs = _inputs(materials, agreement, options, kinship)
    stored = None if again else _stored_set(lake, task, fingerprint, inputs)
    if stored is not None:
        return stored
    candidates = [
        candidate_of(
            traits[name],
            made.metadata,
            made.scores,
            made.rubric_evaluations,
            made.outcome,
            made.judgements,
        )
        for name, made in materials.by_session.items()
        if name in traits
    ]
    selection = select(candidates, options, kinship)
    counts, content = SetCounts(), hashlib.sha256()
    rows: list[LineRow] = []
    with (
        tempfile.TemporaryFile() as scratch,
        lake.create(training_path(task, fingerprint)) as creation,
    ):
        stretches = _make_lines(lake, members, materials, selection, options, counts, scratch)
        for candidate in selection.selected:
            if candidate.session_id in stretches:
                counts.add_session(candidate.traits.languages)
            for row in stretches.get(candidate.session_id, ()):
                scratch.seek(row.offset)
                line = scratch.read(row.size)
                rows.append(replace(row, offset=creation.file.tell()))
                creation.file.write(line)
                content.update(line)
    considered, left_out = len(materials.by_session), counted(selection.left_out)
    card = training_card(task, fingerprint, options, considered, counts, left_out, agreement)
    lake.write_bytes(training_path(task, fingerprint, ".card.md"), card.encode())
    lake.write(LINES, f"{task}/{fingerprint}", rows, LineRow, content.hexdigest)
    of_set = TrainingSetRow(
        task=task,
        fingerprint=fingerprint,
        considered=considered,
        left_out=left_out,
        bar=options.bar,
        below_bar=sum(row.count for row in below_bar(left_out)),
        lines_digest=content.hexdigest(),
        card_digest=_digest(card.encode()),
        gate=gate_digest(),
        **{name: getattr(counts, name) for name in _COUNTED},
    )
    lake.write(INDEX, f"{task}/{fingerprint}", [of_set], TrainingSetRow, lambda: inputs)
    return StoredTrainingSet(row=of_set, path=creation.path, card=card, changed=creation.changed)


def is_current(
    lake: Lake,
    task: str,
    fingerprint: str,
    members: Members,
    options: TrainingOptions,
    kinship: Kinship,
    outcomes: Mapping[str, Success],
) -> bool:
    """Return whether ``store_training_set`` would leave a pair's files alone."""
    if lake.stamp(INDEX, f"{task}/{fingerprint}") is None:
        return False
    materials = read_materials(lake, fingerprint, members, outcomes)
    inputs = _inputs(materials, agreement_text(lake, materials.judged_by), options, kinship)
    return _stored_set(lake, task, fingerprint, inputs) is not None


def _inputs(
    materials: Materials, agreement: str, options: TrainingOptions, kinship: Kinship
) -> str:
    traits = kinship.traits
    return digest_of(
        LINE_FORMAT,
        gate_digest(),
        options.model_dump(mode="json"),
        agreement,
        [
            (name, name in traits and traits[name].session_digest, made.digest, kinship.of(name))
            for name, made in sorted(materials.by_session.items())
        ],
    )


def _make_lines(
    lake: Lake,
    members: Members,
    materials: Materials,
    selection: SelectionResult,
    options: TrainingOptions,
    counts: SetCounts,
    scratch: IO[bytes],
) -> dict[str, list[LineRow]]:
    """Write the lines of the selected sessions to a scratch file, a week at a time.

    Returns:
        Rows by session, offsets being those of the scratch file.
    """
    selected = {candidate.session_id: candidate for candidate in selection.selected}
    rows: dict[str, list[LineRow]] = {}
    for week, ids in sorted(members.items()):
        chosen = ids & selected.keys()
        for session in lake.read("raw_sessions", week, Session, only=("id", chosen)):
            material, candidate = materials.by_session[session.id], selected[session.id]
            assert material.metadata is not None
            assert material.scores is not None, "without either, no session is selected"
            given = given_to(session, material.snapshot, options.system_prompt)
            try:
                sample = sample_of(
                    session,
                    metadata=material.metadata,
                    scores=material.scores,
                    judgements=material.judgements,
                    rubric_evaluations=material.rubric_evaluations,
                    snapshot=material.snapshot,
                    given=given,
                    outcome=material.outcome,
                    split=candidate.split,
                    status=candidate.status,
                    eval_fingerprint=materials.eval_fingerprint,
                    eval_digest=materials.eval_digest,
                    sample_weight=weight_by_success(material.scores, material.outcome)
                    if options.sample_weight == "success"
                    else 1.0,
                )
                samples = (
                    samples_of(sample, options.max_tokens, given.reminder)
                    if options.max_tokens
                    else (sample,)
                )
                made = [(each, _searched_line(each)) for each in samples]
            except InputError as refusal:
                selection.left_out[session.id] = refusal.reason
                continue
            for each in subagent_samples(
                session, sample, options.max_tokens, options.system_prompt
            ):
                try:
                    made.append((each, _searched_line(each)))
                except InputError as refusal:
                    counts.subagents_left_out[refusal.reason] += 1
            rows[session.id] = []
            for each, line in made:
                row = line_row(each, line, scratch.tell())
                row = replace(row, undecided=session.unsure_redactions)
                rows[session.id].append(row)
                scratch.write(line)
                counts.add_line(each.metadata, row.size, row.messages, row.tokens)
    return rows


def _searched_line(sample: SampleLine) -> bytes:
    """Return a line that is valid and has passed the last gate; raise InputError for any other."""
    line = checked_line(sample)
    refuse_secrets(f"session {sample.metadata.session_id}", line)
    return line


def line_row(sample: SampleLine, line: bytes, offset: int) -> LineRow:
    """Return the row of a line that stands at an offset of a file."""
    metadata, count = sample.metadata, cache(count_tokens)
    return LineRow(
        session_id=metadata.session_id,
        parent_session=metadata.parent_session,
        window=metadata.window,
        split=metadata.split,
        status=metadata.status,
        quality=metadata.overall_quality,
        offset=offset,
        size=len(line),
        opening=opening_of(sample, line),
        messages=len(sample.messages),
        tokens=tokens_of(sample.messages, count),
        lengths=lengths_of(sample.messages, encode(sample.tools).decode(), count),
        digest=_digest(line),
    )


def _stored_set(lake: Lake, task: str, fingerprint: str, inputs: str) -> StoredTrainingSet | None:
    """Return the stored set if its inputs digest and file digests match."""
    partition, name = f"{task}/{fingerprint}", training_path(task, fingerprint)
    stamp, lines = lake.stamp(INDEX, partition), lake.stamp(LINES, partition)
    if stamp is None or stamp.inputs != inputs or lines is None:
        return None
    card = lake.read_bytes(training_path(task, fingerprint, ".card.md")) or b""
    row = training_set_of(lake, task, fingerprint)
    digests = lines.inputs, lake.digest_of_file(name), _digest(card)
    if row is None or digests != (row.lines_digest, row.lines_digest, row.card_digest):
        return None
    return StoredTrainingSet(row=row, path=lake.path(name), card=card.decode(), changed=False)


_STAND_IN = re.compile(re.escape(NO_PROMPT) + r"|\(\d+ images?\)")


def opening_of(sample: SampleLine, line: bytes) -> str:
    """Return the digest of a line's repository and the person's first words; of the line if these
    are not known."""
    prompt = next(one.content for one in sample.messages if one.role == "user")
    words = without_reminder(prompt)
    if sample.metadata.window > 1 or _STAND_IN.match(words):
        return _digest(line)
    return digest_of(sample.metadata.repository, words.split())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
