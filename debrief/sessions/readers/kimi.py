"""Kimi Code: ``~/.kimi-code/sessions/<folder>/<session>/agents/<agent>/wire.jsonl``.

A stream of events for each agent: ``main`` is the session's, the others are its subagents. Beside
them ``state.json`` holds the session's title and folder.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from debrief.sessions.model import ContextSource
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.patches import edit_of_arguments
from debrief.sessions.readers.timeline import MessageDraft
from debrief.sessions.readers.values import (
    TokenNames,
    declared_tools,
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    text_of,
    whole_number,
    words_of,
)

_CREATED = re.compile(rb'(?<!\\)"created_at"\s*:\s*(\d{9,16})')
_EXIT_CODE = re.compile(r"exit code:? (-?\d+)\.?\s*\Z", re.IGNORECASE)
_PROMPT_FILE = re.compile(r"<!-- From: ([^\n<>]+) -->\n(.*?)(?=\n<!-- From: |\n```|\Z)", re.DOTALL)
"""The person's prompt files within the system prompt."""
_BILLED = TokenNames("inputOther", "output", "inputCacheCreation", "inputCacheRead")
_MAIN = "main"


class KimiReader(TranscriptReader):
    """Kimi Code's sessions, a stream of events for each of its agents."""

    source = "kimi"
    tool = "kimi-code"
    tools = ToolNames(
        run="Bash",
        read="Read ReadMediaFile",
        search="Grep Glob",
        edit="Edit Write MultiEdit",
        wait="TaskOutput",
        plan="TodoList TaskList EnterPlanMode ExitPlanMode",
        delegate="Agent",
        ask="AskUserQuestion",
        web="WebSearch FetchURL",
    )
    home_folders = (".kimi-code/sessions",)
    moved_by = ("KIMI_CODE_HOME", ".kimi-code")
    start = re.compile(rb'\A\s*\{\s*"type"\s*:\s*"metadata"\s*,\s*"protocol_version"\s*:')
    message_mark = re.compile(rb'(?<!\\)"type"\s*:\s*"(?:turn\.prompt|context\.append_)')

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning and the file's place say."""
        session, agent = _place(path)
        created = head.text(_CREATED)  # a fork is a copy, and keeps its original's
        return Peek(
            session_id=session if agent == _MAIN else f"{session}-{agent}",
            started=moment(int(created or 0)),
            parent="" if agent == _MAIN else session,
            root=str(uuid5(NAMESPACE_OID, f"{agent} {created}")) if created else "",
        )

    def beside(self, path: str) -> tuple[str, ...]:
        """Return the state of a session when there is one."""
        state = Path(path).parents[2] / "state.json" if _place(path)[1] == _MAIN else None
        return (str(state),) if state is not None and _in_tree(path) and state.is_file() else ()

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one agent's events."""
        draft = TranscriptDraft(path)
        session, agent = _place(path)
        draft.id, draft.parent = (session, "") if agent == _MAIN else (agent, session)
        for described in draft.load_beside(self.beside(path)):
            draft.take(described, cwd="cwd", title="title")
        draft.read_lines(_Wire(draft).read)
        draft.references.reverse()  # its own before the session's state
        return draft


READER = KimiReader()


def _in_tree(path: str) -> bool:
    parts = Path(path).parts
    return len(parts) > 4 and parts[-1] == "wire.jsonl" and parts[-3] == "agents"


def _place(path: str) -> tuple[str, str]:
    """Return the session and the agent that a path is filed under."""
    parts = Path(path).parts
    return (parts[-4], parts[-2]) if _in_tree(path) else (Path(path).stem, _MAIN)


class _Wire:
    """One agent's events while they are read."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self.draft = draft
        self.timeline = draft.timeline
        self.model = ""
        self.step = ""
        """The step whose message has not begun: one that fails leaves none."""
        self.refused: dict[str, str] = {}
        """What the person said when they refused a call."""

    def read(self, lines: JsonLines, _: TranscriptDraft) -> None:
        """Take a file's records over."""
        for record in lines:
            at = moment(record.get("time", record.get("created_at")))
            self.draft.see(at)
            take = _EVENTS.get(string(record.get("type")))
            if take is not None:
                take(self, record, at)

    def profile(self, record: JsonRecord, _: datetime | None) -> None:
        """Take what the agent is, and its system prompt."""
        draft = self.draft
        place = mapping(record.get("environmentDisclosure"))
        draft.cwd = draft.cwd or first_string(record, "cwd") or string(place.get("cwd"))
        draft.take(record, agent_type="profileName", model="modelAlias")
        prompt = string(record.get("systemPrompt"))
        if prompt and not self.timeline.messages:
            draft.system_prompt, draft.shows_instructions = prompt, True
            draft.instructions.clear()
            files = _PROMPT_FILE.findall(prompt)
            draft.add_instructions(((path, text.strip("\n")) for path, text in files), "system")

    def request(self, record: JsonRecord, _: datetime | None) -> None:
        """Take the model that is asked, and its system prompt where that is another one."""
        self.model = string(record.get("model"))
        if record.get("kind") == "compaction":
            self.timeline.message, self.step = None, ""
        elif not self.timeline.messages:
            self.draft.take(record, system_prompt="systemPrompt")

    def tools(self, record: JsonRecord, _: datetime | None) -> None:
        """Take the tools that the model is sent."""
        self.draft.declared += declared_tools(record.get("tools"))

    def prompt(self, record: JsonRecord, at: datetime | None) -> None:
        """Begin a turn; a subagent is asked by another agent, and programs ask in between."""
        self._ask(record.get("input"), mapping(record.get("origin")), at)

    def steer(self, record: JsonRecord, at: datetime | None) -> None:
        """Take what was said while the model worked."""
        if mapping(record.get("origin")).get("kind", "user") == "user":
            self.timeline.intervene("remark", words_of(record.get("input")), at)
        else:
            self._add_context(record.get("input"), mapping(record.get("origin")), at)

    def message(self, record: JsonRecord, at: datetime | None) -> None:
        """Take a message that was put into the conversation, if no event brought it already."""
        message = mapping(record.get("message"))
        role, content = message.get("role"), message.get("content")
        origin = mapping(message.get("origin"))
        if role == "user" and origin.get("kind", "user") == "user":
            if self.timeline.fresh_prompt() != words_of(content):
                self._ask(content, origin, at)
        elif role == "user":
            self._add_context(content, origin, at)
        elif role == "assistant":
            identity = string(message.get("id")) or f"message-{self.timeline.messages + 1}"
            answer = self.timeline.begin_message(identity, self.model or self.draft.model, at)
            answer.texts.append(words_of(content))
            for call in mappings(message.get("toolCalls")):
                given = call.get("arguments")
                self.timeline.call(answer, call.get("id"), call.get("name"), given, at)
        elif role == "tool":
            result = {"output": content, "isError": message.get("isError")}
            self._result(string(message.get("toolCallId")), result, at)

    def loop(self, record: JsonRecord, at: datetime | None) -> None:
        """Take what happened in a step of the loop that asks the model and runs its calls."""
        event = mapping(record.get("event"))
        kind = event.get("type")
        if kind == "step.begin":
            self.step, self.timeline.message = string(event.get("uuid")) or "step", None
        elif kind == "content.part":
            part = mapping(event.get("part"))
            if part.get("type") == "text":
                self._message(at).texts.append(string(part.get("text")))
            elif part.get("type") == "think":
                self._message(at).thoughts.append(string(part.get("think")))
        elif kind == "tool.call":
            id, name, given = event.get("toolCallId"), event.get("name"), event.get("args")
            self.timeline.call(self._message(at), id, name, given, at)
        elif kind == "tool.result":
            result = mapping(event.get("result"))
            self._result(string(event.get("toolCallId")), result, at)

    def usage(self, record: JsonRecord, at: datetime | None) -> None:
        """Take the tokens of a call of the model."""
        if record.get("usageScope", "turn") == "turn" and self.step:
            self._message(at)
        self.timeline.spend(_BILLED.usage(record.get("usage")))

    def approval(self, record: JsonRecord, _: datetime | None) -> None:
        """Take what the person said to a call that needs their consent."""
        decision = mapping(record.get("result"))
        if decision.get("decision") in ("rejected", "cancelled"):
            self.refused[string(record.get("toolCallId"))] = string(decision.get("feedback"))

    def compaction(self, record: JsonRecord, _: datetime | None) -> None:
        """Take what the model is given in place of the conversation."""
        summary = mapping(record.get("summary")).get("content", record.get("summary"))
        self.timeline.compact(string(record.get("contextSummary")) or text_of(summary))

    def undo(self, record: JsonRecord, _: datetime | None) -> None:
        """Take turns back, the latest first."""
        kept = [turn for turn in self.timeline.turns if not turn.rewound]
        for turn in kept[max(0, len(kept) - whole_number(record.get("count"))) :]:
            turn.rewound = True

    def ended(self, record: JsonRecord, at: datetime | None) -> None:
        """Take an interruption: a turn that ended as it was cancelled."""
        reason, target = record.get("reason", "user_cancelled"), record.get("target", "active")
        if reason in ("cancelled", "user_cancelled") and target == "active":
            self.timeline.interrupt(at)

    def spawned(self, record: JsonRecord, _: datetime | None) -> None:
        """Take which call started a subagent."""
        child = string(record.get("subagentId"))
        self.draft.child_calls[child] = string(record.get("parentToolCallId"))

    def _message(self, at: datetime | None) -> MessageDraft:
        if self.timeline.message is None or self.step:
            identity, self.step = self.step or f"message-{self.timeline.messages + 1}", ""
            return self.timeline.begin_message(identity, self.model or self.draft.model, at)
        return self.timeline.message

    def _ask(self, content: Any, origin: JsonRecord, at: datetime | None) -> None:
        text = words_of(content)
        images = sum(part.get("type") == "image_url" for part in mappings(content))
        kind = origin.get("kind", "user")
        if kind == "user" or self.draft.parent:
            self.timeline.prompt(text, at, images)
        elif origin.get("trigger") == "user-slash":
            skill = string(origin.get("skillName"))
            name = f"skill:{skill}" if skill else string(origin.get("commandName"))
            arguments = first_string(origin, "skillArgs", "commandArgs")
            self.timeline.prompt(f"/{name} {arguments}".strip(), at, images, expansion=text)
        else:
            self._add_context(content, origin, at)

    def _add_context(self, content: Any, origin: JsonRecord, at: datetime | None) -> None:
        """Take what the program put into the conversation by itself, by what its origin is."""
        kind = string(origin.get("kind"))
        found = (who for part, who in _SOURCES.items() if part in kind)
        said_by: ContextSource = next(found, "program")
        self.timeline.add_context(said_by, words_of(content), at)

    def _result(self, call_id: str, result: JsonRecord, at: datetime | None) -> None:
        call = self.draft.called(call_id)
        if call is None:
            return
        parts = (text_of(result.get("output")), string(result.get("note")))
        text = "\n".join(filter(None, parts))
        if call_id in self.refused:
            self.timeline.reject(call, text, at, words=self.refused.pop(call_id))
            return
        failed, code = result.get("isError") is True, None
        if call.name == "Bash":
            code = number_in(text[-100:], _EXIT_CODE, None if failed else 0)
        edit = None
        if call.name in ("Edit", "Write", "MultiEdit"):
            edit = edit_of_arguments(call.arguments)
        self.timeline.result(call, text, failed=failed, at=at, exit_code=code, edit=edit)


_SOURCES: dict[str, ContextSource] = {"task": "task", "hook": "hook", "shell": "command"}
"""Who speaks, by a part of the kind of a message's origin."""
_EVENTS = {
    "profile.bind": _Wire.profile,
    "config.update": _Wire.profile,
    "llm.request": _Wire.request,
    "llm.tools_snapshot": _Wire.tools,
    "turn.prompt": _Wire.prompt,
    "turn.steer": _Wire.steer,
    "context.append_message": _Wire.message,
    "context.append_loop_event": _Wire.loop,
    "usage.record": _Wire.usage,
    "permission.record_approval_result": _Wire.approval,
    "context.apply_compaction": _Wire.compaction,
    "context.undo": _Wire.undo,
    "turn.cancel": _Wire.ended,
    "turn.ended": _Wire.ended,
    "subagent.spawned": _Wire.spawned,
}
