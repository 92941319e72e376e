"""Copilot CLI: ``~/.copilot/session-state/<id>/events.jsonl``, or ``<id>.jsonl``.

Subagents' events are in the same stream. Tokens are reported by call, or in earlier versions when
the session shuts down, for the whole session so far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from operator import ge
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from debrief.sessions.model import ContextSource, Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import (
    Claims,
    Head,
    Peek,
    ToolNames,
    Transcript,
    TranscriptReader,
)
from debrief.sessions.readers.documents import JsonLines, JsonRecord, compact_json
from debrief.sessions.readers.files import Walk
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, from_unified, joined
from debrief.sessions.readers.timeline import NO_USAGE
from debrief.sessions.readers.values import (
    Repeats,
    TokenNames,
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    whole_number,
)
from debrief.sessions.readers.vscode import READER as VSCODE

_ID = re.compile(rb'(?<!\\)"sessionId"\s*:\s*"([^"\\]+)"')
_EXIT_CODE = re.compile(r"exit(?:ed with)? code:? (-?\d+)>?\s*\Z")
_NOTICE = "<system_notification>"
_MACHINE_SOURCES = ("system", "skill", "command", "autopilot", "agent-")
_INSTRUCTIONS = re.compile(r"<custom_instruction>\n(.*?)\n</custom_instruction>", re.DOTALL)
"""The person's prompt files in the system prompt."""
_REFUSALS = ("rejected", "denied")
_EDITING = re.compile(
    r"create(?:_file)?|write_file|edit|insert_edit_into_file|apply_patch|str_replace(?:_editor)?"
    r"|replace_string_in_file"
)
_SECTION = re.compile(r"^diff --git ", re.MULTILINE)
_NAME = re.compile(r"^(?:\+\+\+ (?:b/)?|--- (?:a/)?)(.+)$", re.MULTILINE)
_BILLED = TokenNames(
    "inputTokens", "outputTokens", "cacheWriteTokens", "cacheReadTokens", cached_inside=True
)
_NOWHERE = ("/dev/null", "dev/null")


class CopilotReader(TranscriptReader):
    """Copilot CLI's streams of events, one a session."""

    source = "copilot"
    tool = "copilot-cli"
    tools = ToolNames(
        run="bash powershell run_in_terminal runInTerminal",
        read="view read_file readFile",
        search="grep glob rg file_search grep_search semantic_search list_dir",
        edit="create create_file write_file edit insert_edit_into_file apply_patch str_replace "
        "str_replace_editor replace_string_in_file",
        wait="read_bash read_powershell read_agent",
        plan="update_todo exit_plan_mode",
        delegate="task",
        ask="ask_user",
        web="web_fetch web_search",
    )
    home_folders = (".copilot/session-state",)
    start = re.compile(rb'\A[^\n]{0,4000}?(?<!\\)"type"\s*:\s*"session\.(?:start|resume)"')
    marks = (re.compile(rb'(?<!\\)"data"\s*:\s*\{'),)
    message_mark = re.compile(
        rb'(?<!\\)"type"\s*:\s*"(?:user\.message|assistant\.message|tool\.execution_)'
    )

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield the streams, but those of VS Code's chats that can be read as such."""
        chats = [
            path for path, beginning in claims.get(VSCODE.source, {}).items() if beginning.peek
        ]
        streams = {stream for path in chats for stream in VSCODE.beside(path)}
        return (found for found in super().transcripts(walk, claims) if found.path not in streams)

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says; a session without an id is named after its file."""
        identity = head.text(_ID) or _id_in_path(path)
        return Peek(session_id=identity, started=head.first_time())

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one stream."""
        draft = TranscriptDraft(path)
        draft.read_lines(_convert)
        draft.id = draft.id or _id_in_path(path)
        return draft


READER = CopilotReader()


def _id_in_path(path: str) -> str:
    """Return the session's id in the path: the file's name, or its folder's for ``events``."""
    file = Path(path)
    return file.parent.name if file.stem == "events" else file.stem


def _convert(lines: JsonLines, draft: TranscriptDraft) -> None:
    stream = _Stream(draft)
    earlier = Repeats()
    for record in lines:
        if earlier.hold(string(record.get("id")), record):
            lines.report("the event repeats an earlier one and was counted once")
            continue
        if type(record.get("data")) is dict:
            stream.add(string(record.get("type")), record["data"], record)
        elif "data" in record:
            lines.report("an event without data")
    stream.finish()


class _Stream:
    """Keeps what one event must know of those before it."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self._draft = draft
        self._timeline = draft.timeline
        self._model = self._last_context = ""
        self._billed = NO_USAGE
        """What shutdowns say that the session cost so far."""
        self._counted = NO_USAGE
        """What records of single calls add up to."""
        self._unspent: dict[str, Usage] = {}
        """Tokens of the calls whose messages are still to come, by agent."""
        self._callers: dict[str, str] = {}
        """The calls that started subagents, by the subagents' ids."""
        self._since = 0
        """Output tokens of messages after the last shutdown; one may count none of them."""
        self._shut_down = False
        self._billed_models: set[str] = set()
        self._asides: dict[str, str] = {}
        """Commands that the person runs beside the conversation, by the ids of their results."""
        self._looked_up: set[str] = set()
        """Ids of calls that the program itself makes when work in the background has ended."""
        self._follows_notice = self._is_numbered = False
        self._permissions: dict[str, str] = {}
        """The calls that permission was asked for, by the requests' ids."""
        self._events: dict[str, Callable[[JsonRecord, datetime | None], None]] = {
            "user.message": self._ask,
            "system.message": self._instruct,
            "session.start": self._begin,
            "session.resume": self._begin,
            "session.model_change": self._begin,
            "session.usage_record": self._record_usage,
            "session.shutdown": self._shutdown,
            "tool.user_requested": self._run_aside,
            "tool.execution_start": self._start,
            "tool.execution_complete": self._complete,
            "permission.completed": self._permitted,
        }

    def add(self, kind: str, data: JsonRecord, record: JsonRecord) -> None:
        at = moment(record.get("timestamp"))
        self._draft.see(at)
        agent = string(record.get("agentId"))
        if agent and "parentToolCallId" not in data and kind != "subagent.started":
            data = {**data, "parentToolCallId": self._callers.get(agent, "")}
        follows_notice, self._follows_notice = self._follows_notice, kind == "system.notification"
        if kind == "assistant.message":
            is_numbered = "interactionId" in data
            self._is_numbered |= is_numbered
            if (
                follows_notice and self._is_numbered and not is_numbered
            ):  # no request of the model's
                made = mappings(data.get("toolRequests"))
                self._looked_up.update(string(call.get("toolCallId")) for call in made)
                return
            self._answer(data, string(record.get("id")), at)
        elif kind == "session.compaction_complete" and data.get("success") is not False:
            self._timeline.compact(string(data.get("summaryContent")))
        elif kind == "system.notification":
            self._add_context("task", string(data.get("content")), at)
        elif kind == "abort":
            self._timeline.interrupt(at)
        elif kind == "permission.requested":
            call = string(mapping(data.get("permissionRequest")).get("toolCallId"))
            self._permissions[string(data.get("requestId"))] = call
        elif kind == "subagent.started":
            self._callers[agent] = string(data.get("toolCallId"))
            self._agent(self._callers[agent]).agent_type = string(data.get("agentName"))
        elif take := self._events.get(kind):
            take(data, at)

    def finish(self) -> None:
        """Settle the tokens: as the shutdowns count them, and what came after the last."""
        draft = self._draft
        if len(self._billed_models) == 1:
            (model,) = self._billed_models
            for each in (draft, *draft.agents.values()):
                for turn in each.timeline.turns:
                    for message in turn.messages:
                        message.model = message.model or model
        if self._counted != NO_USAGE:
            draft.usage = self._counted
            draft.reported_usage = self._billed if self._shut_down and not self._since else None
            return
        draft.usage = self._billed + Usage(output=self._since)
        if not self._shut_down and self._timeline.turns:
            draft.report(0, "no shutdown was recorded: input tokens are not known")

    def _begin(self, data: JsonRecord, _: datetime | None) -> None:
        draft = self._draft
        draft.take(data, id="sessionId", version="copilotVersion")
        self._model = first_string(data, "newModel", "selectedModel") or self._model
        if "vscodeVersion" in data:
            draft.tool = "copilot-vscode"
        context = mapping(data.get("context"))
        draft.take(context, cwd="cwd", branch="branch", commit="headCommit")
        draft.repository = draft.repository or string(context.get("repository")).split("/")[-1]

    def _ask(self, data: JsonRecord, at: datetime | None) -> None:
        text = string(data.get("content"))
        if data.get("parentToolCallId"):
            self._of(data).prompt = text
            return
        is_notice = text.startswith(_NOTICE)
        if is_notice or string(data.get("source")).startswith(_MACHINE_SOURCES):
            self._add_context("task" if is_notice else "program", text, at)
            return
        sent = string(data.get("transformedContent"))
        if text and text in sent:
            for added in (part.strip() for part in sent.split(text, 1)):
                if added:
                    self._add_context("program", added, at)
        images = sum(
            first_string(each, "mimeType", "type").startswith("image")
            for each in mappings(data.get("attachments"))
        )
        if text.strip() or images:
            self._timeline.prompt(text, at, images=images)

    def _add_context(self, said_by: ContextSource, text: str, at: datetime | None) -> None:
        """Take what the model was told, once: a notification may be a message as well."""
        if text != self._last_context:
            self._timeline.add_context(said_by, text, at)
        self._last_context = text

    def _answer(self, data: JsonRecord, identity: str, at: datetime | None) -> None:
        draft = self._of(data)
        model = string(data.get("model")) or self._model
        name = string(data.get("messageId")) or identity
        message = draft.timeline.begin_message(name, model, at)
        message.texts.append(string(data.get("content")))
        message.thoughts.append(string(data.get("reasoningText")))
        for request in mappings(data.get("toolRequests")):
            call_id, tool, given = map(request.get, ("toolCallId", "name", "arguments"))
            draft.timeline.call(message, call_id, tool, given, at)
        spent = self._unspent.pop(string(data.get("parentToolCallId")), None)
        output = spent.output if spent else whole_number(data.get("outputTokens"))
        self._since += output
        message.usage += spent or Usage(output=output)

    def _run_aside(self, data: JsonRecord, _: datetime | None) -> None:
        command = string(mapping(data.get("arguments")).get("command"))
        self._asides[string(data.get("toolCallId"))] = command

    def _start(self, data: JsonRecord, at: datetime | None) -> None:
        timeline, call_id = self._of(data).timeline, string(data.get("toolCallId"))
        if call_id in self._looked_up:
            return
        call = timeline.calls.get(call_id)
        if call is None:
            name = f"{call_id}-message"
            message = timeline.message or timeline.begin_message(name, self._model, at)
            given = data.get("arguments")
            call = timeline.call(message, call_id, data.get("toolName"), given, at)
        call.at = at or call.at

    def _complete(self, data: JsonRecord, at: datetime | None) -> None:
        timeline, call_id = self._of(data).timeline, string(data.get("toolCallId"))
        result, error = mapping(data.get("result")), data.get("error")
        command = self._asides.pop(call_id, None)
        if command is not None:
            output, is_ok = _text_of(result, error) or "", data.get("success") is True
            timeline.add_context("command", _command_text(command, output, is_ok), at)
            return
        if call_id in self._looked_up:
            self._looked_up.remove(call_id)
            self._add_context("task", _text_of(result, error) or "", at)
            return
        call = timeline.calls.get(call_id)
        if call is None:
            self._draft.orphan_results += 1
            return
        if call.status == "rejected":
            return
        kind, text = result.get("result_type"), _text_of(result, error)
        exit_code = number_in(text or "", _EXIT_CODE)
        if kind in _REFUSALS or string(mapping(error).get("code")) in _REFUSALS:
            timeline.reject(call, text or "", at)
            return
        failed = data.get("success") is False or type(error) is dict or kind == "failure"
        edit = None
        if _EDITING.fullmatch(call.name):
            # The diff of a patch that adds a file has a line too many.
            diff = "" if call.name == "apply_patch" else string(result.get("detailedContent"))
            edit = _edit(call.arguments, diff)
        timeline.result(call, text, failed=failed, at=at, exit_code=exit_code, edit=edit)

    def _permitted(self, data: JsonRecord, at: datetime | None) -> None:
        result = mapping(data.get("result"))
        kind, feedback = string(result.get("kind")), string(result.get("feedback"))
        request = self._permissions.get(string(data.get("requestId")), "")
        call = self._timeline.calls.get(string(data.get("toolCallId")) or request)
        if call is not None and kind.startswith("denied") and "user" in kind:
            words = f"The user said: {feedback}" if feedback else "The user refused this call."
            self._timeline.reject(call, words, at)

    def _record_usage(self, data: JsonRecord, _: datetime | None) -> None:
        """Take the tokens of one call, which comes before its message."""
        usage = _BILLED.usage(data.get("usage"))
        self._counted += usage
        caller = string(data.get("parentToolCallId"))
        self._unspent[caller] = self._unspent.get(caller, NO_USAGE) + usage

    def _instruct(self, data: JsonRecord, _: datetime | None) -> None:
        """Take the system prompt of the session's own agent, with the person's prompts in it."""
        text, draft = string(data.get("content")), self._draft
        if not data.get("parentToolCallId") and not draft.system_prompt:
            draft.system_prompt, draft.shows_instructions = text, True
            draft.add_instructions((("", own) for own in _INSTRUCTIONS.findall(text)), "system")

    def _shutdown(self, data: JsonRecord, _: datetime | None) -> None:
        """Take what the session cost so far; a version that counts from 0 again is added up."""
        total = NO_USAGE
        for model, metric in mapping(data.get("modelMetrics")).items():
            usage = mapping(metric).get("usage")
            if type(usage) is dict:
                total += _BILLED.usage(usage)
                self._billed_models.add(model)
        before = self._billed
        is_cumulative = all(map(ge, astuple(total), astuple(before)))
        self._billed = total if is_cumulative else before + total
        missing = max(0, self._since - (self._billed.output - before.output))
        self._billed += Usage(output=missing)
        self._shut_down = True
        self._since = 0

    def _of(self, data: JsonRecord) -> TranscriptDraft:
        parent = string(data.get("parentToolCallId"))
        return self._agent(parent) if parent else self._draft

    def _agent(self, call_id: str) -> TranscriptDraft:
        agent = self._draft.agent(call_id)
        agent.parent_call = agent.call_id = call_id
        return agent


def _text_of(result: JsonRecord, error: Any) -> str | None:
    if type(error) is dict:
        return string(error.get("message"))
    content = result.get("content", result.get("text_result_for_llm"))
    return content if type(content) is str or content is None else compact_json(content)


def _command_text(command: str, output: str, is_ok: bool) -> str:
    """Return what the model is given of a person's command, in the words of version 1.0.102, which
    no event holds."""
    code = "exit code 0" if is_ok else "non-zero exit code"
    said = f"The user executed a shell command directly in their terminal ({code})."
    body = f"{said}\n\nCommand:\n{command}\n\nOutput:\n{output}"
    return f"<user_shell_command_output>\n{body}\n</user_shell_command_output>"


def _edit(given: JsonRecord, diff: str) -> FileEdit | None:
    """Return what a successful call did: its result's own diff counts before its arguments."""
    sections = [f"diff --git {part}" for part in _SECTION.split(diff)[1:]]
    path = first_string(given, "path", "filePath")
    if path and len(sections) == 1:
        return from_unified(path, sections[0])
    if sections:
        return joined(from_unified(_name_in(section), section) for section in sections)
    return edit_of_arguments(given)


def _name_in(section: str) -> str:
    names = [name.strip() for name in reversed(_NAME.findall(section.partition("\n@@")[0]))]
    return next((name for name in names if name not in _NOWHERE), "")
