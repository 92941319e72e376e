"""From the records of one Claude Code file to the events of its session, in one pass."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import orjson

from debrief.sessions.model import SubagentPlace, Usage
from debrief.sessions.readers.blocks import images_in, text_of, words_of
from debrief.sessions.readers.claude_code.edits import edit_of
from debrief.sessions.readers.claude_code.records import (
    Block,
    Message,
    Outcome,
    Record,
    Report,
    Tokens,
)
from debrief.sessions.readers.claude_code.threads import Spent, Thread
from debrief.sessions.readers.claude_code.titles import Title
from debrief.sessions.readers.claude_code.turns import Prompt, text_or_none
from debrief.sessions.readers.claude_code.words import (
    INTERRUPTED_CALL,
    REFUSED,
    answers_in,
    arguments_of,
    command_in,
    exit_code_of,
    kind_of,
    pictures_in,
    said_in,
    words_of_refusal,
)
from debrief.sessions.readers.jsonl import JsonLines, string, whole_number
from debrief.sessions.readers.moments import moment
from debrief.sessions.readers.timeline import CallDraft, MessageDraft

MessageKey = tuple[Any, Any]
"""``message.id`` and ``requestId``: what makes lines one message of the API."""

_DECODER = msgspec.json.Decoder(Record)
_SYNTHETIC = "<synthetic>"
_DELEGATING_TOOLS = frozenset({"Task", "Agent"})


class Conversation:
    """All that one file tells. ``read`` fills it; assembly makes a session of it.

    Args:
        path: of the file.
        agent: the id of the subagent whose transcript the whole file is; empty for a session's.
        side: the id of the subagent that a sidechain's records are of when they do not tell.
    """

    def __init__(self, path: str, agent: str = "", side: str = "") -> None:
        self._side_id = side
        self.file = JsonLines(path)
        self.main = Thread(agent, "file" if agent else "inline")
        self.is_agent = bool(agent)
        self.agents: dict[str, Thread] = {}
        self.spent: dict[MessageKey, Spent] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        """Inputs of the calls that started subagents, by call id."""
        self.started_by: dict[str, str] = {}
        """The call that started a subagent, by the subagent's id."""
        self.notices: list[datetime | None] = []
        self.slash_commands = 0
        self.compactions = 0
        self.parents: dict[str, str | None] = {}
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self.session_id = ""
        self.cwd = ""
        self.branch = ""
        self.version = ""
        self.title = Title()
        self.conversational = False
        """Some record is a prompt, an answer or a tool's result."""
        self._drafts: dict[tuple[str, Any, Any], MessageDraft] = {}
        self._calls: dict[str, tuple[CallDraft, Thread]] = {}
        self._early: dict[str, tuple[Block, Any, datetime | None]] = {}
        self._side_of: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._summarised = False
        self._enveloped = False

    def read(self) -> None:
        """Read the file to its end.

        Raises:
            OSError: it cannot be opened or read.
        """
        handlers = {
            "user": self._user_record,
            "assistant": self._assistant_record,
            "system": self._system,
            "attachment": self._attachment,
            "progress": self._progress,
            "summary": self._title_record,
            "ai-title": self._title_record,
            "custom-title": self._title_record,
        }
        parents = self.parents
        stamps: dict[str, Any] = {}
        for record in self.file.typed(_DECODER):
            try:
                stamp = record.timestamp
                at = moment(stamp) if stamp is not None else None
                if at is not None:
                    if self.last_at is None:
                        self.first_at = self.last_at = at
                    elif at > self.last_at:
                        self.last_at = at
                uuid = record.uuid
                if uuid is not None:
                    if uuid in parents and stamps[uuid] == stamp:
                        self._again(record)
                        continue
                    parents[uuid] = text_or_none(record.parentUuid)
                    stamps[uuid] = stamp
                if not self._enveloped:
                    self._envelope(record)
                handler = handlers.get(record.type)
                if handler is not None:
                    handler(record, at)
            except (TypeError, ValueError) as error:
                self.file.report(f"a record of an unexpected shape: {error}")
        self.title.settle(self.parents)

    def _again(self, record: Record) -> None:
        """Take from a repeated record, which a resumption may write, only what may have grown."""
        message = record.message
        if type(message) is not Message or type(message.usage) is not Tokens:
            return
        thread = self._side(record) if record.isSidechain else self.main
        draft = self._drafts.get((thread.id, message.id, record.requestId))
        if draft is not None:
            key = (message.id, record.requestId)
            self._spend(key, message.usage, thread, draft)

    def _envelope(self, record: Record) -> None:
        self.session_id = self.session_id or string(record.sessionId)
        self.cwd = self.cwd or string(record.cwd)
        self.branch = self.branch or string(record.gitBranch)
        self.version = self.version or string(record.version)
        self._enveloped = bool(self.session_id and self.cwd and self.branch and self.version)

    def _assistant_record(self, record: Record, at: datetime | None) -> None:
        thread = self._side(record) if record.isSidechain else self.main
        self._assistant(record, at, thread)

    def _user_record(self, record: Record, at: datetime | None) -> None:
        thread = self._side(record) if record.isSidechain else self.main
        self._user(record, at, thread)

    def _assistant(self, record: Record, at: datetime | None, thread: Thread) -> None:
        message = record.message
        if type(message) is not Message:
            return
        self.conversational = True
        model = message.model
        if model == _SYNTHETIC:
            return
        draft = self._draft(record, message, at, thread)
        content = message.content
        if type(content) is list:
            for block in content:
                if type(block) is not Block:
                    if type(block) is str:
                        draft.texts.append(block)
                    continue
                kind = block.type
                if kind == "tool_use":
                    self._call(block, draft, at, thread)
                elif kind == "text":
                    text = block.text
                    if text and type(text) is str:
                        draft.texts.append(text)
        elif type(content) is str and content:
            draft.texts.append(content)

    def _draft(
        self, record: Record, message: Message, at: datetime | None, thread: Thread
    ) -> MessageDraft:
        id, request = message.id, record.requestId
        if id is None and request is None:
            draft = thread.begin("", string(message.model), at)
        else:
            key = (thread.id, id, request)
            known = self._drafts.get(key)
            if known is None:
                model = string(message.model)
                known = thread.begin(string(id), model, at)
                self._drafts[key] = known
            draft = known
        usage = message.usage
        if type(usage) is Tokens:
            self._spend((id, request), usage, thread, draft)
        return draft

    def _spend(self, key: MessageKey, told: Tokens, thread: Thread, draft: MessageDraft) -> None:
        """Keep the largest usage of a message; the session's own line counts before another's."""
        usage = Usage(
            whole_number(told.input_tokens),
            whole_number(told.output_tokens),
            whole_number(told.cache_creation_input_tokens),
            whole_number(told.cache_read_input_tokens),
        )
        total = usage.input + usage.output + usage.cache_write + usage.cache_read
        known = self.spent.get(key)
        if known is None or (thread is self.main and known.thread is not self.main):
            self.spent[key] = Spent(thread, draft, usage, total)
        elif total > known.total and (thread is self.main or known.thread is not self.main):
            known.usage, known.total = usage, total
            known.draft, known.thread = draft, thread

    def _call(self, block: Block, draft: MessageDraft, at: datetime | None, thread: Thread) -> None:
        id, name = string(block.id), string(block.name)
        if id in self._calls:
            return
        call = CallDraft(id, name, arguments_of(block.input), at)
        draft.calls.append(call)
        if not id:
            return
        self._calls[id] = (call, thread)
        if name in _DELEGATING_TOOLS:
            self.tasks[id] = orjson.loads(call.input)
        early = self._early.pop(id, None) if self._early else None
        if early is not None:
            self._result(*early)

    def _user(self, record: Record, at: datetime | None, thread: Thread) -> None:
        message = record.message
        if type(message) is not Message:
            return
        self.conversational = True
        content = message.content
        if type(content) is list:
            results = [
                block for block in content if type(block) is Block and block.type == "tool_result"
            ]
            if results:
                outcome = record.toolUseResult if len(results) == 1 else None
                for block in results:
                    self._result(block, outcome, at)
                is_mine = thread is self.main and not (self.is_agent or record.isMeta)
                if is_mine and len(content) > len(results):
                    self._remark(said_in(content), at)
                return
        if record.isMeta or record.isVisibleInTranscriptOnly:
            return
        if record.isCompactSummary:
            if not self._summarised:
                self._compact(thread)
            self._summarised = False
            return
        if thread is not self.main or self.is_agent:
            if not thread.prompt:
                thread.prompt = said_in(content)
            return
        self._human(record, content, at)

    def _remark(self, text: str, at: datetime | None) -> None:
        """Take the words that the person typed while a call ran, which stand beside its result."""
        if text and kind_of(text) == "prompt":
            self.main.intervene("remark", text, at)

    def _human(self, record: Record, content: Any, at: datetime | None) -> None:
        text = said_in(content)
        images = pictures_in(content)
        if not text:
            if images:
                self._prompt(record, "", at, images)
            return
        kind = kind_of(text)
        if kind == "prompt":
            self._prompt(record, text, at, images)
        elif kind == "slash_command":
            self.slash_commands += 1
            self.main.intervene("slash_command", command_in(text), at)
        elif kind == "notice":
            self.notices.append(at)
        elif kind == "interruption" and not (
            text.startswith(INTERRUPTED_CALL) and self.main.just_rejected
        ):
            _, _, rest = text.partition("]")
            self.main.intervene("interruption", rest.strip(), at)

    def _prompt(
        self, record: Record, text: str, at: datetime | None, images: int, queued: bool = False
    ) -> None:
        self.main.events.append(Prompt(text, at, images, record, queued))

    def _compact(self, thread: Thread) -> None:
        thread.compact()
        if thread is self.main:
            self.compactions += 1

    def _result(self, block: Block, outcome: Any, at: datetime | None) -> None:
        id = string(block.tool_use_id)
        found = self._calls.get(id)
        if found is None:
            if id:
                self._early.setdefault(id, (block, outcome, at))
            return
        call, thread = found
        if at is not None:
            thread.events.append(at)
        if call.status != "unanswered":
            return
        text = text_of(block.content)
        failed = block.is_error is True
        call.result = text
        if text.startswith(REFUSED):
            call.status = "rejected"
            thread.intervene("rejection", words_of_refusal(text), at)
            return
        call.exit_code = exit_code_of(call.name, text, outcome, failed)
        if failed:
            call.status = "failed"
            return
        call.status = "ok"
        call.edit = edit_of(call.name, call.input, outcome, self._written)
        if call.name == "AskUserQuestion":
            thread.intervene("answer", answers_in(outcome, text), at)
        elif type(outcome) is Outcome and call.id in self.tasks:
            agent = outcome.agentId
            if type(agent) is str:
                self.started_by[agent] = call.id

    def _side(self, record: Record) -> Thread:
        """Return the thread of a sidechain record: its agent's, else that of its chain."""
        if self.is_agent:
            return self.main
        id = string(record.agentId) or self._side_id
        if not id:
            uuid, parent = string(record.uuid), record.parentUuid
            id = self._side_of.get(parent, uuid) if type(parent) is str else uuid
            self._side_of[uuid] = id
        return self._agent(id or "sidechain", "inline")

    def _agent(self, id: str, place: SubagentPlace) -> Thread:
        thread = self.agents.get(id)
        if thread is None:
            thread = self.agents[id] = Thread(id, place)
        return thread

    def _system(self, record: Record, at: datetime | None) -> None:
        if record.subtype == "compact_boundary":
            thread = self._side(record) if record.isSidechain else self.main
            self._compact(thread)
            self._summarised = True

    def _attachment(self, record: Record, at: datetime | None) -> None:
        attachment = record.attachment
        if type(attachment) is not dict or attachment.get("type") != "queued_command":
            return
        if record.isSidechain or self.is_agent:
            return
        content = attachment.get("prompt")
        text, images = "\n".join(words_of(content)).strip(), images_in(content)
        kind = kind_of(text)
        if kind == "notice":
            self.notices.append(at)
        elif kind == "prompt" and (text or images) and attachment.get("commandMode") == "prompt":
            self.conversational = True
            self._prompt(record, text, at, images, queued=True)

    def _progress(self, record: Record, at: datetime | None) -> None:
        data = record.data
        if type(data) is not Report or data.type != "agent_progress":
            return
        inner, id = data.message, string(data.agentId)
        if type(inner) is not Record or not id:
            return
        thread = self._agent(id, "progress")
        if thread.place != "progress":
            return
        thread.call_id = thread.call_id or string(record.parentToolUseID)
        thread.prompt = thread.prompt or string(data.prompt)
        kind, stamp = inner.type, moment(inner.timestamp) or at
        if kind == "assistant":
            self._assistant(inner, stamp, thread)
        elif kind == "user":
            self._user(inner, stamp, thread)

    def _title_record(self, record: Record, at: datetime | None) -> None:
        self.title.take(record)
