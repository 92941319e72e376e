"""From what the lake holds of a session to the finished lines of a training set."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.tokens import count_tokens
from debrief.training.cards import CardFacts, training_card
from debrief.training.conversations import NO_PROMPT
from debrief.training.formats import encode
from debrief.training.kinship import Kinship
from debrief.training.model import SampleLine, SampleMetadata, TrainingFile
from debrief.training.samples import encode_line, sample_of, samples_of
from debrief.training.selection import Candidate, TrainingOptions, candidate_of, counted, select
from debrief.training.tallies import Tally
from debrief.training.traits import traits_of
from debrief.training.validation import validate_line
from debrief.training.windows import tokens_of

SECRET_FOUND = "the last gate still found a secret"
NO_VALID_LINE = "gives no valid line"

FindSecrets = Callable[[bytes], Sequence[object]]

_Row = TypeVar("_Row", JudgeEvaluation, RubricEvaluation)


class Material(Struct, frozen=True, kw_only=True):
    """What the stages before filed of one session."""

    metadata: SessionMetadataRow | None = None
    scores: SessionScores | None = None
    judgements: tuple[JudgeEvaluation, ...] = ()
    rubric_evaluations: tuple[RubricEvaluation, ...] = ()
    snapshot: PromptSnapshotRow | None = None


class MadeLine(Struct, frozen=True, kw_only=True):
    """A finished line, and what is counted of it."""

    data: bytes
    metadata: SampleMetadata
    opening: str
    """Digest of its system message and first prompt; that of the line if nobody knows these."""
    messages: int
    tokens: int
    """Of the messages' texts and calls."""


class LineMaker:
    """Makes the lines of one training set, session by session.

    Args:
        eval_fingerprint: of the judges.
        eval_digest: the whole digest behind it; empty when not known.
        max_tokens: sessions with more are split into windows; None: none is.
        find_secrets: the last gate; that of ``debrief.redaction`` by default.
    """

    def __init__(
        self,
        eval_fingerprint: str,
        *,
        eval_digest: str = "",
        max_tokens: int | None = None,
        find_secrets: FindSecrets | None = None,
    ) -> None:
        self._eval_fingerprint = eval_fingerprint
        self._eval_digest = eval_digest
        self._max_tokens = max_tokens
        self._find_secrets = find_secrets or _find_secrets()
        self._counter = ThreadPoolExecutor(max_workers=1)

    def lines_of(
        self,
        session: Session,
        material: Material,
        chosen: Candidate,
        known_tokens: Sequence[int] = (),
    ) -> list[MadeLine]:
        """Return a session's lines, validated and through the last gate.

        Args:
            session: normalised and redacted.
            material: what else is known of it.
            chosen: its side and status.
            known_tokens: a count for each line where the same conversation passed the gate
                before: it is neither counted nor searched again, only what stands beside it is.

        Raises:
            InputError: it gives no line, a line that is not valid, or one that holds a secret.
        """
        if material.metadata is None or material.scores is None:
            raise InputError(f"session {session.id}", "no metadata or no scores")
        sample = sample_of(
            session,
            metadata=material.metadata,
            scores=material.scores,
            judgements=material.judgements,
            rubric_evaluations=material.rubric_evaluations,
            snapshot=material.snapshot,
            split=chosen.split,
            status=chosen.status,
            eval_fingerprint=self._eval_fingerprint,
            eval_digest=self._eval_digest,
        )
        windows = samples_of(sample, self._max_tokens) if self._max_tokens else (sample,)
        known = len(known_tokens) == len(windows)
        # The tokeniser leaves the interpreter to the gate.
        counting = None if known else self._counter.submit(_tokens_of_each, windows)
        lines = [self._checked(window, known) for window in windows]
        return [
            MadeLine(
                data=line,
                metadata=window.metadata,
                opening=_opening(window, line),
                messages=len(window.messages),
                tokens=tokens,
            )
            for window, line, tokens in zip(
                windows, lines, counting.result() if counting else known_tokens, strict=True
            )
        ]

    def _checked(self, sample: SampleLine, known: bool) -> bytes:
        data = encode_line(sample)
        culprit = f"session {sample.metadata.session_id}"
        if self._find_secrets(encode(sample.metadata) if known else data):
            raise InputError(culprit, SECRET_FOUND)
        problems = validate_line(data)
        if problems:
            raise InputError(culprit, f"{NO_VALID_LINE}: {problems[0]}")
        return data


_STAND_IN = re.compile(re.escape(NO_PROMPT) + r"|\(\d+ images?\)")


def _opening(sample: SampleLine, line: bytes) -> str:
    number, prompt = next(x for x in enumerate(sample.messages) if x[1].role == "user")
    if _STAND_IN.match(prompt.content):
        return hashlib.sha256(line).hexdigest()
    start = encode({"messages": sample.messages[: number + 1]})
    return hashlib.sha256(start.removesuffix(b"}]}")).hexdigest()


def _tokens_of_each(samples: Iterable[SampleLine]) -> list[int]:
    return [tokens_of(sample.messages, count_tokens) for sample in samples]


class _MetadataOnly(Struct):
    metadata: SampleMetadata


_METADATA = msgspec.json.Decoder(_MetadataOnly)


def metadata_of_line(line: bytes) -> SampleMetadata:
    """Return a line's metadata without decoding its messages.

    Raises:
        msgspec.DecodeError: it is no line of ours.
    """
    return _METADATA.decode(line).metadata


def best_scores(rows: Iterable[SessionScores]) -> SessionScores | None:
    """Return the row that counts of a session that several scorers scored; None without any."""
    ordered = sorted(rows, key=lambda row: (row.status == "ok", row.scoring_fingerprint))
    return ordered[-1] if ordered else None


def build_training_set(
    task: str,
    fingerprint: str,
    sessions: Iterable[Session],
    scores: Iterable[SessionScores],
    judgements: Iterable[JudgeEvaluation] = (),
    rubric_evaluations: Iterable[RubricEvaluation] = (),
    snapshots: Iterable[PromptSnapshotRow] = (),
    metadata: Iterable[SessionMetadataRow] = (),
    options: TrainingOptions | None = None,
    *,
    eval_digest: str = "",
    agreement: str = "",
    find_secrets: FindSecrets | None = None,
) -> TrainingFile:
    """Build one training set of sessions in hand; the same input in any order, the same bytes.

    Args:
        task: a slug.
        fingerprint: ``<prompt fingerprint>-<eval fingerprint>``.
        sessions: those of this task and fingerprint; each ends up in the file or left out with a
            reason. A session given twice counts once.
        scores: rows of these sessions; rows of others are passed over, here and below, and a row
            given twice counts once.
        judgements: only those with this eval fingerprint are taken.
        rubric_evaluations: by rubric.
        snapshots: prompts in force.
        metadata: circumstances; a session without is left out.
        options: what was chosen at launch.
        eval_digest: the whole digest behind the eval fingerprint.
        agreement: how well judges and people agree, in words; empty when nobody labelled.
        find_secrets: the last gate; that of ``debrief.redaction`` by default.
    """
    options = options or TrainingOptions()
    eval_fingerprint = fingerprint.rpartition("-")[2]
    unique = {session.id: session for session in sessions}
    scored: dict[str, list[SessionScores]] = defaultdict(list)
    for row in scores:
        scored[row.session_id].append(row)
    by_snapshot = {row.session_id: row for row in snapshots}
    by_metadata = {row.session_id: row for row in metadata}
    judged = _by_session(
        {
            (row.session_id, row.judge): row
            for row in judgements
            if row.eval_fingerprint == eval_fingerprint
        }.values()
    )
    rubrics = _by_session(
        {
            (row.session_id, row.score_name, row.rubric_key): row for row in rubric_evaluations
        }.values()
    )
    materials = {
        name: Material(
            metadata=by_metadata.get(name),
            scores=best_scores(scored.get(name, ())),
            judgements=judged.get(name, ()),
            rubric_evaluations=rubrics.get(name, ()),
            snapshot=by_snapshot.get(name),
        )
        for name in unique
    }
    traits = {name: traits_of(session) for name, session in unique.items()}
    selection = select(
        (
            candidate_of(traits[name], made.metadata, made.scores, made.rubric_evaluations)
            for name, made in materials.items()
        ),
        options,
        Kinship(traits.values()),
    )
    maker = LineMaker(
        eval_fingerprint,
        eval_digest=eval_digest,
        max_tokens=options.max_tokens,
        find_secrets=find_secrets,
    )
    left_out = dict(selection.left_out)
    lines: list[bytes] = []
    tally = Tally()
    for chosen in selection.selected:
        name = chosen.session_id
        try:
            made_lines = maker.lines_of(unique[name], materials[name], chosen)
        except InputError as refusal:
            left_out[name] = refusal.reason
            continue
        tally.add_session(traits[name].languages)
        for line in made_lines:
            lines.append(line.data)
            tally.add_line(
                line.metadata, size=len(line.data), messages=line.messages, tokens=line.tokens
            )
    facts = CardFacts(
        task=task,
        fingerprint=fingerprint,
        options=options,
        considered=len(unique),
        tally=tally,
        left_out=counted(left_out),
        agreement=agreement,
    )
    return TrainingFile(
        task=task,
        fingerprint=fingerprint,
        lines=b"".join(lines),
        card=training_card(facts),
        considered=len(unique),
        sessions=tally.sessions,
        samples=tally.samples,
        train=tally.train,
        eval=tally.eval,
        tokens=tally.tokens,
        left_out=facts.left_out,
    )


def _by_session(rows: Iterable[_Row]) -> dict[str, tuple[_Row, ...]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[row.session_id].append(row)
    return {session_id: tuple(group) for session_id, group in found.items()}


def _find_secrets() -> FindSecrets:
    from debrief.redaction import contains_secret

    return contains_secret
