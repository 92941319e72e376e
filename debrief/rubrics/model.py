"""The rows of rubrics: evidence, candidates, trials, rubrics, and sessions' levels on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from debrief.rubrics.contrast import SessionValues
from debrief.sessions.model import Evidence, Session

EXTRACTED = "extracted_rubrics"
DROPPED = "dropped_rubrics"
"""What mining looked at and dropped, by week."""
UNMINED = "unmined_sessions"
"""Sessions that could not be mined, by week."""
RUBRICS = "rubrics"
CANDIDATES = "rubric_candidates"
"""What was extracted over all weeks, consolidated, before it is tested; by score name."""
TRIALS = "rubric_trials"
"""How each one did on sessions that were set aside for the test, in one partition."""
SEARCHES = "rubric_searches"
"""What the search came to, a row for each score name, in one partition."""
ALL = "all"
"""The partition of both."""
SETS = "rubric_sets"
"""Final sets as they were, by score name and the last week mined: ``excellence.2026-03-02``."""
EVALUATIONS = "rubric_evaluations"
FEWEST, MOST = 5, 10
"""Rubrics of a score name; fewer where fewer were extracted."""
Finding = Literal["tells", "does_not_tell", "too_few"]
"""What unseen sessions say of a rubric: it tells good ones from bad ones, it does not, or they are
too few to tell."""


class RubricEvidence(Struct, frozen=True, kw_only=True):
    """Where a rubric was seen: words that stand in that turn of that session."""

    session_id: str
    turn: int
    quote: str


class ExtractedRubric(Struct, frozen=True, kw_only=True):
    """One row: a rubric as mined from one week, before it is consolidated."""

    id: str
    """Stable: the same name mined again in the same week has the same id."""
    score_name: str
    week: str
    name: str
    description: str
    scoring_criteria: str
    """Five lines, ``1: …`` to ``5: …``."""
    evidence: tuple[RubricEvidence, ...] = ()
    extractor: str
    """The model's name."""
    sessions: tuple[str, ...] = ()
    """Ids of the sessions that it was mined from."""


class Rubric(Struct, frozen=True, kw_only=True):
    """One row: a candidate of a score name, or a rubric of its final set."""

    id: str
    """``rubric_001`` …, in order of weight."""
    key: str
    """Identity that survives from one consolidation to the next."""
    score_name: str
    name: str
    description: str
    scoring_criteria: str
    weight: float = 1.0
    sources: tuple[str, ...] = ()
    """Ids of the extracted rubrics that were merged into this one."""
    sessions: tuple[str, ...] = ()
    """Ids of the sessions that it was mined from."""
    notes: str = ""
    finding: Finding = "too_few"
    """What the sessions that were set aside for the test say of it."""
    finding_reason: str = ""
    held_out_effect: float | None = None
    """Cliff's delta between the good and the bad ones of the sessions that were set aside for the
    test; None where it could not be tested."""
    held_out_low: float | None = None
    """Of its 95 % confidence interval."""
    held_out_high: float | None = None
    held_out_sessions: int = 0
    """How many sessions it was tested on."""
    corrected_p: float | None = None
    """Its p-value there, corrected for all candidates that were looked at."""


class RubricTrial(Struct, frozen=True, kw_only=True):
    """One row: how a candidate did on sessions that nothing was mined from."""

    score_name: str
    key: str
    name: str
    effect: float | None = None
    """Cliff's delta; None when it could not be tried."""
    low: float | None = None
    """Of its 95 % confidence interval."""
    high: float | None = None
    p_value: float | None = None
    """Mann-Whitney, two-sided, before any correction."""
    corrected_p: float | None = None
    """After Benjamini and Hochberg, over all candidates that were looked at."""
    best_count: int = 0
    worst_count: int = 0
    failed: int = 0
    """Sessions that could not be judged; the next run tries them again."""
    finding: Finding = "too_few"
    reason: str
    """Why, in words."""
    rubric: Rubric
    """The candidate."""


class RubricSearch(Struct, frozen=True, kw_only=True):
    """One row: what the search for rubrics of a score name came to."""

    score_name: str
    mined: int
    """Scored sessions that candidates were mined from."""
    tried: int
    """Scored sessions that were set aside for trials."""
    looked_at: int
    """Candidates of all score names, which the p-values are corrected for."""
    confirmed: int = 0
    """Rubrics that tell good sessions from bad ones."""
    needed: int
    """More sessions until a large effect would show, then a medium one; 0 when there are enough."""
    said: str
    """The above in words."""


class DroppedRubric(Struct, frozen=True, kw_only=True):
    """One row: what was looked at or proposed in a week, and did not become a rubric."""

    score_name: str
    extractor: str
    name: str
    reason: str


class UnminedSession(Struct, frozen=True, kw_only=True):
    """One row: a session that could not be mined, and why; the next run tries it again."""

    session_id: str
    score_name: str
    extractor: str
    reason: str


class Mined(Struct, frozen=True, kw_only=True):
    """What mining a week for one score name came to."""

    rubrics: tuple[ExtractedRubric, ...] = ()
    dropped: tuple[DroppedRubric, ...] = ()
    unmined: tuple[UnminedSession, ...] = ()


class RubricJudgement(Struct, frozen=True, kw_only=True):
    """An answer of the rubric judge."""

    score: int
    """From 1 to 5."""
    reasoning: str
    evidence: tuple[Evidence, ...] = ()
    """Where the session shows what the reasoning says."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    injection_suspected: bool = False


class RubricJudge(Protocol):
    """Whoever holds a session against a rubric."""

    model: str

    def judge_rubric(self, rubric: Rubric, session: Session) -> RubricJudgement:
        """Judge one session.

        Raises:
            DebriefError: no usable answer could be had.
        """
        ...


ReadWeek = Callable[[str], Iterable[tuple[Session, SessionValues]]]
"""Gives the sessions of a week with their values by score name."""


class RubricMiner(Protocol):
    """Whoever finds rubrics in sessions and makes a final set of them."""

    name: str
    """The model's name."""

    def extract(self, week: str, score_name: str, read_week: ReadWeek) -> Mined:
        """Mine one week."""
        ...

    def consolidate(
        self,
        extracted: Iterable[ExtractedRubric],
        score_name: str,
        previous: Iterable[Rubric] = (),
    ) -> list[Rubric]:
        """Merge what was mined over the weeks into the final set of a score name.

        A rubric that says the same as one of the ``previous`` set keeps its key.
        """
        ...


class RubricEvaluation(Struct, frozen=True, kw_only=True):
    """One row: one session on one rubric."""

    session_id: str
    session_digest: str
    started: datetime
    score_name: str
    rubric_id: str
    rubric_key: str
    rubric_digest: str
    """Of name, description and criteria: another text means that the row is redone."""
    model: str
    status: Literal["ok", "failed"]
    score: int | None = None
    reasoning: str = ""
    evidence: tuple[Evidence, ...] = ()
    """Where the session shows what the reasoning says."""
    failure: str = ""
    injection_suspected: bool = False
    """The session, or the rubric, holds words that are meant for a judge."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
