"""A session that has one of everything a page can show, and what was said of it.

``python -m tests.view.every_kind`` writes anew the page that the tests compare with.
"""

from __future__ import annotations

import json
import re
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.scoring.gate import gate_review
from debrief.scoring.llm_review import (
    ClaimReview,
    FrictionReview,
    Incident,
    PersonWords,
    RequestReview,
    SessionReview,
    TrainOn,
)
from debrief.scoring.model import DimensionScore, SessionScores
from debrief.sessions.actions import described
from debrief.sessions.model import (
    ContextText,
    Evidence,
    Intervention,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
    Usage,
)
from debrief.signals.schema import Change, CheckSignal, Event, SessionSignals
from tests.view.shown import (
    MONDAY,
    fill,
    scores_of,
    served,
    session_of,
    settings_of,
    signals_of,
)

SNAPSHOT = Path(__file__).with_name("session_page.html")
WEEK = "2026-11-02"


def at(minute: int) -> Any:
    return MONDAY + timedelta(minutes=minute)


def call_of(number: str, name: str, given: Any, result: str | None = "ok", **more: Any) -> ToolCall:
    more.setdefault("status", "ok" if result is not None else "unanswered")
    return described(ToolCall(id=number, name=name, input=json.dumps(given), result=result, **more))


def message_of(minute: int, *calls: ToolCall, **more: Any) -> Message:
    usage = Usage(100, 50, 1_000, 20_000 + 1_000 * minute)
    fields = {"id": f"m{minute}", "model": "claude-sonnet-4-5", "at": at(minute), "usage": usage}
    return Message(**{**fields, **more}, calls=calls)


def session_of_every_kind() -> Session:
    edit = {"file_path": "/home/ada/shop/cart.py", "old_string": "a - b", "new_string": "a + b"}
    first = Turn(
        number=1,
        prompt="Fix the cart,\nit adds up wrong.",
        at=at(0),
        ended=at(9),
        images=1,
        messages=(
            message_of(
                1,
                call_of("c1", "Read", {"file_path": "/home/ada/shop/cart.py"}, "1→total = a - b"),
                call_of("c2", "Grep", {"pattern": "total", "path": "/home/ada/shop"}, "cart.py:1"),
                thinking="The sign must be wrong.",
                text="I look at **the cart** first:\n\n```python\ntotal = a - b\n```\n",
            ),
            message_of(
                2,
                call_of(
                    "c3",
                    "Edit",
                    edit,
                    path="/home/ada/shop/cart.py",
                    added=1,
                    removed=1,
                    patch="@@ -1,1 +1,1 @@\n-total = a - b\n+total = a + b",
                ),
                call_of("c4", "Edit", edit, "The person said no", status="rejected"),
                call_of(
                    "c5",
                    "Bash",
                    {"command": "cd shop &&\npytest -q", "description": "Run the tests"},
                    "\x1b[31mFAILED\x1b[0m shop/test_cart.py - assert 3 == 4\n1 failed",
                    status="failed",
                    exit_code=1,
                ),
            ),
            message_of(
                3,
                call_of(
                    "c6",
                    "TodoWrite",
                    {
                        "todos": [
                            {"content": "Find it", "status": "completed"},
                            {"content": "Fix it", "status": "in_progress"},
                            {"content": "Test it", "status": "pending"},
                        ]
                    },
                ),
                call_of("c7", "WebFetch", {"url": "https://shop.example/a", "prompt": "How?"}, "x"),
                call_of("c8", "mcp__shop__stock", {"item": 7, "deep": {"size": "L"}}, None),
                call_of("c9", "Task", {"description": "Look for more", "prompt": "Look *well*."}),
                call_of(
                    "c10",
                    "AskUserQuestion",
                    {"questions": [{"question": "Which tax?", "options": [{"label": "None"}]}]},
                    "None",
                ),
                call_of("c11", "ExitPlanMode", {"plan": "# Plan\n\n1. Fix it"}, ""),
            ),
        ),
        interventions=(
            Intervention(kind="rejection", text="Leave that file alone.", at=at(2)),
            Intervention(kind="interruption", at=at(3)),
        ),
    )
    second = Turn(
        number=2,
        prompt="/review",
        expansion="Review the work.",
        origin="queued",
        at=at(10),
        compacted=True,
        messages=(
            message_of(
                11,
                text="All is well now.",
                summary="So far: a cart.",
                context=(
                    ContextText(
                        said_by="command", text="<bash-stdout>\x1b[32m2 passed\x1b[0m</bash-stdout>"
                    ),
                    ContextText(said_by="task", text=""),
                ),
            ),
        ),
    )
    third = Turn(number=3, prompt="", at=at(12), rewound=True, compacted=True)
    earlier = Turn(number=4, prompt="Show the cart.", origin="inherited", at=at(0))
    helper = Subagent(
        id="s1",
        type="explorer",
        description="Look for more",
        prompt="Look *well*.",
        call_id="c9",
        messages=(message_of(4, call_of("s-c1", "LS", {"path": "."}, "cart.py"), text="One."),),
    )
    lost = Subagent(id="s2", prompt="Nobody knows why.", messages=(message_of(5, text="Lost."),))
    return session_of(
        "every-kind",
        started=at(0),
        cwd="/home/ada/shop",
        models=("claude-sonnet-4-5",),
        turns=(first, second, third, earlier),
        relative_of="later",
        subagents=(helper, lost),
        lines_added=1,
        lines_removed=1,
        api_calls=4,
    )


def signals_of_every_kind(session: Session) -> SessionSignals:
    failing = Evidence(1, "c5", "FAILED shop/test_cart.py - assert 3…")
    earlier = Evidence(1, "c5", "1 failed")
    return signals_of(
        session,
        Event(
            kind="refusal",
            evidence=(Evidence(1, "c4", "The person said no"), Evidence(1, "", "Leave that file")),
        ),
        Event(kind="failed_check", evidence=(failing,)),
        calls=12,
        failed_calls=1,
        lines_kept=2,
        change=Change(files=("cart.py",), commits=(Evidence(1, "c3", "total = a + b"),)),
        checks=(
            CheckSignal(kind="lint", tool="ruff", worth="static", passed=True, evidence=earlier),
            CheckSignal(
                kind="test",
                tool="pytest",
                worth="tests",
                passed=False,
                ran=1,
                failed=1,
                covers_change=True,
                evidence=failing,
            ),
        ),
        end=Evidence(2, "", "All is well now"),
    )


def review_of_every_kind() -> SessionReview:
    """The session as a reviewer reads it, with all that it can say; it says too much."""
    return SessionReview(
        requests=(
            RequestReview(
                turn=1,
                asked="fix the sum of the cart",
                state="partial",
                proof=Evidence(1, "c5", "1 failed"),
            ),
            RequestReview(turn=2, asked="review the work", state="done_unseen"),
        ),
        claims=(
            ClaimReview(
                turn=2,
                quote="All is well now",
                state="contradicted",
                proof=Evidence(1, "c5", "1 failed"),
            ),
        ),
        verdict="complete_verified",
        confidence="high",
        quality=0.4,
        effort=0.7,
        incidents=(
            Incident(
                turn=1, call="c3", quote="total = a + b", what="It wrote without leave.", harm=True
            ),
        ),
        person=(PersonWords(turn=1, quote="it adds up wrong", says="correction"),),
        frictions=(
            FrictionReview(
                turn=2,
                what="It says that all is well while a test fails.",
                instead="Run the tests again before you say that all is well.",
                quote="2 passed",
            ),
        ),
        train=TrainOn(what="parts", turns=((1, 1), (2, 3))),
    )


def scores_of_every_kind(session: Session) -> list[SessionScores]:
    """Two reviews: the last model's, which a failed check contradicts, and an earlier one."""
    review = review_of_every_kind()
    said = scores_of(
        session,
        0.3,
        "openai/reader",
        review=review,
        verdict=gate_review(review, signals_of_every_kind(session), "openai/reader"),
        dimension_scores=(
            DimensionScore(
                dimension="task_completion",
                value=0.33,
                category="partial",
                rationale="The sum is not right yet.",
                evidence=(Evidence(1, "c5", "1 failed"),),
            ),
            DimensionScore(
                dimension="execution_quality",
                value=0.5,
                rationale="It looked first (turn 1), and was stopped (turn 9).",
                evidence=(
                    Evidence(1, "", "I look at the cart first"),
                    Evidence(1, "", "words that nobody wrote"),
                    Evidence(9, "", "no such turn"),
                ),
            ),
            DimensionScore(
                dimension="security_compliance", value=None, rationale="Nothing to go by."
            ),
        ),
        uncertain=True,
        injection_suspected=True,
    )
    return [said, scores_of(session, 0.3)]


def fill_every_kind(lake: Lake) -> Session:
    """Write the session with its scores, a judge's and a rubric's, and a neighbour on its task."""
    session, later = session_of_every_kind(), session_of("later", started=at(60))
    fill(lake, [(session, 0.3), (later, 0.8)], {session.id: signals_of_every_kind(session)})
    scores = [*scores_of_every_kind(session), scores_of(later, 0.8)]
    lake.write("session_scores", WEEK, scores, SessionScores)
    known: dict[str, Any] = {"session_digest": session.digest, "started": session.started}
    judged = JudgeEvaluation(
        session_id=session.id,
        judge="plan-compliance",
        weight=0.6,
        model="claude-code",
        status="ok",
        score=0.8,
        feedback="It did what was asked.",
        eval_fingerprint="0bbbd855",
        evidence=(Evidence(1, "c3", "total = a + b"),),
        **known,
    )
    failed = JudgeEvaluation(
        session_id=session.id,
        judge="code-reuse",
        weight=0.4,
        model="claude-code",
        status="failed",
        failure="No answer",
        eval_fingerprint="0bbbd855",
        **known,
    )
    silent = replace(
        judged,
        model="openai/reader",
        score=None,
        feedback="There is no plan to compare with.",
        evidence=(),
    )
    lake.write("judge_evaluations", WEEK, [judged, failed, silent], JudgeEvaluation)
    held = RubricEvaluation(
        session_id=session.id,
        score_name="excellence",
        rubric_id="rubric_001",
        rubric_key="asks-for-proof",
        rubric_digest="d",
        model="claude-code",
        status="ok",
        score=4,
        reasoning="The user asks for proof. Evidence: turn 2: “Review the work”.",
        evidence=(Evidence(2, "", "Review the work"),),
        **known,
    )
    lake.write("rubric_evaluations", WEEK, [held], RubricEvaluation)
    rubric = Rubric(
        id="rubric_001",
        key="asks-for-proof",
        score_name="excellence",
        name="Asks for proof",
        description="",
        scoring_criteria="",
    )
    lake.write("rubrics", "excellence", [rubric], Rubric)
    return session


def page_of(client: httpx.Client, address: str) -> str:
    """A page's own part, without what all pages have, and without the digest that it follows by."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    own = answer.text[answer.text.index("<main") : answer.text.index("</main>")]
    return re.sub('data-about="[0-9a-f]+"', 'data-about=""', own)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        settings = settings_of(Path(scratch))
        fill_every_kind(Lake(settings.lake))
        with served(settings) as pages:
            SNAPSHOT.write_text(page_of(pages, "/sessions/every-kind"))
