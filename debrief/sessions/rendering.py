"""Sessions as text for prompts: one fixed form that every template and judge is shown.

User and assistant text is whole, calls are summed up by their key parameters, long results are
cut. Thinking and file snapshots are no part of the normal form, so they cannot slip in. Text of
a session may look like a heading of this form; what must not be taken in is fenced by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from debrief.sessions.model import Session, Subagent, ToolCall, Turn

LONGEST_RESULT = 500
"""Characters of a tool's result that are shown."""
LONGEST_VALUE = 200
"""Characters of one parameter that are shown."""
CUT = "... (truncated)"

_KEY_PARAMETERS = (
    *("file_path", "filePath", "notebook_path", "path", "command", "cmd", "pattern", "glob"),
    *("query", "url", "skill", "subagent_type", "description", "subject", "taskId", "question"),
)
_MOST_OTHERS = 3


def render_session(session: Session) -> str:
    """Return the whole session as text, without a line feed at its end."""
    head = [
        "=== Chat Session ===",
        f"Session ID: {session.id}",
        f"Timestamp: {session.started.isoformat().replace('+00:00', 'Z')}",
    ]
    if session.branch:
        head.append(f"Git Branch: {session.branch}")
    head.append(f"Working Directory: {session.cwd or 'unknown'}")
    parts = ["\n".join(head)]
    parts.extend(
        render_turn(turn, session.subagents)
        for turn in session.turns
        if turn.number or turn.messages
    )
    calls = {
        call.id for turn in session.turns for message in turn.messages for call in message.calls
    }
    unplaced = [agent for agent in session.subagents if agent.call_id not in calls]
    if unplaced:
        parts.append("\n".join(["[SUBAGENTS]", *(f"- {_agent_line(a)}" for a in unplaced)]))
    parts.append(f"=== End Session ===\nTotal Turns: {session.prompt_count}")
    return "\n\n".join(parts)


def render_turn(turn: Turn, subagents: Iterable[Subagent] = ()) -> str:
    """Return one turn as text; parts that it lacks are left out.

    Args:
        turn: work before the first prompt is turn 0 and has no user part.
        subagents: of the session; those that the turn's calls started are named beside the call.
    """
    agents = {agent.call_id: agent for agent in subagents if agent.call_id}
    parts: list[str] = []
    prompt = "\n".join([*([turn.prompt] if turn.prompt else []), *["[image]"] * turn.images])
    if turn.number:
        parts.append(f"[USER]\n{prompt}")
    context = [
        f"- {given.said_by}: {_one_line(given.text) or '(not recorded)'}"
        for message in turn.messages
        for given in message.context
    ]
    if context:
        parts.append("\n".join(["[CONTEXT]", *context]))
    text = "\n\n".join(message.text for message in turn.messages if message.text)
    if text:
        parts.append(f"[ASSISTANT]\n{text}")
    calls = [call for message in turn.messages for call in message.calls]
    if calls:
        lines = [f"- {call.name}: {_summary(call, agents.get(call.id))}" for call in calls]
        parts.append("\n".join(["[TOOL_CALLS]", *lines]))
    results = [f"- {call.name}: {_result(call)}" for call in calls if call.result is not None]
    if results:
        parts.append("\n".join(["[TOOL_RESULTS]", *results]))
    return "\n".join([f"--- Turn {turn.number} ---", "\n\n".join(parts)]).rstrip("\n")


def _summary(call: ToolCall, agent: Subagent | None) -> str:
    try:
        given = msgspec.json.decode(call.input)
    except msgspec.DecodeError:
        given = call.input
    summary = _parameters(given) if isinstance(given, dict) else _one_line(given)
    work = "" if agent is None else f"[subagent: {_work(agent)}]"
    return " ".join(filter(None, (summary, work))) or "(no input)"


def _parameters(given: dict[str, Any]) -> str:
    names = [name for name in _KEY_PARAMETERS if given.get(name) not in (None, "")]
    if not names:
        names = [name for name, value in given.items() if value not in (None, "")][:_MOST_OTHERS]
    return ", ".join(f"{name}={_one_line(given[name])}" for name in names)


def _one_line(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _result(call: ToolCall) -> str:
    result = call.result or ""
    if len(result) > LONGEST_RESULT:
        return result[:LONGEST_RESULT] + CUT
    return result or "(no output)"


def _agent_line(agent: Subagent) -> str:
    name = agent.type or "agent"
    task = _one_line(agent.description or agent.prompt)
    return f"{name}: {task} ({_work(agent)})" if task else f"{name}: {_work(agent)}"


def _work(agent: Subagent) -> str:
    calls = sum(len(message.calls) for message in agent.messages)
    return f"{_counted(len(agent.messages), 'message')}, {_counted(calls, 'tool call')}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
