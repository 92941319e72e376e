"""A session as a trajectory in ATIF, the Agent Trajectory Interchange Format, and back.

What the format has no field for stands under ``debrief`` in the ``extra`` of the document and of
its steps, so that a session that is written and read again is the same session: how calls ended,
what they edited, interventions, where it was. Not kept are the files that it was read from, what
could not be read in them, what redaction counted, and what a recorder or its API holds beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import astuple

from debrief.keys import place_of
from debrief.sessions.model import (
    CallStatus,
    ContextSource,
    Instructions,
    InterventionKind,
    Message,
    Session,
    Subagent,
    SubagentPlace,
    ToolCall,
    Turn,
    TurnOrigin,
    Usage,
)

VERSION: Final = "ATIF-v1.7"
"""The oldest that has subagents within the document, so that most programs read it."""
EXTRA: Final = "debrief"
_MOST = 1 << 53
Count = Annotated[int, Meta(ge=0, lt=_MOST)]
TokenCounts = tuple[Count, Count, Count, Count]
"""Input, output, cache written, cache read."""


class InterventionExtra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An intervention within a turn."""

    kind: InterventionKind
    text: str = ""
    at: str | None = None
    expansion: str = ""


class TurnExtra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step that begins a turn cannot say of it."""

    origin: TurnOrigin = "prompt"
    ended: str | None = None
    images: Count = 0
    compacted: bool = False
    rewound: bool = False
    expansion: str = ""
    interventions: tuple[InterventionExtra, ...] = ()


class CallExtra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a tool call and its result cannot say."""

    id: str | None = None
    """Where another call of the step has it too, or it is empty."""
    at: str | UnsetType | None = UNSET
    """Where it is not the step's time."""
    status: CallStatus | None = None
    """Where it does not follow from whether there is a result."""
    exit_code: Annotated[int, Meta(gt=-_MOST, lt=_MOST)] | None = None
    path: str | None = None
    added: Count = 0
    removed: Count = 0
    patch: str = ""
    estimated: bool = False
    late_result: str = ""
    without_input: bool = False
    """Nobody knows its arguments; an empty object would say that it had none."""


class ContextExtra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the model was given before a step that no person wrote."""

    said_by: ContextSource
    text: str = ""
    at: str | None = None
    call_id: str = ""
    is_behind: bool = False


class StepExtra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a step cannot say."""

    turn: TurnExtra | None = None
    """It begins a turn; of a step of the system's, work that no prompt began."""
    id: str = ""
    summary: str = ""
    context: tuple[ContextExtra, ...] = ()
    calls: tuple[CallExtra, ...] = ()
    """One a call, in their order; none where all would be empty."""


class AgentExtra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a subagent's trajectory cannot say of it."""

    id: str = ""
    type: str = ""
    description: str = ""
    place: SubagentPlace = "file"
    call_id: str = ""


class SessionExtra(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a trajectory cannot say of a session."""

    started: str
    ended: str
    task: str = ""
    """Where it does not follow from folder and repository."""
    source: str = ""
    """The reader that the session came from: for people, as it is ATIF's when it is read again."""
    repository: str = ""
    branch: str = ""
    cwd: str = ""
    title: str = ""
    base_commit: str = ""
    relative_of: str = ""
    plan: str = ""
    usage: TokenCounts = (0, 0, 0, 0)
    """Not always the sum of the steps'."""
    reported_usage: TokenCounts | None = None
    api_calls: Count = 0
    slash_commands: Count = 0
    compactions: Count = 0
    instructions: tuple[Instructions, ...] | None = None
    """Empty where it is known that there were none."""


_Extra = TypeVar("_Extra", bound=Struct)
_References = dict[str, list[dict[str, str]]]
"""The trajectories that calls started, by the calls' ids."""


def as_trajectory(session: Session) -> dict[str, Any]:
    """Return a session as a trajectory, for ``msgspec`` to encode.

    It is valid by the models of ``atif``. A call's arguments stand as they are in the session.
    """
    names = list(_distinct(agent.id for agent in session.subagents))
    started_by: _References = {}
    for agent, name in zip(session.subagents, names, strict=True):
        if agent.call_id:
            started_by.setdefault(agent.call_id, []).append({"trajectory_id": name})
    steps: list[dict[str, Any]] = []
    if session.system_prompt:
        steps.append({"source": "system", "message": session.system_prompt})
    for turn in session.turns:
        steps.append(_opening(turn))
        steps += (_step(message, started_by) for message in turn.messages)
    inner = [
        _of_subagent(agent, name, session)
        for agent, name in zip(session.subagents, names, strict=True)
    ]
    return {
        "schema_version": VERSION,
        "session_id": session.id,
        "agent": {**_agent(session, session.tool, session.models), **_tools(session)},
        "extra": {EXTRA: _extra(session)},
        "steps": _numbered(steps),
        "final_metrics": {**_metrics(session.usage, "total_"), "total_steps": len(steps)},
        **({"subagent_trajectories": inner} if inner else {}),
    }


def _agent(session: Session, name: str, models: Iterable[str]) -> dict[str, str]:
    model = next(iter(models), "")
    return {
        "name": name,
        "version": session.tool_version,
        **({"model_name": model} if model else {}),
    }


def _tools(session: Session) -> dict[str, Any]:
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                **({"parameters": Raw(tool.parameters.encode())} if tool.parameters else {}),
            },
        }
        for tool in session.declared_tools or ()
    ]
    return {"tool_definitions": tools} if tools else {}


def _extra(session: Session) -> SessionExtra:
    reported = session.reported_usage
    follows = place_of(session.cwd, session.repository).task
    return _extra_of(
        SessionExtra,
        session,
        started=session.started.isoformat(),
        ended=session.ended.isoformat(),
        task="" if session.task == follows else session.task,
        base_commit=session.base_commit or "",
        relative_of=session.relative_of or "",
        plan=session.plan or "",
        usage=astuple(session.usage),
        reported_usage=astuple(reported) if reported is not UNSET else None,
        instructions=None if session.instructions is UNSET else session.instructions,
    )


def _extra_of(kind: type[_Extra], part: Struct, **others: Any) -> _Extra:
    """Return what a part of a session holds of an extra's fields, and ``others``."""
    names = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: getattr(part, name) for name in names}, **others)


def _opening(turn: Turn) -> dict[str, Any]:
    deeds = (_extra_of(InterventionExtra, deed, at=_iso(deed.at)) for deed in turn.interventions)
    extra = _extra_of(TurnExtra, turn, ended=_iso(turn.ended), interventions=tuple(deeds))
    source = "system" if turn.origin == "preamble" else "user"
    return _of(source, turn.prompt, turn.at, StepExtra(turn=extra))


def _step(message: Message, started_by: _References) -> dict[str, Any]:
    names = list(_distinct(call.id for call in message.calls))
    named = list(zip(message.calls, names, strict=True))
    extras = tuple(_call_extra(call, name, message.at) for call, name in named)
    plain = all(extra == CallExtra() for extra in extras)
    extra = StepExtra(
        id=message.id,
        summary=message.summary,
        context=tuple(_extra_of(ContextExtra, text, at=_iso(text.at)) for text in message.context),
        calls=() if plain else extras,
    )
    step = _of("agent", message.text, message.at, extra)
    if message.model:
        step["model_name"] = message.model
    if message.thinking:
        step["reasoning_content"] = message.thinking
    if named:
        step["tool_calls"] = [
            {"tool_call_id": name, "function_name": call.name, "arguments": _arguments(call)}
            for call, name in named
        ]
    results = [
        {
            "source_call_id": name,
            **({"content": call.result} if call.result is not None else {}),
            **({"subagent_trajectory_ref": started} if started else {}),
        }
        for call, name in named
        for started in [started_by.get(call.id, [])]
        if call.result is not None or started
    ]
    if results:
        step["observation"] = {"results": results}
    if message.usage != Usage():
        step["metrics"] = _metrics(message.usage)
    return step


def _call_extra(call: ToolCall, name: str, at: datetime | None) -> CallExtra:
    follows = status_of(call.result)
    return _extra_of(
        CallExtra,
        call,
        id=None if call.id == name else call.id,
        at=UNSET if call.at == at else _iso(call.at),
        status=None if call.status == follows else call.status,
        without_input=not call.input,
    )


def status_of(result: str | None) -> CallStatus:
    """Return how a call ended of which no more is known than its result."""
    return "unanswered" if result is None else "ok"


def _arguments(call: ToolCall) -> Raw | dict[str, str]:
    try:
        is_object = type(msgspec.json.decode(call.input)) is dict
    except (msgspec.DecodeError, RecursionError):
        is_object = False
    if not call.input:
        return {}
    return Raw(call.input.encode()) if is_object else {"input": call.input}


def _of_subagent(agent: Subagent, name: str, session: Session) -> dict[str, Any]:
    steps = [_of("user", agent.prompt, None, StepExtra(turn=TurnExtra()))] if agent.prompt else []
    steps += (_step(message, {}) for message in agent.messages)
    steps = steps or [{"source": "system", "message": ""}]
    models = (message.model for message in agent.messages if message.model)
    return {
        "schema_version": VERSION,
        "session_id": session.id,
        "trajectory_id": name,
        "agent": _agent(session, agent.type or session.tool, models),
        "extra": {EXTRA: _extra_of(AgentExtra, agent)},
        "steps": _numbered(steps),
    }


def _of(source: str, text: str, at: datetime | None, extra: StepExtra) -> dict[str, Any]:
    when = {"timestamp": at.isoformat()} if at else {}
    return {**when, "source": source, "message": text, "extra": {EXTRA: extra}}


def _numbered(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"step_id": number, **step} for number, step in enumerate(steps, 1)]


def _metrics(usage: Usage, prefix: str = "") -> dict[str, Any]:
    return {
        f"{prefix}prompt_tokens": usage.input + usage.cache_write + usage.cache_read,
        f"{prefix}completion_tokens": usage.output,
        f"{prefix}cached_tokens": usage.cache_read,
        "extra": {f"{prefix}cache_creation_input_tokens": usage.cache_write},
    }


def _distinct(ids: Iterable[str]) -> Iterator[str]:
    """Yield ids, those that are empty or came before with their place behind them."""
    seen: set[str] = set()
    for number, id in enumerate(ids):
        name = id
        while not name or name in seen:
            name = f"{name}#{number}"
        seen.add(name)
        yield name


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
