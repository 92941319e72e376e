"""Sessions of a small team, good and awkward ones, built by hand."""

from __future__ import annotations

import hashlib
import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.outcomes.store import SUCCESS, Label, Source, Success
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import DimensionName, DimensionScore, SessionScores
from debrief.scoring.verdict import SessionVerdict, VerdictName
from debrief.sessions.actions import described
from debrief.sessions.model import Evidence, Message, Session, SessionHead, ToolCall, Turn
from debrief.signals.schema import CheckSignal, Event, EventKind, SessionSignals
from debrief.snapshots.model import PromptSnapshotRow, SessionMetadataRow, SubagentPrompt
from debrief.training.conversations import ConversationBuilder
from debrief.training.model import ChatMessage, SampleLine
from debrief.training.samples import sample_of

AnySession = Session | SessionHead
_DRAW, _WORDS = random.Random(11), [f"word{number}" for number in range(5_000)]
MONDAY = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
PROMPT = "b7d4e2f9"
EVAL = "a3f8b2c1"
FINGERPRINT = f"{PROMPT}-{EVAL}"

DIMENSIONS: tuple[DimensionName, ...] = (
    "task_completion",
    "execution_quality",
    "tool_mastery",
    "resource_efficiency",
    "security_compliance",
    "user_satisfaction",
)


def text(count: int) -> str:
    """Return words that nobody else says in this order."""
    return " ".join(_DRAW.choices(_WORDS, k=count))


def call(
    name: str = "Bash", arguments: Any = None, result: str | None = "ok", **fields: Any
) -> ToolCall:
    text = json.dumps({"command": "ls"} if arguments is None else arguments, separators=(",", ":"))
    fields.setdefault("status", "unanswered" if result is None else "ok")
    return described(ToolCall(id=f"toolu_{name}", name=name, input=text, result=result, **fields))


def says(text: str = "", *calls: ToolCall, id: str = "") -> Message:
    return Message(id=id, model="opus", text=text, calls=calls)


def turn(prompt: str, *messages: Message, number: int = 1, **fields: Any) -> Turn:
    return Turn(number=number, prompt=prompt, messages=messages, **fields)


def session(id: str = "s1", *turns: Turn, started: datetime = MONDAY, **fields: Any) -> Session:
    if not turns:
        turns = (
            turn(
                f"Fix the retry loop of {id}",
                says("Looking.", call(arguments={"command": f"grep -rn {id} ."})),
                says("It counted one too many; fixed and tested."),
            ),
        )
    plain: dict[str, Any] = {
        "source": "claude-code",
        "tool": "claude-code",
        "models": ("opus",),
        "task": "checkout",
        "repository": "shop",
        "ended": started + timedelta(minutes=20),
    }
    made = Session(id=id, turns=turns, started=started, **{**plain, **fields})
    digest = made.digest or hashlib.sha256(ascii(made).encode()).hexdigest()
    return replace(made, digest=digest)


def verdicts(completion: str | None = "complete") -> tuple[DimensionScore, ...]:
    said = {"failed": 0.0, "partial": 0.33, "complete": 0.67}
    completed = DimensionScore(
        dimension="task_completion", value=said.get(completion or ""), category=completion
    )
    rest = (
        DimensionScore(dimension=name, value=0.67, rationale="turn 1 ends with passing tests")
        for name in DIMENSIONS[1:]
    )
    return (completed, *rest)


def said(verdict: VerdictName, **fields: Any) -> SessionVerdict:
    """What is said of a session, by a review unless the fields say otherwise."""
    return SessionVerdict(verdict=verdict, **{"basis": "review", "source": "judge-1", **fields})


def scores(of: AnySession, quality: float | None = 0.7, **fields: Any) -> SessionScores:
    return SessionScores(
        session_id=of.id,
        session_digest=of.digest,
        started=of.started,
        ended=of.ended,
        task=of.task,
        tool=of.tool,
        **{
            "model": "judge-1",
            "scoring_fingerprint": "5c0e1d2a",
            "status": "ok",
            "overall_quality": quality,
            "dimension_scores": verdicts(),
            "verdict": said("complete_verified"),
            "token_efficiency": 1.5,
            **fields,
        },
    )


def outcome(success: bool, source: Source = "ci", rater: str = "") -> Success:
    """What became of a session, by a label."""
    value = "yes" if success else "no"
    label = Label(session_id="s1", name=SUCCESS, value=value, source=source, rater=rater)
    return Success(success, source, "s1", label)


def signals(of: AnySession, *events: EventKind, **fields: Any) -> SessionSignals:
    """What rules see in a session: it ends with an answer, unless the fields say otherwise."""
    place = Evidence(1, "", "there")
    return SessionSignals(
        session_id=of.id,
        session_digest=of.digest,
        started=of.started,
        ended=of.ended,
        task=of.task,
        tool=of.tool,
        events=tuple(Event(kind=kind, evidence=(place,)) for kind in events),
        **{"work": "code", "ending": "answered", **fields},
    )


def checked(passed: bool | None) -> tuple[CheckSignal, ...]:
    """A test run that ended so."""
    run = CheckSignal(
        kind="test",
        tool="pytest",
        worth="tests",
        passed=passed,
        covers_change=True,
        evidence=Evidence(1, "", "3 failed"),
    )
    return (run,)


def metadata(of: AnySession, **fields: Any) -> SessionMetadataRow:
    return SessionMetadataRow(
        session_id=of.id,
        recorded_at=of.started,
        **{
            "tool": of.tool,
            "model": of.models[0] if of.models else None,
            "task": of.task,
            "repository": of.repository,
            "prompt_fingerprint": PROMPT,
            "prompt_digest": PROMPT * 8,
            **fields,
        },
    )


def judgement(
    of: AnySession, judge: str = "reuse", score: float | None = 0.8, **fields: Any
) -> JudgeEvaluation:
    return JudgeEvaluation(
        session_id=of.id,
        session_digest=of.digest,
        started=of.started,
        judge=judge,
        **{
            "weight": 1.0,
            "model": "judge-1",
            "status": "failed" if score is None else "ok",
            "score": score,
            "feedback": "uses what is there",
            "eval_fingerprint": EVAL,
            **fields,
        },
    )


def rubric_evaluation(of: AnySession, score: int | None = 4, **fields: Any) -> RubricEvaluation:
    return RubricEvaluation(
        session_id=of.id,
        session_digest=of.digest,
        started=of.started,
        **{
            "score_name": "excellence",
            "rubric_id": "rubric_001",
            "rubric_key": "states-the-goal",
            "rubric_digest": "d",
            "model": "judge-1",
            "status": "failed" if score is None else "ok",
            "score": score,
            **fields,
        },
    )


def snapshot(of: AnySession, main: str = "Be brief.", **subagents: str) -> PromptSnapshotRow:
    return PromptSnapshotRow(
        session_id=of.id,
        origin="recorded",
        main=main,
        subagents=tuple(SubagentPrompt(name, text) for name, text in subagents.items()),
        prompt_fingerprint=PROMPT,
    )


def talk(*turns: Turn, system: str = "") -> tuple[ChatMessage, ...]:
    conversation = ConversationBuilder(system)
    for one in turns:
        conversation.add_turn(one)
    return conversation.close()


def line_of(of: Session, **fields: Any) -> SampleLine:
    fields.setdefault("scores", scores(of))
    fields.setdefault("metadata", metadata(of))
    return sample_of(of, **fields)
