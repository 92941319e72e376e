"""What happens in a performed story, before a tool's way of writing it down."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

CallKind = Literal["read", "grep", "shell", "edit", "write", "todo", "ask", "task"]
CallOutcome = Literal["ok", "failed", "rejected", "interrupted"]


class Todo(Struct, frozen=True):
    """An entry of the model's list."""

    text: str
    status: Literal["pending", "in_progress", "completed"]


class Call(Struct, frozen=True, kw_only=True):
    """One call of a tool with all that either tool's file tells about it."""

    number: int
    """Within the story, from 1."""
    kind: CallKind
    outcome: CallOutcome = "ok"
    at: datetime
    output: str = ""
    exit_code: int = 0
    reason: str = ""
    """The person's words to a rejection; empty when there were none."""
    path: str = ""
    first_line: int = 1
    total_lines: int = 0
    command: str = ""
    pattern: str = ""
    before: str | None = None
    after: str = ""
    old: str = ""
    new: str = ""
    todos: tuple[Todo, ...] = ()
    header: str = ""
    question: str = ""
    options: tuple[tuple[str, str], ...] = ()
    answer: str = ""
    agent: str = ""
    description: str = ""
    prompt: str = ""
    events: tuple[Event, ...] = ()
    """Of a subagent."""


class Prompt(Struct, frozen=True, kw_only=True, tag=True):
    """Words that the person typed."""

    text: str
    at: datetime


class Reply(Struct, frozen=True, kw_only=True, tag=True):
    """One message of the model, its calls included."""

    number: int
    thinking: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    at: datetime
    ends_turn: bool = False


class Interruption(Struct, frozen=True, kw_only=True, tag=True):
    """The person pressed escape."""

    during_call: bool
    at: datetime


class Queued(Struct, frozen=True, kw_only=True, tag=True):
    """Words that the person typed while the model was at work."""

    text: str
    at: datetime


class SlashCommand(Struct, frozen=True, kw_only=True, tag=True):
    """A command to the tool itself."""

    command: str
    output: str
    at: datetime


class Compaction(Struct, frozen=True, kw_only=True, tag=True):
    """The conversation so far was replaced by a summary."""

    summary: str
    trigger: Literal["auto", "manual"]
    at: datetime


class ApiError(Struct, frozen=True, kw_only=True, tag=True):
    """The provider could not answer, and was asked again."""

    status: int
    at: datetime


Event = Prompt | Reply | Interruption | Queued | SlashCommand | Compaction | ApiError
