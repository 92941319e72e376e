"""A maker of sessions, for stories about what a session shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st

from debrief.sessions.actions import described
from debrief.sessions.model import (
    Intervention,
    Message,
    Session,
    Subagent,
    ToolCall,
    Turn,
    Usage,
)
from debrief.signals.extract import Activity, session_activity, session_signals
from debrief.signals.schema import SessionSignals

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Story:
    """Builds a session turn by turn; every call goes into the turn begun last."""

    def __init__(self) -> None:
        self._turns: list[dict[str, Any]] = []
        self._subagents: list[Subagent] = []
        self._calls = 0
        self.last_status = ""

    def turn(self, prompt: str, **more: Any) -> Story:
        at = START + timedelta(minutes=10 * len(self._turns))
        turn = {"number": len(self._turns) + 1, "prompt": prompt, "at": at, **more}
        self._turns.append({"messages": [], "interventions": [], **turn})
        return self

    def say(self, text: str, *calls: ToolCall, tokens: int = 100) -> Story:
        turn, usage = self._turns[-1], Usage(input=tokens, output=tokens)
        identity = f"m{len(self._turns)}.{len(turn['messages'])}"
        told = {"id": identity, "model": "model-a", "at": turn["at"], "text": text}
        turn["messages"].append(Message(**told, calls=calls, usage=usage))
        return self

    def call(
        self, name: str, result: str | None = "done", status: str = "ok", **input: Any
    ) -> Story:
        return self.say("", self.make(name, result, status, **input))

    def make(
        self, name: str, result: str | None = "done", status: str = "ok", **input: Any
    ) -> ToolCall:
        self._calls += 1
        self.last_status = status
        return described(
            ToolCall(
                id=f"c{self._calls}",
                name=name,
                input=json.dumps(input, ensure_ascii=False),
                result=result,
                status=status,  # type: ignore[arg-type]
            )
        )

    def run(self, command: str, result: str = "", status: str = "ok") -> Story:
        return self.call("Bash", result, status, command=command)

    def read(self, path: str, text: str = "     1\tx = 1", **part: Any) -> Story:
        return self.call("Read", text, file_path=path, **part)

    def edit(self, path: str, old: str, new: str, line: int = 1, status: str = "ok") -> Story:
        """Replace lines; without old lines at line 0, create the file."""
        removed = [f"-{text}" for text in old.split("\n")] if old else []
        added = [f"+{text}" for text in new.split("\n")] if new else []
        start = f"{line},{len(removed)}" if line else "0,0"
        patch = "\n".join([f"@@ -{start} +{max(line, 1)},{len(added)} @@", *removed, *added, ""])
        self._calls += 1
        call = described(
            ToolCall(
                id=f"c{self._calls}",
                name="Edit" if line else "Write",
                input=json.dumps({"file_path": path}),
                result="done" if status == "ok" else "String to replace not found in file.",
                status=status,  # type: ignore[arg-type]
                path=path,
                added=len(added),
                removed=len(removed),
                patch=patch,
            )
        )
        return self.say("", call)

    def write(self, path: str, text: str) -> Story:
        return self.edit(path, "", text, line=0)

    def deed(self, kind: str, text: str = "", minutes: int = 1) -> Story:
        at = self._turns[-1]["at"] + timedelta(minutes=minutes)
        self._turns[-1]["interventions"].append(Intervention(kind=kind, text=text, at=at))  # type: ignore[arg-type]
        return self

    def subagent(self, prompt: str, *calls: ToolCall) -> Story:
        name = f"agent-{len(self._subagents)}"
        message = Message(id=f"{name}.m", model="model-b", text="found", calls=calls)
        self._subagents.append(Subagent(id=name, prompt=prompt, messages=(message,)))
        return self

    def session(self) -> Session:
        turns = tuple(msgspec.convert(turn, Turn) for turn in self._turns)
        return Session(
            id="s1",
            source="claude-code",
            tool="claude-code",
            task="shop",
            cwd="/home/ada/shop",
            started=START,
            ended=START + timedelta(hours=1),
            turns=turns,
            subagents=tuple(self._subagents),
            digest="d1",
        )

    def facts(self) -> Activity:
        return session_activity(self.session())

    def signals(self) -> SessionSignals:
        return session_signals(self.session())


_WORDS = [
    "Add a retry", "that's wrong", "thanks, bye", "pytest", "echo 1 > a.py", "rm -rf /", "5 passed",
    "2 failed, 1 passed", "I could not fix it", "Let me look:", "Error: timed out", "<<EOF", "'", "",
]  # fmt: skip
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["turn", "say", "run", "failed", "read", "write", "interruption", "remark"]
        ),
        st.sampled_from(_WORDS) | st.text(max_size=40),
    ),
    max_size=12,
)
"""Of any session."""


def story_of(given: list[tuple[str, str]]) -> Story:
    """Make a session out of steps, whatever they are."""
    story = Story().turn("Fix it")
    for step, text in given:
        if step in ("turn", "say", "read"):
            getattr(story, step)(text)
        elif step == "write":
            story.write("a.py", text)
        elif step in ("run", "failed"):
            story.run(text, text, "failed" if step == "failed" else "ok")
        else:
            story.deed(step, text)
    return story
