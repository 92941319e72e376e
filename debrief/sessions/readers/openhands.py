"""OpenHands, since its software agent kit (version 1): a folder ``<id>`` a conversation.

``base_state.json`` has the folder, the model and the tokens of each request; ``events`` has a file
an event, which names the one before it. The times are the machine's own, without a zone.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from debrief.sessions.model import DeclaredTool, Usage
from debrief.sessions.readers.assembly import Branches, TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, replaced
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft, MessageDraft
from debrief.sessions.readers.values import (
    TokenNames,
    first_string,
    mapping,
    mappings,
    moment,
    string,
)

_NAME = "base_state.json"
_ID = re.compile(rb'\A\s*\{\s*"id"\s*:\s*"([0-9a-f-]{32,36})"')
_NO_CODE = -1
_FAILED = "[An error occurred during execution.]\n"
"""What the model is shown before the result of a call that failed."""
BILLED = TokenNames(
    "prompt_tokens",
    "completion_tokens",
    "cache_write_tokens",
    "cache_read_tokens",
    cached_inside=True,
)
_EDITING = frozenset({"create", "str_replace", "insert", "undo_edit"})


class OpenHandsReader(TranscriptReader):
    """Conversations of OpenHands, each with its events."""

    source = "openhands"
    tool = "openhands"
    tools = ToolNames(
        run="terminal",
        search="grep glob",
        edit="file_editor planning_file_editor apply_patch",
        plan="task_tracker",
        delegate="delegate",
    )
    home_folders = (".openhands/conversations",)
    suffixes = (_NAME,)
    start = re.compile(_ID.pattern + rb'\s*,\s*"agent"\s*:\s*\{')

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the state and the first event say; None where nobody said anything."""
        events = self.beside(path)
        if not events:
            return None
        return Peek(session_id=head.text(_ID), started=Head.of(events[0]).first_time())

    def beside(self, path: str) -> tuple[str, ...]:
        """Return the files of a conversation's events, in their order."""
        return tuple(sorted(map(str, Path(path).parent.glob("events/event-*.json"))))

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one conversation."""
        draft = TranscriptDraft(path)
        state = draft.load(path)
        draft.take(state, id="id")
        draft.take(mapping(state.get("workspace")), cwd="working_dir")
        draft.model = string(mapping(mapping(state.get("agent")).get("llm")).get("model"))
        _Talk(draft, state).add(list(draft.load_beside(self.beside(path))))
        return draft


READER = OpenHandsReader()


class _Talk:
    """A conversation's events on their way to its timeline."""

    def __init__(self, draft: TranscriptDraft, state: JsonRecord) -> None:
        self._draft = draft
        self._leaf = string(state.get("leaf_event_id"))
        self._spent: dict[str, Usage] = {}
        """By request, what no message has taken yet."""
        self._models: dict[str, str] = {}
        reported = NO_USAGE
        kinds = mapping(mapping(state.get("stats")).get("usage_to_metrics"))
        for metrics in map(mapping, kinds.values()):
            reported += BILLED.usage(mapping(metrics.get("accumulated_token_usage")))
            for each in mappings(metrics.get("token_usages")):
                id = string(each.get("response_id"))
                self._spent[id] = self._spent.get(id, NO_USAGE) + BILLED.usage(each)
                self._models[id] = string(each.get("model"))
        draft.reported_usage = None if reported == NO_USAGE else reported
        self._request = ""
        """The model's request that the last message came of."""

    def add(self, events: list[JsonRecord]) -> None:
        branches = Branches(self._draft.timeline)
        for event in events:
            self._take(event)
            branches.add(string(event.get("id")), string(event.get("parent_id")))
        if all(event.get("parent_id") for event in events[1:]):  # older versions name none
            ids = [string(event.get("id")) for event in events]
            branches.settle(self._leaf if self._leaf in ids else "")
        self._draft.timeline.message = None
        for usage in self._spent.values():
            self._draft.timeline.spend(usage)

    def _take(self, event: JsonRecord) -> None:
        draft, timeline, kind = self._draft, self._draft.timeline, event.get("kind")
        at = moment(event.get("timestamp"))
        draft.see(at)
        if kind == "SystemPromptEvent":
            parts = (event.get("system_prompt"), event.get("dynamic_context"))
            draft.system_prompt = "\n\n".join(filter(None, (_text([part]) for part in parts)))
            draft.declared = tuple(
                DeclaredTool(
                    name=string(tool["title"]), description=string(tool.get("description"))
                )
                for tool in mappings(event.get("tools"))
                if string(tool.get("title"))
            )
        elif kind == "MessageEvent":
            self._message(event, at)
        elif kind == "ActionEvent":
            self._action(event, at)
        elif kind == "UserRejectObservation":
            call = draft.called(event.get("tool_call_id"))
            if call is not None:
                reason = string(event.get("rejection_reason"))
                if event.get("rejection_source", "user") == "user":
                    timeline.reject(call, f"Action rejected: {reason}", at, reason)
                else:
                    timeline.result(call, f"Action rejected: {reason}", failed=True, at=at)
        elif kind in ("ObservationEvent", "AgentErrorEvent"):
            _result(event, at, draft)
        elif kind == "Condensation":
            timeline.compact(string(event.get("summary")))
        elif kind in ("PauseEvent", "InterruptEvent"):
            timeline.interrupt(at)

    def _message(self, event: JsonRecord, at: datetime | None) -> None:
        timeline, said = self._draft.timeline, mapping(event.get("llm_message"))
        parts = mappings(said.get("content"))
        added = _text(event.get("extended_content"))
        if event.get("source") == "agent":
            self._begin(event, at, _text(parts), said)
        elif event.get("source") == "user":
            images = sum(part.get("type") == "image" for part in parts)
            timeline.prompt(_text(parts), at, images)
        elif _text(parts):
            timeline.add_context("program", _text(parts), at)
        if added and event.get("source") != "agent":
            timeline.add_context("program", added, at, is_behind=True)

    def _action(self, event: JsonRecord, at: datetime | None) -> None:
        request = string(event.get("llm_response_id"))
        message = self._draft.timeline.message
        if message is None or not request or request != self._request:
            message = self._begin(event, at, _text(event.get("thought")), event)
        asked = mapping(event.get("tool_call"))
        self._draft.timeline.call(
            message, event.get("tool_call_id"), event.get("tool_name"), asked.get("arguments"), at
        )

    def _begin(
        self, event: JsonRecord, at: datetime | None, text: str, thought_in: JsonRecord
    ) -> MessageDraft:
        self._request = string(event.get("llm_response_id"))
        model = self._models.get(self._request, "") or self._draft.model
        message = self._draft.timeline.begin_message(self._request or event.get("id"), model, at)
        message.texts.append(text)
        blocks = mappings(thought_in.get("thinking_blocks"))
        thoughts = [string(block.get("thinking")) for block in blocks]
        plain = string(thought_in.get("reasoning_content"))
        message.thoughts += filter(None, thoughts) if any(thoughts) else [plain]
        self._draft.timeline.spend(self._spent.pop(self._request, NO_USAGE))
        return message


def _text(parts: Any) -> str:
    return "\n".join(string(part.get("text")) for part in mappings(parts) if part.get("text"))


def _result(event: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    call = draft.called(event.get("tool_call_id"))
    if call is None:
        return
    seen = mapping(event.get("observation"))
    failed = event.get("kind") == "AgentErrorEvent" or seen.get("is_error") is True
    code = seen.get("exit_code")
    text = _text(seen.get("content"))
    if seen.get("kind") == "TerminalObservation":
        text = of_terminal(text, mapping(seen.get("metadata")))
    if failed and seen:
        text = _FAILED + text
    more = _text(event.get("extended_content"))
    draft.timeline.result(
        call,
        string(event.get("error")) or "\n".join(filter(None, (text, more))),
        failed=failed,
        at=at,
        exit_code=code if type(code) is int and code != _NO_CODE else None,
        edit=_edit(call, seen),
    )


def of_terminal(text: str, about: JsonRecord) -> str:
    """Return a command's output as the model is shown it, but for what is cut out of long ones."""
    text = f"{string(about.get('prefix'))}{text}{string(about.get('suffix'))}"
    if folder := string(about.get("working_dir")):
        text += f"\n[Current working directory: {folder}]"
    if interpreter := string(about.get("py_interpreter_path")):
        text += f"\n[Python interpreter: {interpreter}]"
    if (code := about.get("exit_code", _NO_CODE)) != _NO_CODE:
        text += f"\n[Command finished with exit code {code}]"
    return text


def _edit(call: CallDraft, seen: JsonRecord) -> FileEdit | None:
    given = call.arguments
    if call.name == "apply_patch":
        return edit_of_arguments(given)
    old, new = string(seen.get("old_content")), string(seen.get("new_content"))
    if given.get("command") not in _EDITING or not old + new:
        return None
    return replaced(first_string(seen, "path") or string(given.get("path")), old, new)
