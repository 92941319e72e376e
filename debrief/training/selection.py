"""Which sessions become samples, and why the others do not.

Every session that is considered ends up selected or left out for exactly one reason, the first
that applies in the order of this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from debrief.judging.model import JudgeEvaluation
from debrief.offline.checks import check_of
from debrief.offline.commands import shell_command, simple_commands
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow
from debrief.training.model import LeftOut, Split
from debrief.training.samples import model_of, repository_of
from debrief.training.similarity import DUPLICATE, Relatives, sketch_of
from debrief.training.splitting import EVAL_SHARE, side_of

NO_METADATA = "no metadata"
NOT_SCORED = "not scored"
NO_ANSWER = "no answer of the model"
NO_CHANGE = "nothing was changed"
NO_VALIDATION = "no validation command ran"
UNSURE = "holds redactions that a person should look at first"
OTHER_TOOL = "another tool"
OTHER_MODEL = "another model"
OUT_OF_DATES = "outside the dates"
NEAR_DUPLICATE = "near-duplicate of an earlier session"
ACROSS = "related to a session on the other side of the split"


class TrainingOptions(BaseModel):
    """What is chosen at launch. The default takes every session that can be learned from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_overall_quality: float = Field(default=0.0, ge=0, le=1)
    require_change: bool = False
    """Keep only sessions that added or removed a line."""
    require_validation: bool = False
    """Keep only sessions in which a test, lint or type run or a build ran."""
    allow_unsure_redactions: bool = False
    tools: tuple[str, ...] = ()
    """Empty: every tool."""
    models: tuple[str, ...] = ()
    """Empty: every model."""
    since: date | None = None
    until: date | None = None
    """The last day, included (UTC, of the session's start)."""
    max_per_repository: int | None = Field(default=None, ge=1)
    """The best by overall quality are kept."""
    near_duplicates: Literal["drop", "keep"] = "drop"
    max_tokens: int | None = Field(default=None, ge=256)
    """Sessions with more tokens of text are split into windows, each a line of its own."""
    eval_share: float = Field(default=EVAL_SHARE, ge=0, lt=1)


class Candidate(Struct, frozen=True, kw_only=True):
    """A session with everything that is known of it."""

    session: Session
    metadata: SessionMetadataRow | None = None
    scores: SessionScores | None = None
    judgements: tuple[JudgeEvaluation, ...] = ()
    rubric_evaluations: tuple[RubricEvaluation, ...] = ()
    snapshot: PromptSnapshotRow | None = None
    split: Split = "train"

    @property
    def repository(self) -> str:
        """The repository it is filed under; empty when none is known."""
        return repository_of(self.session, self.metadata)

    @property
    def model(self) -> str:
        """The model it is filed under; empty when none is known."""
        return model_of(self.session, self.metadata)

    @property
    def quality(self) -> float:
        """Its overall quality; 0 when it was not scored."""
        return (self.scores.overall_quality if self.scores else None) or 0.0


class Selection(Struct, frozen=True, kw_only=True):
    """The outcome."""

    selected: tuple[Candidate, ...]
    """By start and id, each with its side of the split."""
    left_out: dict[str, str]
    """Reason by session id."""


def select(candidates: Iterable[Candidate], options: TrainingOptions) -> Selection:
    """Choose among candidates and put each on its side of the split."""
    left_out: dict[str, str] = {}
    fitting: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda item: (item.session.started, item.session.id)):
        reason = reason_against(candidate, options)
        if reason is None:
            fitting.append(candidate)
        else:
            left_out[candidate.session.id] = reason
    apart = list(_kept_apart(fitting, options, left_out))
    return Selection(selected=tuple(_capped(apart, options, left_out)), left_out=left_out)


def reason_against(candidate: Candidate, options: TrainingOptions) -> str | None:
    """Return why a session is left out for what it is itself; None when nothing speaks against."""
    session, scores = candidate.session, candidate.scores
    day = session.started.astimezone(UTC).date()
    if candidate.metadata is None:
        return NO_METADATA
    if scores is None or scores.status != "ok" or scores.overall_quality is None:
        return NOT_SCORED
    if not _was_answered(session):
        return NO_ANSWER
    if options.tools and candidate.metadata.tool not in options.tools:
        return OTHER_TOOL
    if options.models and candidate.model not in options.models:
        return OTHER_MODEL
    if (options.since and day < options.since) or (options.until and day > options.until):
        return OUT_OF_DATES
    if scores.overall_quality < options.min_overall_quality:
        return f"overall quality below {options.min_overall_quality:g}"
    if options.require_change and not session.growth:
        return NO_CHANGE
    if options.require_validation and not was_validated(session):
        return NO_VALIDATION
    if session.unsure_redactions and not options.allow_unsure_redactions:
        return UNSURE
    return None


def was_validated(session: Session) -> bool:
    """Tell whether a test, lint or type run or a build ran in the session, whatever it said."""
    for turn in session.turns:
        for message in turn.messages:
            for call in message.calls:
                command = shell_command(call) if call.status in ("ok", "failed") else None
                if command and any(map(check_of, simple_commands(command))):
                    return True
    return False


def counted(left_out: dict[str, str]) -> tuple[LeftOut, ...]:
    """Return the reasons with their sessions, the most frequent first."""
    sessions: dict[str, list[str]] = {}
    for session_id, reason in left_out.items():
        sessions.setdefault(reason, []).append(session_id)
    rows = [
        LeftOut(reason=reason, count=len(ids), sessions=tuple(sorted(ids)))
        for reason, ids in sessions.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.reason)))


def _was_answered(session: Session) -> bool:
    return any(
        message.text.strip() or message.calls
        for turn in session.turns
        if not turn.rewound
        for message in turn.messages
    )


def _kept_apart(
    candidates: Iterable[Candidate], options: TrainingOptions, left_out: dict[str, str]
) -> Iterator[Candidate]:
    """Yield candidates with their sides so that no two related ones are on different sides."""
    relatives = Relatives()
    sides: dict[str, Split] = {}
    for candidate in candidates:
        session = candidate.session
        side = side_of(candidate.repository, session.started, options.eval_share)
        sketch = sketch_of(session)
        related = relatives.of(sketch)
        if options.near_duplicates == "drop" and any(
            relation.likeness >= DUPLICATE for relation in related
        ):
            left_out[session.id] = NEAR_DUPLICATE
        elif any(sides[relation.session_id] != side for relation in related):
            left_out[session.id] = ACROSS
        else:
            relatives.add(sketch)
            sides[session.id] = side
            yield replace(candidate, split=side)


def _capped(
    candidates: list[Candidate], options: TrainingOptions, left_out: dict[str, str]
) -> Iterator[Candidate]:
    cap = options.max_per_repository
    if cap is None:
        yield from candidates
        return
    taken: Counter[str] = Counter()
    kept: set[str] = set()
    for candidate in sorted(candidates, key=lambda item: -item.quality):
        if taken[candidate.repository] < cap:
            taken[candidate.repository] += 1
            kept.add(candidate.session.id)
        else:
            left_out[candidate.session.id] = f"over the cap of {cap} for its repository"
    yield from (candidate for candidate in candidates if candidate.session.id in kept)
