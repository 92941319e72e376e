"""How a session ends: with an answer, broken off, or stopped.

An end is seen by its form, not by its words: a closing text, a call without an answer, a prompt
without one. Whether the work is done is another question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, ToolCall, Turn
from debrief.signals.excerpts import label, line_at
from debrief.signals.shell import commands_in

Ending = Literal["closed", "open", "interrupted", "limit"]
"""``open``: it breaks off without a closing text. ``interrupted``: the person stopped it.
``limit``: its program did."""
_HANDS_IN = re.compile(
    r"COMPLETE_TASK_AND_SUBMIT|\A(?:submit|finish|done|attempt_completion|(?:transfer|handoff|escalate)_\w+)\Z"
)
"""Calls that end the work: it is handed in, or handed over to somebody."""
_NOTICE = re.compile(
    r"\A\W*(?:API Error\b|Prompt is too long|Credit balance is too low|No response requested"
    r"|(?:You've|You have|Claude)\b[^\n]{0,40}\b(?:hit|reached)\b[^\n]{0,30}\blimit\b"
    r"|(?:Reached|Exceeded) (?:the )?max(?:imum)?\b|(?:max_?turns|max_?steps|LimitsExceeded)\W*\Z)",
    re.IGNORECASE,
)
"""What programs write in place of an answer when they stop."""
PUBLISHES = (("git", "commit"), ("git", "push"))
"""How commands begin that commit or push."""
_QUOTE = 120


class End(Struct, frozen=True, kw_only=True):
    """How the last turn with a request ends."""

    ending: Ending
    evidence: Evidence | None = None
    """None for a session without any turn."""
    unanswered: bool = False
    """The last prompt, or a commit or push at the end, has no answer: that says nothing of the work
    before it."""


def end_of(turns: Sequence[Turn]) -> End:
    """Return how a session ends; turns that the person took back do not count."""
    left = [turn for turn in turns if not turn.rewound] or list(turns)
    if not left:
        return End(ending="closed")
    last = left[-1]
    if not last.messages and not last.interventions and len(left) > 1:
        before = end_of(left[:-1])
        return replace(before, unanswered=True)
    stops = [deed for deed in last.interventions if deed.kind == "interruption"]
    if not last.messages:
        where = Evidence(last.number, "", f"no answer to: {shorten(last.prompt, 80)}")
        return End(ending="interrupted" if stops else "open", evidence=where)
    final = last.messages[-1]
    text = final.text.strip()
    if stops and not (final.at and stops[-1].at and final.at > stops[-1].at and text):
        return End(ending="interrupted", evidence=Evidence(last.number, "", shorten(text, _QUOTE)))
    if final.calls:
        call = final.calls[-1]
        where = Evidence(last.number, call.id, label(call))
        if publishes(call) and call.status == "unanswered":
            return End(ending="closed", evidence=where, unanswered=True)
        return End(ending="closed" if _hands_in(call) else "open", evidence=where)
    if found := _NOTICE.search(text[:300]):
        return End(ending="limit", evidence=Evidence(last.number, "", line_at(text, found)))
    line = text.rpartition("\n")[2].strip(" *_")
    where = Evidence(last.number, "", shorten(line or text, _QUOTE))
    return End(ending="open" if not line or line.endswith(":") else "closed", evidence=where)


def publishes(call: ToolCall) -> bool:
    """Return whether a call commits or pushes."""
    return any(words[:2] in PUBLISHES for words, _ in commands_in(call.command))


def _hands_in(call: ToolCall) -> bool:
    name = call.name.lower().rpartition("__")[2]
    return bool(_HANDS_IN.search(call.command or name))
