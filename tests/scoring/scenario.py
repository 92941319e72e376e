"""Small sessions, and a scorer that says what it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from debrief.errors import ModelError
from debrief.scoring.dimensions import BY_NAME, dimension_score, dimensions_of
from debrief.scoring.llm_review import RequestReview, SessionReview, ToolUse
from debrief.scoring.model import Chunk, ChunkScores, DimensionScore
from debrief.sessions.actions import described
from debrief.sessions.model import Evidence, Message, Session, Subagent, ToolCall, Turn, Usage
from debrief.sessions.readers.patches import replaced

NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)

USED = Usage(input=1_500, output=500, cache_read=90_000)

MIDDLING: Mapping[str, str | float] = {
    "task_completion": "complete",
    "execution_quality": 0.8,
    "tool_mastery": 0.7,
    "resource_efficiency": 0.6,
    "security_compliance": "adequate",
    "user_satisfaction": "good",
}


def verdicts(**changed: str | float | None) -> tuple[DimensionScore, ...]:
    """Six verdicts, middling but for what is changed; each rationale cites turn 1."""
    return tuple(
        DimensionScore(dimension=BY_NAME[name].name, value=None, rationale="nothing to go by")
        if score is None
        else dimension_score(name, score, f"seen in turn 1, {name}", (Evidence(1),))
        for name, score in {**MIDDLING, **changed}.items()
    )


REVIEW: Mapping[str, object] = {
    "requests": [{"turn": 1, "asked": "go on", "state": "done_seen", "proof": None}],
    "claims": [],
    "verdict": "complete_verified",
    "confidence": "high",
    "quality": 0.8,
    "effort": 0.6,
    "tools": {"what": "Each call was of use.", "value": 0.7},
    "incidents": [],
    "person": [{"turn": 1, "quote": "please go on", "says": "approval"}],
    "frictions": [],
    "train": {"what": "all", "turns": []},
}


def answer(why: str = "Each call was of use.", **changed: object) -> str:
    """What a model answers: done and seen, middling numbers, but for what is changed."""
    return json.dumps({**REVIEW, "tools": {"what": why, "value": 0.7}, **changed})


def review(**changed: Any) -> SessionReview:
    """A review with middling numbers, but for what is changed."""
    said: dict[str, Any] = {
        "requests": (RequestReview(turn=1, asked="go on", state="done_seen"),),
        "verdict": "complete_verified",
        "quality": 0.8,
        "effort": 0.6,
        "tools": ToolUse(value=0.7, what="Each call was of use."),
    }
    return SessionReview(**{**said, **changed})


def call(identity: str, command: str, result: str | None = "done") -> ToolCall:
    return described(
        ToolCall(
            id=identity,
            name="Bash",
            input=f'{{"command":"{command}"}}',
            result=result,
            status="unanswered" if result is None else "ok",
            exit_code=None if result is None else 0,
        )
    )


def turn(number: int, prompt: str = "please go on", text: str = "I did.", calls: int = 1) -> Turn:
    at = NOON + timedelta(minutes=number)
    made = tuple(call(f"call-{number}-{index}", "make test") for index in range(calls))
    message = Message(id=f"m{number}", model="some-model", at=at, text=text, calls=made)
    return Turn(number=number, prompt=prompt, at=at, messages=(message,))


def session(
    identity: str = "s1",
    turns: int | tuple[Turn, ...] = 3,
    *,
    usage: Usage = USED,
    added: int = 30,
    digest: str = "d1",
    subagents: tuple[Subagent, ...] = (),
) -> Session:
    made = tuple(turn(n + 1) for n in range(turns)) if isinstance(turns, int) else turns
    return Session(
        id=identity,
        source="claude-code",
        tool="claude-code",
        task="checkout",
        started=NOON,
        ended=NOON + timedelta(hours=1),
        turns=made,
        subagents=subagents,
        usage=usage,
        lines_added=added,
        lines_removed=10,
        digest=digest,
    )


def changing() -> Session:
    """A session that changes a file, so that there is something to judge."""

    edit = replaced("cart.py", "a\n", "b\n")
    worked = turn(1)
    (message,) = worked.messages
    (call,) = message.calls
    made = replace(
        call, id="edit", name="Edit", action="edit", path="cart.py", patch=edit.patch, added=1,
        removed=1,
    )  # fmt: skip
    return session(turns=(replace(worked, messages=(replace(message, calls=(made, call)),)),))


class ScriptedScorer:
    """Gives each chunk the review that ``say`` returns, and remembers what it was shown."""

    def __init__(
        self,
        say: Callable[[Session, Chunk], SessionReview] = lambda _s, _c: review(),
        model: str = "scripted",
    ) -> None:
        self.model = model
        self.seen: list[tuple[str, int]] = []
        self._say = say

    def score_chunk(self, session: Session, chunk: Chunk) -> ChunkScores:
        self.seen.append((session.id, chunk.index))
        said = self._say(session, chunk)
        return ChunkScores(
            index=chunk.index,
            tokens=chunk.tokens,
            own_tokens=chunk.own_tokens,
            dimension_scores=dimensions_of(said, said.verdict),
            review=said,
            input_tokens=chunk.tokens,
            output_tokens=10,
        )


def refusing(session: Session, _chunk: Chunk) -> SessionReview:
    raise ModelError("scripted", f"refuses {session.id}")
