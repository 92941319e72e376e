"""ATIF, the Agent Trajectory Interchange Format: what Harbor, Terminal-Bench and others write.

A trajectory is one JSON document, wherever its program put it. Subagents are within it, or in files
of their own that name their parent's session; what goes on in another file has the same session id.
What Debrief's own trajectories hold beyond the format is put back where it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

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
from debrief.sessions.model import ContextText, Intervention, Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.atif.steps import TOTALS, Counts, Steps
from debrief.sessions.readers.base import Head, Peek, ToolNames, Transcript, TranscriptReader
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import FileEdit
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft, TurnDraft
from debrief.sessions.readers.values import (
    arguments_text,
    declared_tools,
    first_string,
    mapping,
    mappings,
    moment,
    string,
)

_STEPS = re.compile(rb'(?<!\\)"steps"\s*:\s*\[')
_SESSION = re.compile(rb'(?<!\\)"session_id"\s*:\s*"([^"\\]+)"')
_STARTED = re.compile(rb'(?<!\\)"started"\s*:\s*"([^"\\]{1,40})"')
_PARENT = re.compile(rb'(?<!\\)"parent_session_id"\s*:\s*"([^"\\]+)"')


class AtifReader(TranscriptReader):
    """Trajectories, one document each; the session's tool is the agent that one names."""

    source = "atif"
    tool = "atif"
    tools = ToolNames(
        run="execute_bash exec execute",
        read="read read_file view",
        search="grep glob find ls",
        edit="edit edit_file write write_file create create_file str_replace_editor "
        "str_replace_based_edit_tool",
        wait="process",
        delegate="sessions_spawn",
        web="web_search web_fetch",
    )
    suffixes = (".json",)
    start = re.compile(
        rb'\A\s*\{\s*"(?:schema_version|agent|continued_trajectory_ref|extra|final_metrics|notes'
        rb'|session_id|trajectory_id)"\s*:'
    )
    marks = (re.compile(rb'(?<!\\)"schema_version"\s*:\s*"ATIF-v'),)

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says, or the whole document where that says too little.

        A session without an id is named after its file.
        """
        steps = _STEPS.search(head)
        before = Head(head[: steps.start()] if steps else b"")
        id, parent = before.text(_SESSION), before.text(_PARENT)
        started = before.first_time(_STARTED) or head.first_time()
        if not (id and started):
            try:
                draft = self.read_file(path)
            except (OSError, ValueError):  # reading it says why
                return Peek(session_id=id or Path(path).stem, started=started)
            id, started, parent = draft.id, draft.started, draft.parent
        return Peek(session_id=id, started=started, parent=parent)

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one trajectory."""
        draft = TranscriptDraft(path)
        document = draft.load(path)
        if not string(document.get("schema_version")).startswith("ATIF-v"):
            raise ValueError("no trajectory: it has no schema_version of ATIF")
        convert(document, draft)
        draft.id = draft.id or Path(path).stem
        return draft

    def read_children(
        self, transcript: Transcript, draft: TranscriptDraft
    ) -> Iterator[TranscriptDraft]:
        """Read the subagents that have files of their own."""
        for child in super().read_children(transcript, draft):
            child.agent_type = child.tool
            child.call_id = draft.child_calls.get(child.id, "")
            yield child


READER = AtifReader()


def convert(document: JsonRecord, draft: TranscriptDraft) -> None:
    """Take a trajectory and those within it, each of which is a subagent of the outermost."""
    if is_own(document):
        convert_own(document, draft)
        return
    steps, counts = _take(document, draft)
    waiting = [(each, draft) for each in mappings(document.get("subagent_trajectories"))]
    for inner, outer in waiting:
        name = first_string(inner, "trajectory_id", "session_id")
        agent = draft.agent(name if name not in draft.agents else f"{name}#{len(draft.agents)}")
        _take(inner, agent)
        agent.agent_type = agent.tool
        agent.parent_call = agent.call_id = outer.child_calls.get(name, "")
        waiting += [(each, agent) for each in mappings(inner.get("subagent_trajectories"))]
    totals = document.get("final_metrics")
    if type(totals) is dict and any(name in totals for name in TOTALS):
        total = counts.total(totals)
        if draft.timeline.usage == NO_USAGE:
            draft.usage = total
        elif not (steps.is_partial or draft.agents or draft.child_calls):
            draft.reported_usage = total


def _take(document: JsonRecord, draft: TranscriptDraft) -> tuple[Steps, Counts]:
    """Take one trajectory without those within it."""
    agent = mapping(document.get("agent"))
    extra = mapping(agent.get("extra"))
    draft.take(document, id="session_id")
    draft.take(document, id="trajectory_id")
    draft.take(agent, tool="name", version="version", model="model_name")
    draft.take(extra, parent="parent_session_id")
    draft.cwd, draft.branch = _first(extra.get("cwds")), _first(extra.get("git_branches"))
    draft.declared = declared_tools(agent.get("tool_definitions"))
    listed = mappings(document.get("steps"))
    counts = Counts(listed, document.get("final_metrics"))
    steps = Steps(draft, counts)
    for step in listed:
        steps.add(step)
    draft.system_prompt = "\n\n".join(steps.system)
    return steps, counts


def _first(values: Any) -> str:
    return string(values[0]) if type(values) is list and values else ""


T = TypeVar("T", bound=Struct)


def is_own(document: JsonRecord) -> bool:
    """Return whether Debrief wrote a trajectory."""
    return EXTRA in mapping(document.get("extra"))


def convert_own(document: JsonRecord, draft: TranscriptDraft) -> None:
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
            message.context = tuple(
                ContextText(
                    said_by=each.said_by,
                    text=each.text,
                    at=moment(each.at),
                    call_id=each.call_id,
                    is_behind=each.is_behind,
                )
                for each in extra.context
            )
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
            late_result=extra.late_result,
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
    draft.relative_of = extra.relative_of
    draft.plan = extra.plan
    draft.usage = Usage(*extra.usage)
    draft.reported_usage = Usage(*extra.reported_usage) if extra.reported_usage else None
    draft.api_calls = extra.api_calls
    draft.instructions = list(extra.instructions or ())
    draft.shows_instructions = extra.instructions is not None
    timeline = draft.timeline
    timeline.slash_commands, timeline.compactions = extra.slash_commands, extra.compactions


def _extra(holder: JsonRecord, kind: type[T], draft: TranscriptDraft) -> T | None:
    value = mapping(holder.get("extra")).get(EXTRA)
    if value is None:
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        draft.report(0, f"what stands under {EXTRA} is not as it was written: {error}")
        return None
