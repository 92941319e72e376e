"""A training set: from what the lake holds of some sessions to the bytes of the file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from debrief.errors import InputError
from debrief.judging.model import JudgeEvaluation
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.tokens import count_tokens
from debrief.training.cards import CardFacts, training_card
from debrief.training.languages import languages_of
from debrief.training.model import SampleLine, TrainingFile
from debrief.training.samples import encode_line, sample_of, samples_of
from debrief.training.selection import Candidate, TrainingOptions, counted, select
from debrief.training.validation import validate_line
from debrief.training.windows import tokens_of

SECRET_FOUND = "the last gate still found a secret"
NO_VALID_LINE = "gives no valid line"

_Row = TypeVar("_Row", JudgeEvaluation, RubricEvaluation)


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
    base_commits: Mapping[str, str] | None = None,
    agreement: str = "",
    find_secrets: Callable[[bytes], Sequence[object]] | None = None,
) -> TrainingFile:
    """Build one training set; the same input in any order gives the same bytes.

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
        base_commits: commit that the work started from, by session id.
        agreement: how well judges and people agree, in words; empty when nobody labelled.
        find_secrets: the last gate; that of ``debrief.redaction`` by default.
    """
    options = options or TrainingOptions()
    find_secrets = find_secrets or _find_secrets()
    eval_fingerprint = fingerprint.rpartition("-")[2]
    unique = {session.id: session for session in sessions}
    by_scores = {row.session_id: row for row in sorted(scores, key=_scores_order)}
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
    selection = select(
        (
            Candidate(
                session=session,
                metadata=by_metadata.get(session.id),
                scores=by_scores.get(session.id),
                judgements=judged.get(session.id, ()),
                rubric_evaluations=rubrics.get(session.id, ()),
                snapshot=by_snapshot.get(session.id),
            )
            for session in unique.values()
        ),
        options,
    )
    left_out = dict(selection.left_out)
    lines: list[bytes] = []
    samples: list[SampleLine] = []
    languages: Counter[str] = Counter()
    tokens = 0
    for candidate in selection.selected:
        session_id = candidate.session.id
        try:
            sample = _sample(
                candidate, eval_fingerprint, eval_digest, (base_commits or {}).get(session_id, "")
            )
            windows = samples_of(sample, options.max_tokens) if options.max_tokens else (sample,)
        except InputError as refusal:
            left_out[session_id] = refusal.reason
            continue
        encoded = [encode_line(window) for window in windows]
        problems = [problem for line in encoded for problem in validate_line(line)]
        if any(map(find_secrets, encoded)):
            left_out[session_id] = SECRET_FOUND
        elif problems:
            left_out[session_id] = f"{NO_VALID_LINE}: {problems[0]}"
        else:
            lines += encoded
            samples += windows
            languages += languages_of(candidate.session)
            tokens += sum(tokens_of(window.messages, count_tokens) for window in windows)
    train = sum(sample.metadata.split == "train" for sample in samples)
    facts = CardFacts(
        task=task,
        fingerprint=fingerprint,
        options=options,
        considered=len(unique),
        samples=tuple(sample.metadata for sample in samples),
        size=sum(map(len, lines)),
        messages=sum(len(sample.messages) for sample in samples),
        tokens=tokens,
        languages=dict(languages),
        left_out=counted(left_out),
        agreement=agreement,
    )
    return TrainingFile(
        task=task,
        fingerprint=fingerprint,
        lines=b"".join(lines),
        card=training_card(facts),
        considered=len(unique),
        sessions=len(unique) - len(left_out),
        samples=len(samples),
        train=train,
        eval=len(samples) - train,
        tokens=tokens,
        left_out=facts.left_out,
    )


def _sample(
    candidate: Candidate, eval_fingerprint: str, eval_digest: str, base_commit: str
) -> SampleLine:
    if candidate.metadata is None or candidate.scores is None:
        raise InputError(f"session {candidate.session.id}", "no metadata or no scores")
    return sample_of(
        candidate.session,
        metadata=candidate.metadata,
        scores=candidate.scores,
        judgements=candidate.judgements,
        rubric_evaluations=candidate.rubric_evaluations,
        snapshot=candidate.snapshot,
        split=candidate.split,
        base_commit=base_commit,
        eval_fingerprint=eval_fingerprint,
        eval_digest=eval_digest,
    )


def _scores_order(row: SessionScores) -> tuple[bool, str]:
    """Of a session that several scorers scored, the last row in this order counts."""
    return row.status == "ok", row.scoring_fingerprint


def _by_session(rows: Iterable[_Row]) -> dict[str, tuple[_Row, ...]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[row.session_id].append(row)
    return {session_id: tuple(group) for session_id, group in found.items()}


def _find_secrets() -> Callable[[bytes], Sequence[object]]:
    from debrief.redaction import contains_secret

    return contains_secret
