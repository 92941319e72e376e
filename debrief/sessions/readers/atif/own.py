"""Trajectories that Debrief wrote: what they hold beyond the format, put back where it was."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct

from debrief.sessions.atif import (
    EXTRA,
    AgentExtra,
    CallExtra,
    SessionExtra,
    StepExtra,
    TurnExtra,
    status_of,
)
from debrief.sessions.model import Intervention, Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.atif.tokens import Counts
from debrief.sessions.readers.files import JsonRecord
from debrief.sessions.readers.patches import FileEdit
from debrief.sessions.readers.timeline import CallDraft, TurnDraft
from debrief.sessions.readers.values import (
    arguments_text,
    declared_tools,
    mapping,
    mappings,
    moment,
    string,
)

T = TypeVar("T", bound=Struct)


def is_own(document: JsonRecord) -> bool:
    """Return whether Debrief wrote a trajectory."""
    return EXTRA in mapping(document.get("extra"))


def convert(document: JsonRecord, draft: TranscriptDraft) -> None:
    """Take a trajectory that Debrief wrote, and those of its subagents."""
    agent = mapping(document.get("agent"))
    draft.take(document, id="session_id")
    draft.take(agent, tool="name", version="version")
    draft.declared = declared_tools(agent.get("tool_definitions"))
    _take_steps(document, draft)
    _take_session(document, draft)
    for number, inner in enumerate(mappings(document.get("subagent_trajectories"))):
        child = draft.agent(str(number))
        _take_steps(inner, child)
        _take_agent(inner, child)


def _take_steps(document: JsonRecord, draft: TranscriptDraft) -> None:
    timeline, steps = draft.timeline, mappings(document.get("steps"))
    counts = Counts(steps, None)
    settled: list[tuple[TurnDraft, TurnExtra, datetime | None]] = []
    for step in steps:
        extra = _extra(step, StepExtra, draft) or StepExtra()
        at, source, text = moment(step.get("timestamp")), step.get("source"), step.get("message")
        text = string(text)
        if source == "agent":
            message = timeline.begin_message(extra.id, string(step.get("model_name")), at)
            message.summary = extra.summary
            message.texts.append(text)
            message.thoughts.append(string(step.get("reasoning_content")))
            if type(metrics := step.get("metrics")) is dict:
                timeline.spend(counts.of_step(metrics))
            message.calls += _calls(step, extra.calls)
        elif source == "system" and extra.turn is None:
            draft.system_prompt = text
        elif source in ("user", "system"):
            turn = extra.turn or TurnExtra()
            begun = timeline.prompt(text, at, turn.images, turn.origin, expansion=turn.expansion)
            settled.append((begun, turn, at))
    for begun, turn, at in settled:  # whatever its messages' times made of it
        begun.at, begun.ended = at, moment(turn.ended)
        begun.compacted, begun.rewound = turn.compacted, turn.rewound
        begun.interventions = [
            Intervention(
                kind=deed.kind, text=deed.text, at=moment(deed.at), expansion=deed.expansion
            )
            for deed in turn.interventions
        ]


def _calls(step: JsonRecord, extras: tuple[CallExtra, ...]) -> list[CallDraft]:
    results = {
        string(result.get("source_call_id")): result.get("content")
        for result in mappings(mapping(step.get("observation")).get("results"))
    }
    calls: list[CallDraft] = []
    for number, asked in enumerate(mappings(step.get("tool_calls"))):
        extra = extras[number] if number < len(extras) else CallExtra()
        id = string(asked.get("tool_call_id"))
        result = results.get(id)
        result = result if type(result) is str else None
        call = CallDraft(
            id=id if extra.id is None else extra.id,
            name=string(asked.get("function_name")),
            input="" if extra.without_input else arguments_text(asked.get("arguments")),
            at=moment(step.get("timestamp") if extra.at is UNSET else extra.at),
            result=result,
            status=extra.status or status_of(result),
            exit_code=extra.exit_code,
            is_edited=True,
        )
        if extra.path is not None:
            call.edit = FileEdit(
                extra.path, extra.added, extra.removed, extra.patch, extra.estimated
            )
        calls.append(call)
    return calls


def _take_agent(document: JsonRecord, agent: TranscriptDraft) -> None:
    extra = _extra(document, AgentExtra, agent) or AgentExtra()
    agent.id, agent.agent_type, agent.title = extra.id, extra.type, extra.description
    agent.place, agent.call_id, agent.parent_call = extra.place, extra.call_id, ""
    agent.usage, agent.api_calls = Usage(), 0  # within the session's
    agent.started = agent.ended = None


def _take_session(document: JsonRecord, draft: TranscriptDraft) -> None:
    extra = _extra(document, SessionExtra, draft)
    if extra is None:
        return
    started, ended = moment(extra.started), moment(extra.ended)
    if started and ended and started <= ended:
        draft.started, draft.ended = started, ended
    draft.repository, draft.branch, draft.cwd = extra.repository, extra.branch, extra.cwd
    draft.title, draft.task, draft.commit = extra.title, extra.task, extra.base_commit
    draft.usage = Usage(*extra.usage)
    draft.reported_usage = Usage(*extra.reported_usage) if extra.reported_usage else None
    draft.api_calls = extra.api_calls
    draft.instructions = list(extra.instructions or ())
    draft.shows_instructions = extra.instructions is not None
    timeline = draft.timeline
    timeline.slash_commands, timeline.compactions = extra.slash_commands, extra.compactions
    timeline.notices = [at for notice in extra.notices if (at := moment(notice))]


def _extra(holder: JsonRecord, kind: type[T], draft: TranscriptDraft) -> T | None:
    value = mapping(holder.get("extra")).get(EXTRA)
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        draft.report(0, f"what stands under {EXTRA} is not as it was written: {error}")
        return None
