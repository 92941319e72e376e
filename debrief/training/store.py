"""Write the training set of each pair from the tables of the lake.

Sessions stream through week by week and finished lines wait in a scratch file until they are put
in order, so memory does not grow with their number. A set whose inputs have not changed is left
alone; any other is made anew.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO, Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.outcomes.store import Success, success_labels
from debrief.redaction.gate import gate_digest
from debrief.redaction.personal import holds_personal_data
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import in_order
from debrief.sessions.model import Session
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import SessionSignals
from debrief.snapshots.fingerprint import eval_digest
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.training.cards import SetCounts, training_card
from debrief.training.given import given_to
from debrief.training.held import HELD, Decision, HeldToken, decisions, held_for, held_tokens
from debrief.training.kinship import Kinship, read_kinship
from debrief.training.model import (
    INDEX,
    LINES,
    Exclusion,
    LineRow,
    NotTrained,
    SampleMetadata,
    TrainingSetRow,
    not_trained_in,
    training_path,
)
from debrief.training.options import TrainingOptions
from debrief.training.samples import checked_line, sample_of, subagent_samples
from debrief.training.selection import (
    Candidate,
    Members,
    SelectionResult,
    by_verdict,
    candidate_of,
    counted,
    resolve_unreviewed,
    select,
    signal_against,
)
from debrief.training.windows import line_row, samples_of

_TABLES: dict[str, type[Any]] = {
    "judge_evaluations": JudgeEvaluation,
    "prompt_snapshots": PromptSnapshotRow,
    "rubric_evaluations": RubricEvaluation,
    "session_metadata": SessionMetadataRow,
    "session_scores": SessionScores,
    SIGNALS: SessionSignals,
}
_ENCODER = msgspec.msgpack.Encoder()


class Material(Struct, frozen=True, kw_only=True):
    """What the stages before training filed of one session."""

    digest: str
    """SHA-256 of all of it, in hex."""
    metadata: SessionMetadataRow | None = None
    scores: SessionScores | None = None
    """Of the review that counts; None where no review stands."""
    signals: SessionSignals | None = None
    judgements: tuple[JudgeEvaluation, ...] = ()
    rubric_evaluations: tuple[RubricEvaluation, ...] = ()
    snapshot: PromptSnapshotRow | None = None
    outcome: Success | None = None


class Materials(Struct, frozen=True, kw_only=True):
    """What a lake holds of a pair's sessions, beside the sessions themselves."""

    eval_fingerprint: str
    eval_digest: str
    by_session: dict[str, Material]


def read_materials(
    lake: Lake, fingerprint: str, members: Members, outcomes: Mapping[str, Success]
) -> Materials:
    """Read what the stages before filed of a pair's sessions.

    Of several reviews that by a model of the pair's judges counts, else another.

    Args:
        lake: where the tables are.
        fingerprint: the pair's fingerprints.
        members: its session ids by week.
        outcomes: which sessions succeeded, where a label says so.
    """
    eval_fingerprint = fingerprint.rpartition("-")[2]
    judges = list(lake.read(JUDGE_SETS, eval_fingerprint, Judge))
    digest = eval_digest(judges) if judges else ""
    rows: dict[str, dict[str, list[Any]]] = {
        session_id: {name: [] for name in _TABLES} for ids in members.values() for session_id in ids
    }
    for name, row_type in _TABLES.items():
        for week, ids in members.items():
            for row in lake.read(name, week, row_type, only=("session_id", ids)):
                if name != "judge_evaluations" or row.eval_fingerprint == eval_fingerprint:
                    rows[row.session_id][name].append(row)
    models = {row.model for filed in rows.values() for row in filed["judge_evaluations"]}
    for filed in rows.values():
        stands = (row for row in filed["session_scores"] if row.status == "ok")
        filed["session_scores"] = in_order(stands, models)[:1]
    return Materials(
        eval_fingerprint=eval_fingerprint,
        eval_digest=digest,
        by_session={
            name: _material(digest, filed, outcomes.get(name)) for name, filed in rows.items()
        },
    )


def _material(eval_digest: str, tables: dict[str, list[Any]], outcome: Success | None) -> Material:
    signals: SessionSignals | None = next(iter(tables.pop(SIGNALS)), None)
    seen = signals and (signals.work, signals.ending, signal_against(signals))
    filed = {name: sorted(rows, key=_ENCODER.encode) for name, rows in tables.items()}
    judgements = {row.judge: row for row in filed["judge_evaluations"]}
    rubrics = {(row.score_name, row.rubric_key): row for row in filed["rubric_evaluations"]}
    return Material(
        digest=digest_of(eval_digest, filed, outcome, seen),
        metadata=next(reversed(filed["session_metadata"]), None),
        scores=next(iter(filed["session_scores"]), None),
        signals=signals,
        judgements=tuple(judgements.values()),
        rubric_evaluations=tuple(rubrics.values()),
        snapshot=next(reversed(filed["prompt_snapshots"]), None),
        outcome=outcome,
    )


LINE_FORMAT = "19"
"""Raised when the same sessions give other lines: every training set is written again."""


class StoredTrainingSet(Struct, frozen=True, kw_only=True):
    """What storing a pair's training set came to."""

    row: TrainingSetRow
    path: str
    card: str
    changed: bool
    """False when the same lines had been there before."""


def training_set_of(lake: Lake, task: str, fingerprint: str) -> TrainingSetRow | None:
    """Return what is known of a pair's stored training set.

    None when there is none, and when an earlier version made it: its lines have another form, or
    have passed another last gate.
    """
    try:
        row = next(lake.read(INDEX, f"{task}/{fingerprint}", TrainingSetRow), None)
    except msgspec.ValidationError:  # as rows of an earlier version may be
        return None
    is_ours = row is not None and (row.line_format, row.gate) == (LINE_FORMAT, gate_digest())
    return row if is_ours else None


def store_training_set(
    lake: Lake,
    task: str,
    fingerprint: str,
    members: Members,
    options: TrainingOptions,
    *,
    kinship: Kinship | None = None,
    outcomes: Mapping[str, Success] | None = None,
    certificates: Mapping[str, str] = {},
    again: bool = False,
) -> StoredTrainingSet:
    """Bring one pair's training set and its card up to date; leave them alone when they are.

    Without a line neither is there: why, the row of the pair says.

    Args:
        lake: where the tables are and the files go.
        task: the pair's task.
        fingerprint: the pair's fingerprints.
        members: its session ids by week.
        options: what was chosen at launch.
        kinship: of the lake, where several sets are stored in a row; read when None.
        outcomes: of the lake, likewise.
        certificates: by reviewer, how well it agrees with people, in a sentence.
        again: make every line again, though nothing that it depends on has changed.
    """
    kinship = kinship or read_kinship(lake)
    outcomes = success_labels(lake) if outcomes is None else outcomes
    options = resolve_unreviewed(lake, options)
    materials = read_materials(lake, fingerprint, members, outcomes)
    partition, decided = f"{task}/{fingerprint}", decisions(lake)
    inputs = _inputs(
        materials, certificates, options, kinship, _decided_here(lake, partition, decided)
    )
    stored = None if again else _stored_set(lake, task, fingerprint, inputs)
    if stored is not None:
        return stored
    selection = select(candidates_in(materials, kinship), options, kinship)
    counts, content = SetCounts(), hashlib.sha256()
    rows: list[LineRow] = []
    name, card_name = (training_path(task, fingerprint, end) for end in (".jsonl", ".card.md"))
    with tempfile.TemporaryFile() as scratch, lake.create(name) as creation:
        made = make_lines(lake, members, materials, selection, options, counts, scratch)
        held = held_tokens(lines_in(scratch, made), decided)
        stretches: dict[str, list[LineRow]] = {}
        for session_id, lines in made.items():
            if kind := held_for(held.get(session_id, ()), decided):
                selection.left_out[session_id] = Exclusion(kind)
                continue
            stretches[session_id] = [row for _, _, row in lines]
            for counted_line in lines:
                counts.add_line(*counted_line)
        for candidate in selection.selected:
            if candidate.session_id in stretches:
                for item in candidate.traits.languages:
                    counts.languages[item.language] += item.lines
            for row in stretches.get(candidate.session_id, ()):
                scratch.seek(row.offset)
                line = scratch.read(row.size)
                counts.personal += holds_personal_data(line.decode())
                rows.append(replace(row, offset=creation.file.tell()))
                creation.file.write(line)
                content.update(line)
        creation.keep = bool(rows)
    considered, left_out = len(stretches) + len(selection.left_out), counted(selection.left_out)
    card = ""
    if rows:
        card = training_card(task, fingerprint, options, considered, counts, left_out, certificates)
        lake.write_bytes(card_name, card.encode())
    else:
        lake.remove(name)
        lake.remove(card_name)
    lake.write(LINES, partition, rows, LineRow, content.hexdigest)
    waiting = [held_token for name in sorted(held) for held_token in held[name]]
    if waiting or lake.stamp(HELD, partition):
        lake.write(HELD, partition, waiting, HeldToken)
    inputs = _inputs(
        materials, certificates, options, kinship, _decided_here(lake, partition, decided)
    )
    of_set = TrainingSetRow(
        task=task,
        fingerprint=fingerprint,
        considered=considered,
        left_out=left_out,
        verdicts=options.verdicts,
        short=sum(row.count for row in by_verdict(left_out)),
        unreviewed=len({row.session_id for row in counts.rows if not row.verdict}),
        lines_digest=content.hexdigest(),
        card_digest=hashlib.sha256(card.encode()).hexdigest(),
        gate=gate_digest(),
        line_format=LINE_FORMAT,
        sessions=len(stretches),
        samples=len(counts.rows),
        train=len(counts.train),
        eval=len(counts.rows) - len(counts.train),
        tokens=sum(row.tokens for row in counts.rows),
    )
    lake.write(INDEX, f"{task}/{fingerprint}", [of_set], TrainingSetRow, lambda: inputs)
    return StoredTrainingSet(row=of_set, path=creation.path, card=card, changed=creation.changed)


def candidates_in(materials: Materials, kinship: Kinship) -> list[Candidate]:
    """Return what the sessions of a pair are chosen by."""
    traits = kinship.traits
    return [
        candidate_of(
            traits[name],
            made.metadata,
            made.scores,
            made.rubric_evaluations,
            outcome=made.outcome,
            judgements=made.judgements,
            signals=made.signals,
        )
        for name, made in materials.by_session.items()
        if name in traits
    ]


def is_current(
    lake: Lake,
    task: str,
    fingerprint: str,
    members: Members,
    options: TrainingOptions,
    kinship: Kinship,
    outcomes: Mapping[str, Success],
    certificates: Mapping[str, str] = {},
) -> bool:
    """Return whether ``store_training_set`` would leave a pair's files alone."""
    if lake.stamp(INDEX, f"{task}/{fingerprint}") is None:
        return False
    materials = read_materials(lake, fingerprint, members, outcomes)
    options = resolve_unreviewed(lake, options)
    decided = _decided_here(lake, f"{task}/{fingerprint}", decisions(lake))
    inputs = _inputs(materials, certificates, options, kinship, decided)
    return _stored_set(lake, task, fingerprint, inputs) is not None


def _decided_here(
    lake: Lake, partition: str, decided: Mapping[str, Decision]
) -> list[tuple[str, Decision | None]]:
    """Return what was decided on the tokens that a set was held back for when it was made."""
    held = {row.digest for row in lake.read(HELD, partition, HeldToken)}
    return [(digest, decided.get(digest)) for digest in sorted(held)]


def _inputs(
    materials: Materials,
    certificates: Mapping[str, str],
    options: TrainingOptions,
    kinship: Kinship,
    decided: list[tuple[str, Decision | None]],
) -> str:
    traits = kinship.traits
    return digest_of(
        LINE_FORMAT,
        gate_digest(),
        options.model_dump(mode="json"),
        sorted(certificates.items()),
        decided,
        [
            (name, name in traits and traits[name].session_digest, made.digest, kinship.of(name))
            for name, made in sorted(materials.by_session.items())
        ],
    )


MadeLines: TypeAlias = dict[str, list[tuple[SampleMetadata, tuple[NotTrained, ...], LineRow]]]


def make_lines(
    lake: Lake,
    members: Members,
    materials: Materials,
    selection: SelectionResult,
    options: TrainingOptions,
    counts: SetCounts,
    scratch: IO[bytes],
) -> MadeLines:
    """Write the lines of the selected sessions to a scratch file, a week at a time.

    Returns:
        By session, each line's metadata, what is not trained on, and its row, whose offset is that
        in the scratch file.
    """
    selected = {candidate.session_id: candidate for candidate in selection.selected}
    rows: MadeLines = {}
    for week, ids in sorted(members.items()):
        chosen = ids & selected.keys()
        for session in lake.read("raw_sessions", week, Session, only=("id", chosen)):
            material, candidate = materials.by_session[session.id], selected[session.id]
            assert material.metadata is not None, "without it, no session is selected"
            given = given_to(session, material.snapshot, options.system_prompt)
            try:
                sample = sample_of(
                    session,
                    metadata=material.metadata,
                    scores=material.scores,
                    signals=material.signals,
                    judgements=material.judgements,
                    rubric_evaluations=material.rubric_evaluations,
                    snapshot=material.snapshot,
                    given=given,
                    outcome=material.outcome,
                    split=candidate.split,
                    status=candidate.status,
                    eval_fingerprint=materials.eval_fingerprint,
                    eval_digest=materials.eval_digest,
                )
                samples = (
                    samples_of(sample, options.max_tokens, given.reminder)
                    if options.max_tokens
                    else (sample,)
                )
                made = [(sample, checked_line(sample)) for sample in samples]
            except InputError as refusal:
                selection.left_out[session.id] = Exclusion("no_line", refusal.reason)
                continue
            for sample_line in subagent_samples(
                session, sample, options.max_tokens, options.system_prompt
            ):
                try:
                    made.append((sample_line, checked_line(sample_line)))
                except InputError as refusal:
                    counts.subagents_left_out[refusal.reason] += 1
            rows[session.id] = []
            for each, line in made:
                row = line_row(each, line, scratch.tell())
                row = replace(row, undecided=session.unsure_redactions)
                rows[session.id].append((each.metadata, not_trained_in(each.messages), row))
                scratch.write(line)
    return rows


def lines_in(scratch: IO[bytes], made: MadeLines) -> Iterator[tuple[str, bytes]]:
    """Yield the lines that ``make_lines`` wrote, each with its session's id."""
    for session_id, lines in made.items():
        for *_, row in lines:
            scratch.seek(row.offset)
            yield session_id, scratch.read(row.size)


def _stored_set(lake: Lake, task: str, fingerprint: str, inputs: str) -> StoredTrainingSet | None:
    """Return the stored set if its inputs digest and file digests match."""
    partition, name = f"{task}/{fingerprint}", training_path(task, fingerprint)
    stamp, lines = lake.stamp(INDEX, partition), lake.stamp(LINES, partition)
    if stamp is None or stamp.inputs != inputs or lines is None:
        return None
    card = lake.read_bytes(training_path(task, fingerprint, ".card.md")) or b""
    row = training_set_of(lake, task, fingerprint)
    digests = lines.inputs, lake.digest_of_file(name), hashlib.sha256(card).hexdigest()
    if row is None:
        return None
    of_file = row.lines_digest if row.samples else None
    if digests != (row.lines_digest, of_file, row.card_digest):
        return None
    return StoredTrainingSet(row=row, path=lake.path(name), card=card.decode(), changed=False)
