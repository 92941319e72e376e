"""The rows and types of scoring: traces, chunks, scores."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from debrief.signals.extract import SessionKind
from debrief.scoring.llm_review import Confidence, SessionReview
from debrief.scoring.verdict import SessionVerdict, VerdictName
from debrief.sessions.model import Evidence, Session

DimensionName = Literal[
    "task_completion",
    "execution_quality",
    "tool_mastery",
    "resource_efficiency",
    "security_compliance",
    "user_satisfaction",
]


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


class DimensionScore(Struct, frozen=True, kw_only=True):
    """What was said of one dimension; the verdict on the session is ``SessionVerdict``."""

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


class ChunkScores(Struct, frozen=True, kw_only=True):
    """The six scores of one chunk."""

    index: int
    tokens: int
    own_tokens: int
    verdicts: tuple[DimensionScore, ...]
    overlap: int = 0
    """Traces repeated from the end of the chunk before."""
    person_characters: int = 0
    """Of prompts and interventions among the chunk's own traces."""
    answers: tuple[tuple[DimensionScore, ...], ...] = ()
    """Each of several independent answers, which ``verdicts`` are made of; empty for one."""
    bounds: tuple[float, ...] = ()
    """The most that the overall quality is by each of them."""
    reading: SessionReview | None = None
    """Of the part; None offline, and in a row, which has that of the whole session."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class ChunkScorer(Protocol):
    """Whoever scores a chunk: a language model, or the offline evaluator."""

    model: str
    """The model's name, or ``offline``."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkScores:
        """Score one chunk; raise a DebriefError when no usable answer could be had."""
        ...


UnsureReason = Literal[
    "refused", "low_confidence", "undetermined", "parts_differ", "contradicts_check"
]
"""Why one model's reading does not do: its answers could not be used, it says so itself, nothing
decides for it, its parts were scored differently, or the last check says the opposite."""


class FirstOpinion(Struct, frozen=True, kw_only=True):
    """What a model said of a session before another one was asked for its opinion."""

    model: str
    reason: UnsureReason
    verdict: VerdictName | None = None
    """None where its answers could not be used."""
    confidence: Confidence | None = None
    overall_quality: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


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
    verdicts: tuple[DimensionScore, ...] = ()
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
    chunks: tuple[ChunkScores, ...] = ()
    chunk_agreement: float | None = None
    """From 0 to 1: how alike the chunks' verdicts are on the dimension where they are least so;
    None for a single chunk."""
    uncertain: bool = False
    """The chunks disagree so much that a person should look before the scores are relied on."""
    kind: SessionKind = "unknown"
    """Of the work, by its calls."""
    verdict: SessionVerdict | None = None
    """Whether what was asked was done: an outcome says so, else the model that read it, else the
    rules; None where the session could not be read for it."""
    reading: SessionReview | None = None
    """What the model read, request by request; None offline, and in rows of before it was asked."""
    facts: dict[str, float] = {}
    """What the order of sessions is made of (``debrief.scoring.order``), by name."""
    injection_suspected: bool = False
    """The session holds words that look made for whoever judges it."""
    first_opinion: FirstOpinion | None = None
    """Of the model that read it first and was unsure, so that the row's was asked; its tokens and
    cost are part of the row's. None where one model alone was asked."""
    second_failure: str = ""
    """Why there is no second opinion, though the row's model was unsure: the next run asks for it
    again."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
