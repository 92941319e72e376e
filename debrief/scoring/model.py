"""Traces, chunks and scores."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from debrief.sessions.model import Evidence, Session

DimensionName = Literal[
    "task_completion",
    "execution_quality",
    "tool_mastery",
    "resource_efficiency",
    "security_compliance",
    "user_satisfaction",
]
SessionKind = Literal["coding", "service", "unknown"]
ScoreName = Literal["excellence", "token_efficiency", "user_turn_efficiency"]
SCORE_NAMES: tuple[ScoreName, ...] = ("excellence", "token_efficiency", "user_turn_efficiency")


class Observation(Struct, frozen=True, gc=False):
    """A message, a call or a result inside a trace."""

    kind: str
    text: str
    """As it is shown to the scorer, label and line end included."""
    continued: bool = False
    """True for what follows the first part of an observation that was split."""


class Trace(Struct, frozen=True, kw_only=True):
    """A turn with all that happened in it (Langfuse's word, and what a chunk is made of)."""

    number: int
    """Of the turn; a trace that was split keeps its turn's number in every part."""
    observations: tuple[Observation, ...]
    continued: bool = False
    """True for what follows the first part of a trace that was split."""


class Chunk(Struct, frozen=True, kw_only=True):
    """A part of a session that fits one scoring call."""

    index: int
    """From 0."""
    count: int
    """How many chunks the session has."""
    overlap: tuple[Trace, ...]
    """Traces repeated from the end of the chunk before, for context."""
    traces: tuple[Trace, ...]
    """The chunk's own traces; those of all chunks, joined, are the session."""
    tokens: int
    """Of overlap and own traces together."""
    own_tokens: int


class Verdict(Struct, frozen=True, kw_only=True):
    """What was said of one dimension."""

    dimension: DimensionName
    value: float | None
    """From 0 to 1; for a categorical dimension its category's value. None when nothing in the
    session speaks for or against: the rationale says so, and the dimension takes no part."""
    category: str | None = None
    """Of a categorical dimension."""
    rationale: str = ""
    evidence: tuple[Evidence, ...] = ()
    spread: float | None = None
    """Standard deviation of several independent answers; None for one."""
    low: float | None = None
    """Of the 95 % interval of their mean."""
    high: float | None = None

    @property
    def shown(self) -> str:
        """Return the category, the number, or that there is nothing to go by."""
        if self.value is None:
            return "nothing to go by"
        return self.category or f"{self.value:.2f}"


class ChunkVerdicts(Struct, frozen=True, kw_only=True):
    """The six verdicts on one chunk."""

    index: int
    tokens: int
    own_tokens: int
    verdicts: tuple[Verdict, ...]
    person_characters: int = 0
    """Of prompts and interventions among the chunk's own traces."""
    answers: tuple[tuple[Verdict, ...], ...] = ()
    """Each of several independent answers, which ``verdicts`` are made of; empty for one."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class ChunkScorer(Protocol):
    """Whoever scores a chunk: a language model, or the offline evaluator."""

    model: str
    """The model's name, or ``offline``."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkVerdicts:
        """Score one chunk; raise a DebriefError when no usable answer could be had."""
        ...


class Reason(Struct, frozen=True):
    """What speaks for or against success."""

    text: str
    effect: float
    """How far it moved the order: against success below 0."""
    evidence: tuple[Evidence, ...] = ()


class SuccessEstimate(Struct, frozen=True, kw_only=True):
    """How likely it is that a session did what was asked."""

    kind: SessionKind
    order: float | None = None
    """Higher is likelier; no probability. None where nothing can be told."""
    rank: float | None = None
    """The share, from 0 to 1, of the sessions that the table was fitted on and that rank lower."""
    probability: float | None = None
    """Only after labels of the user's own."""
    low: float | None = None
    high: float | None = None
    """The interval that holds the probability 19 times in 20."""
    cannot_tell: str = ""
    """Why nothing can be told; empty where it can."""
    reasons: tuple[Reason, ...] = ()
    """The strongest first."""

    @property
    def shown(self) -> str:
        """Return the estimate in plain words."""
        if self.cannot_tell:
            return f"cannot tell: {self.cannot_tell}"
        if self.probability is not None:
            return f"{self.probability:.0%} likely ({self.low:.0%} to {self.high:.0%})"
        rank = self.rank or 0.0
        if rank >= 0.5:
            return f"likelier than usual: top {max(10, round(100 - 100 * rank, -1)):.0f} %"
        return f"less likely than usual: bottom {max(10, round(100 * rank + 10, -1)):.0f} %"


class SessionScores(Struct, frozen=True, kw_only=True):
    """One row: a session's six dimensions and what is computed from them and beside them."""

    session_id: str
    session_digest: str
    started: datetime
    ended: datetime
    task: str
    tool: str
    model: str
    """Who scored: a model's name, or ``offline``."""
    scoring_fingerprint: str
    status: Literal["ok", "failed"]
    failure: str = ""
    verdicts: tuple[Verdict, ...] = ()
    overall_quality: float | None = None
    overall_spread: float | None = None
    """Standard deviation of the overall quality by several independent answers; None for one."""
    overall_low: float | None = None
    """Of the 95 % interval of its mean."""
    overall_high: float | None = None
    token_efficiency: float | None = None
    """Lasting lines per 1,000 input and output tokens; None without tokens."""
    user_turn_efficiency: float | None = None
    """Lasting lines per human turn; None without turns."""
    tokens: int = 0
    """Of the session as it was shown to the scorer."""
    chunks: tuple[ChunkVerdicts, ...] = ()
    chunk_agreement: float | None = None
    """From 0 to 1: how alike the chunks' verdicts are on the dimension where they are least so;
    None for a single chunk."""
    uncertain: bool = False
    """The chunks disagree so much that a person should look before the scores are relied on."""
    success: SuccessEstimate | None = None
    """How likely it is that the session did what was asked, whoever scored; None for a failure."""
    injection_suspected: bool = False
    """The session holds words that look made for whoever judges it."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
