"""How a session ends: answered, open, refused, or stopped.

An end is seen by its form, not by its words: a closing text, a call without an answer, a prompt
without one, a change that the person refused. Whether the work is done is another question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from debrief.markdown import shorten
from debrief.sessions.model import Evidence, Message, ToolCall, Turn
from debrief.signals.effects import effects_of
from debrief.signals.excerpts import label, line_at
from debrief.signals.schema import Ending
from debrief.signals.user_feedback import is_courtesy, typed_words

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
_PLANS = frozenset(["exitplanmode", "exit_plan_mode", "exit_spec_mode", "exitspecmode"])
_QUOTE = 120


class End(Struct, frozen=True, kw_only=True):
    """How the last turn with a request ends."""

    ending: Ending
    evidence: Evidence | None = None
    """None for a session without any turn."""


def end_of(turns: Sequence[Turn], *, has_changed: bool = True) -> End:
    """Return how a session ends; turns that the person took back do not count.

    Args:
        turns: of the session.
        has_changed: something was changed, so that a refusal left more than nothing.
    """
    left = [turn for turn in turns if not turn.rewound and not _needs_no_answer(turn)]
    if not left:
        return End(ending="answered")
    last = left[-1]
    refused = None if has_changed else _refused_change(last)
    if refused is not None:
        where = Evidence(last.number, refused.id, label(refused))
        return End(ending="refused", evidence=where)
    stops = [deed for deed in last.interventions if deed.kind == "interruption"]
    if not last.messages:
        where = Evidence(last.number, "", shorten(typed_words(last.prompt).strip(), 80))
        return End(ending="interrupted" if stops else "open", evidence=where)
    final = last.messages[-1]
    text = final.text.strip()
    if stops and not (final.at and stops[-1].at and final.at > stops[-1].at and text):
        call = final.calls[-1] if final.calls else None
        quote = label(call) if call else shorten(text, _QUOTE)
        where = Evidence(last.number, call.id if call else "", quote)
        return End(ending="interrupted", evidence=where)
    if final.calls:
        call = final.calls[-1]
        where = Evidence(last.number, call.id, label(call))
        return End(ending="answered" if _hands_in(call) else "open", evidence=where)
    if found := _NOTICE.search(text[:300]):
        return End(ending="limit", evidence=Evidence(last.number, "", line_at(text, found)))
    line = text.rpartition("\n")[2].strip(" *_")
    where = Evidence(last.number, "", shorten(line or text, _QUOTE) or "a message without text")
    return End(ending="open" if not line or line.endswith(":") else "answered", evidence=where)


def _needs_no_answer(turn: Turn) -> bool:
    """Return whether a turn without an answer needs no answer: it has no words, or thanks alone."""
    if turn.messages or any(deed.kind == "interruption" for deed in turn.interventions):
        return False
    return not (turn.prompt.strip() or turn.images) or is_courtesy(turn.prompt)


def _refused_change(turn: Turn) -> ToolCall | None:
    """Return the change or plan that a turn ends with and that the person refused without a word
    that the agent then answered; None for any other end."""
    with_calls = [message for message in turn.messages if message.calls]
    call = with_calls[-1].calls[-1] if with_calls else None
    if call is None or call.status != "rejected" or not _would_change(call):
        return None
    is_answered = _follows_text(turn.messages, with_calls[-1])
    words = [deed.text for deed in turn.interventions if deed.kind == "rejection"]
    return None if is_answered and words and words[-1].strip() else call


def _follows_text(messages: Sequence[Message], last: Message) -> bool:
    return any(message.text.strip() for message in messages[messages.index(last) + 1 :])


def _would_change(call: ToolCall) -> bool:
    is_plan = call.name.lower() in _PLANS
    return is_plan or call.action == "edit" or any(True for _ in effects_of(call.command))


def _hands_in(call: ToolCall) -> bool:
    name = call.name.lower().rpartition("__")[2]
    return bool(_HANDS_IN.search(call.command or name))
