"""The rows and types of scoring: traces, chunks, scores."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal, Protocol

from msgspec import Struct

from debrief.scoring.llm_review import SessionReview
from debrief.scoring.verdict import SessionVerdict
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

    @property
    def shown(self) -> str:
        """Return the category, the number, or that there is nothing to go by."""
        if self.value is None:
            return "nothing to go by"
        return self.category or f"{self.value:.2f}"


FACETS = "facets"


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question that is asked of sessions one by one."""

    id: str
    text: str


class Facet(Struct, frozen=True, kw_only=True):
    """What one session answers to one question. A row of ``facets``, a partition a week; answers
    given in a review's call stand in the row of that review."""

    session_id: str
    session_digest: str
    question_id: str
    found: bool = False
    """The session shows what was asked for."""
    answer: str = ""
    """One sentence; empty where nothing was found."""
    places: tuple[Evidence, ...] = ()
    """Quotations that stand in the recording; at least one where something was found."""
    model: str
    """Who answered."""
    asked_on: date
    status: Literal["ok", "failed"] = "ok"
    failure: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class ChunkScores(Struct, frozen=True, kw_only=True):
    """The six scores of one chunk."""

    index: int
    tokens: int
    own_tokens: int
    dimension_scores: tuple[DimensionScore, ...]
    overlap: int = 0
    """Traces repeated from the end of the chunk before."""
    review: SessionReview | None = None
    """Of the part; None in a row, which has that of the whole session."""
    facets: tuple[Facet, ...] = ()
    """Of the part; empty in a row, which has those of the whole session."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class ChunkScorer(Protocol):
    """Whoever reviews a chunk: a language model, or a person who leaves its answers in a folder."""

    model: str
    """The reviewer's name."""

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkScores:
        """Score one chunk; raise a DebriefError when no usable answer could be had."""
        ...


class SessionScores(Struct, frozen=True, kw_only=True):
    """One row: an LLM review of a session, and the six dimensions that follow from it."""

    session_id: str
    session_digest: str
    started: datetime
    ended: datetime
    task: str
    tool: str
    model: str
    """The reviewer's name."""
    scoring_fingerprint: str
    status: Literal["ok", "failed"]
    failure: str = ""
    dimension_scores: tuple[DimensionScore, ...] = ()
    overall_quality: float | None = None
    token_efficiency: float | None = None
    """Lasting lines per 1,000 input and output tokens; None without tokens."""
    user_turn_efficiency: float | None = None
    """Lasting lines per human turn; None without turns."""
    tokens: int = 0
    """Of the session as it was shown to the scorer."""
    chunks: tuple[ChunkScores, ...] = ()
    chunk_agreement: float | None = None
    """From 0 to 1: how alike the chunks' scores are on the dimension where they are least so;
    None for a single chunk."""
    uncertain: bool = False
    """The chunks disagree so much that a person should look before the scores are relied on."""
    verdict: SessionVerdict | None = None
    """The review's, as far as signals let it stand; None where the review failed. A person or an
    outcome comes before it: read ``debrief.outcomes.verdicts``."""
    review: SessionReview | None = None
    """What the reviewer said, request by request; None where it failed."""
    facets: tuple[Facet, ...] = ()
    """Answers to questions that were asked in the same call."""
    injection_suspected: bool = False
    """The session holds words that look made for whoever judges it."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
