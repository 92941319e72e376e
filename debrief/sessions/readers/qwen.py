"""Qwen Code: ``~/.qwen/projects/<project>/chats/<id>.jsonl``, with its subagents' beside them.

What Gemini CLI calls a content stands in an envelope like Claude Code's. Each call of the model
has a record of telemetry as well, and some have no other.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import Branches, TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, Transcript, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.gemini import EXIT_CODE, asked, edit_of, result_text, text_of_content
from debrief.sessions.readers.patches import FileEdit
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft
from debrief.sessions.readers.values import (
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    whole_numbers,
)

_OWN = re.compile(
    rb'(?<!\\)"message"\s*:\s*\{\s*"role"\s*:\s*"\w+"\s*,\s*"parts"\s*:|(?<!\\)"systemPayload"\s*:'
)
"""What Claude Code's records, which may begin in the same way, do not hold."""
_AGENT = "agent-"
_REFUSED = re.compile(r"did not allow|rejected|declined|denied", re.IGNORECASE)
_COUNTED = (
    ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "totalTokenCount"),
    ("input_token_count", "cached_content_token_count", "output_token_count", "total_token_count"),
)
"""What messages and telemetry call their counts."""


class QwenReader(TranscriptReader):
    """Qwen Code's chats and subagents' transcripts, or what telemetry has of subagents without."""

    source = "qwen"
    tool = "qwen-code"
    tools = ToolNames(
        run="run_shell_command",
        read="read_file read_many_files",
        search="grep_search glob list_directory",
        edit="write_file edit",
        plan="todo_write exit_plan_mode",
        delegate="task agent",
        ask="ask_user_question",
        web="web_fetch web_search",
    )
    home_folders = (".qwen/projects",)
    moved_by = ("QWEN_HOME", ".qwen")
    start = re.compile(
        rb'\A\s*\{\s*"uuid"\s*:\s*"[^"\\]*"\s*,\s*"parentUuid"\s*:[^,{}]{1,100},\s*"sessionId"\s*:'
    )
    marks = (_OWN,)
    message_mark = re.compile(rb'(?<!\\)"type"\s*:\s*"(?:user|assistant)"')

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says; a session without an id is named after its file."""
        first = next(iter(head.records()), {})
        session, agent = _ids(first)
        return Peek(
            session_id=agent or session or Path(path).stem,
            started=head.first_time(),
            parent=session if agent else "",
            root=string(first.get("uuid")),
        )

    def beside(self, path: str) -> tuple[str, ...]:
        """Return what describes a subagent, where there is such a file."""
        meta = path.removesuffix(".jsonl") + ".meta.json"
        return (meta,) if Path(path).name.startswith(_AGENT) and Path(meta).is_file() else ()

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one chat, or one subagent's transcript."""
        draft = TranscriptDraft(path)
        for described in draft.load_beside(self.beside(path)):
            draft.take(described, agent_type="agentType", title="description", model="model")
            draft.take(described, parent_call="toolUseId")
        chat = _Chat(draft)
        draft.read_lines(chat.read)
        draft.references.reverse()  # its own before what describes it
        draft.id = draft.id or Path(path).stem
        return draft

    def read_main(self, transcript: Transcript) -> TranscriptDraft:
        """Read a chat, without what it has of subagents whose own transcripts are here."""
        draft = self.read_file(transcript.path)
        for path in transcript.companions:
            draft.agents.pop(Path(path).stem.removeprefix(_AGENT), None)
        return draft


READER = QwenReader()


def _ids(record: JsonRecord) -> tuple[str, str]:
    """Return the ids of a record's session, and of the subagent whose it is."""
    return string(record.get("sessionId")), string(record.get("agentId"))


class _Chat:
    """One file while it is read."""

    def __init__(self, draft: TranscriptDraft) -> None:
        self.draft = draft
        self.timeline = draft.timeline
        self.branches = Branches(draft.timeline)
        self.command = ""
        """A slash command whose text the next record of the person's holds."""
        self.follows_answer = False
        self.answered: Counter[Usage] = Counter()
        """The tokens of the messages, and of the calls of the model as telemetry has them."""
        self.called: Counter[Usage] = Counter()
        self.total = NO_USAGE

    def read(self, lines: JsonLines, _: TranscriptDraft) -> None:
        """Take a file's records over."""
        draft = self.draft
        for record in lines:
            identity, kind = string(record.get("uuid")), record.get("type")
            at = moment(record.get("timestamp"))
            draft.see(at)
            if not draft.id:
                session, agent = _ids(record)
                draft.id, draft.parent = agent or session, session if agent else ""
            draft.take(record, cwd="cwd", branch="gitBranch", version="version")
            content = mapping(record.get("message")).get("parts")
            if kind == "user":
                self._ask(record, content, at)
            elif kind == "assistant":
                self._answer(record, content, identity or f"line-{lines.line}", at)
            elif kind == "tool_result":
                self._result(mapping(record.get("toolCallResult")), content, at)
            elif kind == "system":
                self._event(record.get("subtype"), mapping(record.get("systemPayload")), at)
            self.follows_answer = kind == "assistant" or (kind == "system" and self.follows_answer)
            self.branches.add(identity, string(record.get("parentUuid")))
        self.branches.settle()
        # Summaries and titles have no message of their own.
        self.timeline.usage = sum((self.called - self.answered).elements(), self.timeline.usage)
        if self.total != NO_USAGE:
            draft.reported_usage = self.total

    def _ask(self, record: JsonRecord, content: Any, at: datetime | None) -> None:
        text, images = asked(content)
        shown = string(mapping(record.get("systemPayload")).get("displayText"))
        subtype = record.get("subtype")
        if subtype == "mid_turn_user_message":
            self.timeline.intervene("remark", shown or text, at)
        elif subtype not in (None, "realtime_message", "agent_launch_prompt"):
            self.timeline.add_context("task" if subtype == "notification" else "program", text, at)
        elif text or images:
            typed, self.command = self.command or shown or text, ""
            expansion = text if typed.strip() != text.strip() else ""
            self.timeline.prompt(typed, at, images, expansion=expansion)

    def _answer(self, record: JsonRecord, content: Any, identity: str, at: datetime | None) -> None:
        usage = _usage(record.get("usageMetadata"), _COUNTED[0])
        answer = self.timeline.message
        # A subagent's calls may stand in a record of their own, which has no tokens.
        if answer is None or usage != NO_USAGE or not self.follows_answer:
            model = string(record.get("model")) or self.draft.model
            answer = self.timeline.begin_message(identity, model, at)
        for part in mappings(content):
            call = mapping(part.get("functionCall"))
            if call:
                given = call.get("args")
                self.timeline.call(answer, call.get("id"), call.get("name"), given, at)
            else:
                said = answer.thoughts if part.get("thought") is True else answer.texts
                said.append(text_of_content(part))
        if usage != NO_USAGE:
            self.answered[usage] += 1
            self.timeline.spend(usage)

    def _result(self, outcome: JsonRecord, content: Any, at: datetime | None) -> None:
        responses = [mapping(part.get("functionResponse")) for part in mappings(content)]
        call_id = string(outcome.get("callId"))
        call_id = call_id or next((string(response.get("id")) for response in responses), "")
        call = self.timeline.calls.get(call_id)
        if call is None:
            self.draft.orphan_results += 1
            return
        text, shown = result_text(content), mapping(outcome.get("resultDisplay"))
        status = outcome.get("status")
        failed = status in ("error", "cancelled")
        if status is None:
            failed = any("error" in mapping(response.get("response")) for response in responses)
        if status == "cancelled" and _REFUSED.search(text):
            self.timeline.reject(call, text, at, words="")
            return
        edit = None if failed else _edit(call, shown)
        code = _exit_code(shown, text) if call.name == "run_shell_command" else None
        self.timeline.result(call, text, failed=failed, at=at, exit_code=code, edit=edit)
        if status == "cancelled":
            self.timeline.interrupt(at)
        if shown.get("type") == "task_execution":
            self._link(call, string(shown.get("subagentName")))

    def _link(self, call: CallDraft, kind: str) -> None:
        """Link a call to the first subagent of its kind in telemetry."""
        for agent in self.draft.agents.values():
            if agent.agent_type == kind and not agent.parent_call:
                agent.parent_call = call.id
                return

    def _event(self, subtype: Any, payload: JsonRecord, at: datetime | None) -> None:
        timeline = self.timeline
        if subtype == "ui_telemetry":
            self._telemetry(mapping(payload.get("uiEvent")), at)
        elif subtype == "chat_compression":
            first = next(iter(mappings(payload.get("compressedHistory"))), {})
            timeline.compact(text_of_content(first.get("parts")))
        elif subtype == "slash_command" and payload.get("phase") == "invocation":
            command = string(payload.get("rawCommand"))
            if payload.get("sentToModel") is True:
                self.command = command
            else:
                timeline.intervene("slash_command", command, at)
        elif subtype == "custom_title":
            self.draft.title = string(payload.get("customTitle"))
        elif subtype == "turn_result" and payload.get("state") == "cancelled":
            timeline.interrupt(at)

    def _telemetry(self, event: JsonRecord, at: datetime | None) -> None:
        name = string(event.get("event.name"))
        _, _, thread = string(event.get("prompt_id")).partition("#")
        agent_id, _, _ = thread.partition("#")
        kind = string(event.get("subagent_name"))
        if name.endswith(".api_response"):
            usage = _usage(event, _COUNTED[1])
            self.total += usage
            if not (kind and agent_id):
                self.called[usage] += 1
                return
            agent = self.draft.agent(agent_id, "progress")
            agent.agent_type = kind
            agent.see(at)
            id, model = event.get("response_id"), event.get("model")
            answer = agent.timeline.begin_message(id, model, at)
            answer.texts.append(string(event.get("response_text")))
            agent.timeline.spend(usage)
        elif name.endswith(".tool_call") and agent_id in self.draft.agents:
            agent = self.draft.agents[agent_id]
            if agent.timeline.message is not None:
                given, tool = event.get("function_args"), event.get("function_name")
                call = agent.timeline.call(agent.timeline.message, "", tool, given, at)
                failed = event.get("success") is not True
                agent.timeline.result(call, None, failed=failed, at=at)


def _usage(counts: Any, names: tuple[str, ...]) -> Usage:
    prompt, cached, answer, total = whole_numbers(counts, *names)
    # Some providers count thoughts among an answer's tokens, and some beside them.
    return Usage(max(0, prompt - cached), max(answer, total - prompt), 0, cached)


def _exit_code(shown: JsonRecord, text: str) -> int | None:
    code = shown.get("exitCode")
    return code if type(code) is int else number_in(text, EXIT_CODE)


def _edit(call: CallDraft, shown: JsonRecord) -> FileEdit | None:
    given = call.arguments
    if shown.get("fileDiffTruncated") is True:
        names = ("model_added_lines", "model_removed_lines")
        added, removed = whole_numbers(shown.get("diffStat"), *names)
        path = string(shown.get("filePath")) or first_string(given, "file_path", "absolute_path")
        return FileEdit(path, added, removed)
    return edit_of(call.name, given, shown)
