"""Sessions made by hand, for stories about judges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from debrief.judging.model import ChangeContext, Judge, Judgement
from debrief.sessions.model import Message, Session, ToolCall, Turn

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def make_session(
    *edits: tuple[str, str],
    id: str = "s1",
    prompt: str = "Add a retry to upload()",
    cwd: str = "/home/ada/shop",
    status: str = "ok",
) -> Session:
    """A session with one turn that made the given edits."""
    calls = tuple(
        ToolCall(
            id=f"c{number}", name="Edit", input="{}", result="done",
            status=status,  # type: ignore[arg-type]
            path=path, patch=patch, added=patch.count("\n+"), removed=patch.count("\n-"),
        )
        for number, (path, patch) in enumerate(edits)
    )  # fmt: skip
    answer = Message(id="m1", model="m", text="Done.", calls=calls)
    turns = (Turn(number=1, prompt=prompt, messages=(answer,)),)
    return Session(
        id=id, source="claude-code", tool="claude-code", task="shop", cwd=cwd, started=START,
        ended=START, turns=turns, digest=f"digest-of-{id}",
    )  # fmt: skip


class CountingJudge:
    """A judge that gives what a table says, and remembers whom it was asked about."""

    version = ""

    def __init__(self, answers: Mapping[tuple[str, str], Judgement | Exception] = {}) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        self.asked.append((session.id, judge.name))
        answer = self.answers.get((session.id, judge.name), Judgement(score=0.5, feedback="fair"))
        if isinstance(answer, Exception):
            raise answer
        return answer
