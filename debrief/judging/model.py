"""Judges, what they are shown, and what they say."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from debrief.sessions.model import Session

EvaluationStatus = Literal["ok", "failed"]


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


class Judgement(Struct, frozen=True, kw_only=True):
    """A judge's answer."""

    score: float
    """From 0 to 1."""
    feedback: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None when the model's price is not known; 0 only when nothing was spent."""


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
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
