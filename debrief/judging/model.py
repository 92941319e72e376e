"""Judges, what they are shown, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from debrief.sessions.model import Session

EvaluationStatus = Literal["ok", "failed"]
WORKTREE = "worktree"
"""The source of a session that is nothing but a worktree's changes: edits, and no conversation."""


JUDGE_SETS = "judge_sets"
"""Table of the judges behind each eval fingerprint, so that an old one can still be explained."""


class Judge(Struct, frozen=True, kw_only=True):
    """A judge as its file in ``judges/`` says."""

    name: str
    """The file's name without ``.md``."""
    weight: float
    model: str
    """A LiteLLM model name, or ``offline``."""
    body: str
    """The instructions, exactly as written below the front matter."""


class ChangeContext(Struct, frozen=True, kw_only=True):
    """What a judge is shown: what was asked for, and what was changed."""

    plan_content: str
    git_changes: str
    shrink: Callable[[int], ChangeContext] | None = None
    """Makes the same context again in at most so many characters, notes on what had to be left
    out on top; None where it cannot be made again."""

    @property
    def size(self) -> int:
        """Return its characters."""
        return len(self.plan_content) + len(self.git_changes)


class Judgement(Struct, frozen=True, kw_only=True):
    """A judge's answer."""

    score: float
    """From 0 to 1."""
    feedback: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None when the model's price is not known; 0 only when nothing was spent."""
    answered_by: str = ""
    """The configured fallback that stood in for the judge's model; empty when none had to."""


class ChangeJudge(Protocol):
    """Whoever answers for a judge: a language model, or the offline evaluator."""

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        """Judge one session; raise a DebriefError when no usable answer could be had."""
        ...


class JudgeEvaluation(Struct, frozen=True, kw_only=True):
    """One row: one session as one judge saw it."""

    session_id: str
    session_digest: str
    started: datetime
    judge: str
    weight: float
    model: str
    status: EvaluationStatus
    score: float | None = None
    feedback: str = ""
    failure: str = ""
    eval_fingerprint: str
    version: str = ""
    """Of the offline evaluator's measures: another version judges again. Empty for a model."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    answered_by: str = ""
    """The fallback that stood in for ``model``; empty when none had to."""
