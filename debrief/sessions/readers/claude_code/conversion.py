"""Convert the records of one Claude Code file into events of its session."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from debrief.sessions.model import ContextText, Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.claude_code import content as said
from debrief.sessions.readers.claude_code import records
from debrief.sessions.readers.claude_code.attachments import context_in
from debrief.sessions.readers.claude_code.records import Block, ClaudeMessage, ClaudeRecord
from debrief.sessions.readers.documents import JsonLines
from debrief.sessions.readers.timeline import (
    ASKING_TOOLS,
    NO_USAGE,
    CallDraft,
    MessageDraft,
    TurnDraft,
)
from debrief.sessions.readers.values import (
    CALL_TYPES,
    first_string,
    is_served_result,
    moment,
    qualified,
    served_result,
    string,
    text_of,
)

MessageKey = tuple[Any, Any]
"""``message.id`` and ``requestId``: what makes lines one message of the API."""
_SPEECH = frozenset({"user", "assistant"})
_SYNTHETIC = "<synthetic>"
_DELEGATING_TOOLS = frozenset({"Task", "Agent"})
_ADVISOR = "advisor"
_WAITING_TOOLS = frozenset({"BashOutput", "TaskOutput", "AgentOutputTool"})


class TranscriptFile:
    """All that one file holds: its own thread, and those of subagents inside it.

    ``read`` fills it; assembly makes a session of it.

    Args:
        path: of the file.
        agent: the id of the subagent whose transcript the whole file is; empty for a session's.
        side: the id of the subagent that a sidechain's records are of when they do not name it.
    """

    def __init__(self, path: str, agent: str = "", side: str = "") -> None:
        self._side_id = side
        self.lines = JsonLines(path)
        self.main = TranscriptDraft(path)
        self.main.id = agent
        self.is_agent = bool(agent)
        self.agents = self.main.agents
        self.spent: dict[MessageKey, records.CountedUsage] = {}
        self.tasks: list[tuple[CallDraft, dict[str, Any]]] = []
        """The calls that started subagents, with their arguments."""
        self.started_by: dict[str, CallDraft] = {}
        """The call that started a subagent, by the subagent's id."""
        self.session_id = ""
        self.conversational = False
        """Some record is a prompt, an answer or a tool's result."""
        self.strange = 0
        """Prompts and answers that hold nothing as Claude Code writes it."""
        self.requests = records.Requests(self.main)
        self.prompts: list[records.Asked] = []
        self._queue: list[str] = []
        """What was typed while the model worked, and was not yet taken out of the queue."""
        self._delivered: list[TurnDraft] = []
        """What was taken out of it for the model since the latest prompt that a record holds."""
        self._drafts: dict[tuple[str, Any, Any], MessageDraft] = {}
        self._calls: dict[str, TranscriptDraft] = {}
        """The thread of the latest call with an id."""
        self._sent: list[Any] = []
        """Contents of the messages that the next request sends for the first time."""
        self._early: dict[
            str, tuple[Block, ClaudeRecord, Any, datetime | None, TranscriptDraft]
        ] = {}
        self._command: str | None = None
        """The record of the latest slash command."""
        self._command_text = ""
        """The text of the slash command that the record before is."""
        self._background: dict[str, CallDraft] = {}
        """The calls that began work in the background, by the ids of that work."""
        self._printed: dict[str, list[str]] = {}
        """What it printed to calls that waited for it, by the same."""
        self._masked = False
        """Another tool put one word for all ids."""
        self._others: dict[MessageKey, tuple[MessageDraft, list[records.OtherUsage]]] = {}
        """By message, what was used for it beside its own tokens."""
        self._going: dict[str, tuple[MessageDraft, Usage, MessageKey]] = {}
        """By thread, the latest message without an id of its own, with what it used."""
        self._side_of: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self.parents: dict[str, str | None] = {}
        """Each record's parent, by the record's id."""
        self.asides: set[str] = set()
        """The records that nobody said: attachments, reports, the program's own."""
        self.title_rank = 0
        self.summaries: list[tuple[Any, str]] = []
        self._summarised = False
        self._enveloped = False

    def read(self) -> None:
        """Read the file to its end.

        Raises:
            OSError: it cannot be opened or read.
        """
        self.take(self.lines.typed(records.DECODER))

    def take(self, taken: Iterable[ClaudeRecord]) -> None:
        """Take records in their order."""
        handlers = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
            "progress": self._progress,
            "summary": self._summary,
            "ai-title": self._title,
            "custom-title": self._title,
            "api-request-shape": self._request,
            "api-request-blob": self._request,
            "api-request": self._request,
            "cost-state": self._request,
            "queue-operation": self._queued,
        }
        parents, asides, main = self.parents, self.asides, self.main
        stamps: dict[str, Any] = {}
        for record in taken:
            try:
                stamp = record.timestamp
                at = moment(stamp) if stamp is not None else None
                main.see(at)
                uuid = record.uuid
                if uuid is not None and uuid == record.parentUuid:
                    self._masked = True
                if uuid is not None and not self._masked:
                    if uuid in parents and stamps[uuid] == stamp:
                        self._again(record)
                        continue
                    parents[uuid] = records.text_or_none(record.parentUuid)
                    if record.type not in _SPEECH:
                        asides.add(uuid)
                    stamps[uuid] = stamp
                if not self._enveloped:
                    self._envelope(record)
                handler = handlers.get(record.type)
                if handler is not None:
                    handler(record, at)
            except (TypeError, ValueError) as error:
                self.lines.report(f"a record of an unexpected shape: {error}")

    def _again(self, record: ClaudeRecord) -> None:
        """Take from a repeated record, which a resumption may write, only what may have grown."""
        message = record.message
        if type(message) is not ClaudeMessage or type(message.usage) is not records.Tokens:
            return
        thread = self._thread(record)
        draft = self._drafts.get((thread.id, message.id, record.requestId))
        if draft is not None:
            key = (message.id, record.requestId)
            self._spend(key, message.usage, thread, draft)

    def _envelope(self, record: ClaudeRecord) -> None:
        main = self.main
        self.session_id = self.session_id or string(record.sessionId)
        main.cwd = main.cwd or string(record.cwd)
        main.branch = main.branch or string(record.gitBranch)
        main.version = main.version or string(record.version)
        self._enveloped = bool(self.session_id and main.cwd and main.branch and main.version)

    def _assistant(
        self, record: ClaudeRecord, at: datetime | None, thread: TranscriptDraft | None = None
    ) -> None:
        thread = thread or self._thread(record)
        message = record.message
        if type(message) is not ClaudeMessage:
            self.lines.report("an answer that is no object")
            return
        if message.content is None and type(message.usage) is not records.Tokens:
            self.lines.report("an answer without content and tokens")
            self.strange += 1
            return
        if not (message.content or message.role or message.id):
            self.lines.report("a damaged answer: it has no role, no id and no content")
        self.conversational = True
        if message.model == _SYNTHETIC:
            return
        usage, content = message.usage, message.content
        key = (message.id, record.requestId)
        if self._masked or key == (None, None):
            draft, key = self._going_on(message, thread, at)
        else:
            known = self._drafts.get((thread.id, *key))
            draft = known or thread.timeline.begin_message(message.id, message.model, at)
            self._drafts[thread.id, *key] = draft
        if type(usage) is records.Tokens:
            self._spend(key, usage, thread, draft)
        for block in content if type(content) is list else [content]:
            if type(block) is str:
                draft.texts.append(block)
            elif type(block) is Block and block.type in CALL_TYPES:
                self._call(block, draft, at, thread)
            elif type(block) is Block and is_served_result(block.type):
                self._served(block, at, thread)
            elif type(block) is Block and block.type == "text" and type(block.text) is str:
                draft.texts.append(block.text)
            elif type(block) is Block and block.type == "thinking" and type(block.thinking) is str:
                draft.thoughts.append(block.thinking)

    def _going_on(
        self, message: ClaudeMessage, thread: TranscriptDraft, at: datetime | None
    ) -> tuple[MessageDraft, MessageKey]:
        """Return the message that a record without an id of its own is of, with a key for it: the
        thread's latest message when both used the same but for the output."""
        asked = replace(records.usage_of(message.usage), output=0)
        draft, paid, key = self._going.get(thread.id) or (None, NO_USAGE, (None, None))
        if draft is None or draft is not thread.timeline.message or not NO_USAGE != asked == paid:
            draft = thread.timeline.begin_message(message.id, message.model, at)
            key = (None, (self.main.path, len(self.spent)))
        self._going[thread.id] = (draft, asked, key)
        return draft, key

    def _spend(
        self, key: MessageKey, tokens: records.Tokens, thread: TranscriptDraft, draft: MessageDraft
    ) -> None:
        """Keep the largest usage of a message; the session's own line counts before another's."""
        usage = records.usage_of(tokens)
        for name in records.strange_counts(tokens):
            self.lines.report(f"usage.{name} is no number and counts as 0")
        total = usage.input + usage.output + usage.cache_write + usage.cache_read
        if others := records.others_of(tokens):
            _, before = self._others.get(key, (draft, []))
            self._others[key] = (draft, max(before, others, key=len))
        known = self.spent.get(key)
        if known is None or (thread is self.main and known.thread is not self.main):
            self.spent[key] = records.CountedUsage(thread, draft, usage, total)
        elif total > known.total and (thread is self.main or known.thread is not self.main):
            known.usage, known.total = usage, total
            known.draft, known.thread = draft, thread

    def settle_others(self) -> None:
        """Count what other models used for a message, each as a subagent of its own, and what the
        message's own used beside it."""
        for place, (key, (draft, others)) in enumerate(self._others.items(), 1):
            spent = self.spent[key]
            calls = [call for call in draft.calls if call.name == _ADVISOR]
            for number, other in enumerate(others, 1):
                if not other.model or other.model == draft.model:
                    spent.usage += other.usage
                    continue
                agent = self.main.agent(f"{draft.id or place}-{other.kind}-{number}")
                agent.agent_type = other.kind.removesuffix("_message")
                agent.call = calls.pop(0) if calls and agent.agent_type == _ADVISOR else None
                message = agent.timeline.begin_message(agent.id, other.model, draft.at)
                self.spent[(key, number), None] = records.CountedUsage(
                    agent, message, other.usage, 0
                )
        self._others.clear()

    def _call(
        self, block: Block, draft: MessageDraft, at: datetime | None, thread: TranscriptDraft
    ) -> None:
        id, given = string(block.id), said.arguments_of(block.input)
        name = qualified(block.server_name, string(block.name))
        if id and not self._masked:
            # A message may be written again. Calls of other messages may well have the same ids.
            known = ((call.transcript_id, call.name, call.input) for call in draft.calls)
            if (id, name, given) in known:
                return
        call = CallDraft(id or f"{draft.id}-{len(draft.calls)}", name, given, at)
        thread.timeline.place(draft, call)
        self._calls[call.transcript_id] = thread
        if name in _DELEGATING_TOOLS:
            self.tasks.append((call, call.arguments))
        early = self._early.pop(id, None) if self._early else None
        if early is not None:
            self._result(*early)

    def _served(self, block: Block, at: datetime | None, thread: TranscriptDraft) -> None:
        """Answer a call of a tool that the provider ran, in the same message."""
        call = thread.called(block.tool_use_id)
        if call is not None:
            answer = served_result(block.content, block.is_error)
            thread.timeline.result(
                call, answer.text, failed=answer.failed, at=at, exit_code=answer.exit_code
            )

    def _user(
        self, record: ClaudeRecord, at: datetime | None, thread: TranscriptDraft | None = None
    ) -> None:
        thread = thread or self._thread(record)
        message = record.message
        if type(message) is not ClaudeMessage:
            self.lines.report("a message that is no object")
            return
        if message.content is None:
            self.lines.report("a message without content")
            self.strange += 1
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
                    self._result(block, record, outcome, at, thread)
                if len(content) > len(results):
                    self._beside_results(record, content, at, thread)
                return
        if record.isCompactSummary:
            if not self._summarised:
                thread.timeline.compact()
            self._summarised = False
            thread.timeline.summary = "\n".join(said.words_in(content)).strip()
            return
        if record.isVisibleInTranscriptOnly:
            return
        text = "\n".join(said.words_in(content)).strip()
        if record.isMeta:
            if not (thread is self.main and self._expand(record, text)):
                self._add_context(text, at, thread, said.origin_of(record))
            return
        if thread is not self.main or self.is_agent:
            if not thread.prompt:
                thread.prompt = said.said_in(content)
            elif text:
                self._add_context(text, at, thread)
            return
        self._human(record, content, at)

    def _beside_results(
        self, record: ClaudeRecord, content: Any, at: datetime | None, thread: TranscriptDraft
    ) -> None:
        """Take the texts beside results: words that the person typed while a call ran, or what the
        program has to say."""
        words = said.said_in(content)
        is_mine = thread is self.main and not (self.is_agent or record.isMeta)
        kind = said.kind_of(words)
        if words and is_mine and kind == "prompt":
            self._repeat(words, *said.words_in(content))
            thread.timeline.intervene("remark", words, at)
        elif words:
            self._add_context(words, at, thread)

    def _add_context(
        self, text: str, at: datetime | None, thread: TranscriptDraft, origin: str = ""
    ) -> None:
        """Take what the model was given and no person wrote; a notice settles the calls that it is
        about."""
        about = self._end_tasks(text)
        if text:
            thread.timeline.add_context(said.source_of(text, origin), text, at, about)

    def _end_tasks(self, text: str) -> str:
        """Settle the calls that a notice is about; return the id of the last."""
        about = ""
        for end in said.task_ends_in(text):
            call = self._background.get(end.task) or self._call_named(end.call)
            about = call.id if call else end.call
            if call is not None:
                call.end_late(end.result, failed=end.failed, exit_code=end.exit_code)
        return about

    def _waited(self, call: CallDraft, text: str) -> None:
        """Read how background work goes on from the result of a call that waits for it."""
        work = first_string(call.arguments, "bash_id", "task_id", "agentId", "shell_id")
        begun, output = self._background.get(work), said.waited_in(text)
        if begun is None or output is None:
            return
        printed = self._printed.setdefault(work, [])
        if printed and output.result.startswith(
            printed[-1]
        ):  # all of it once more, and not the rest
            printed.pop()
        printed.append(output.result)
        if output.is_over:
            late = "\n".join(filter(None, printed))
            begun.end_late(late, failed=output.failed, exit_code=output.exit_code)

    def _call_named(self, id: str) -> CallDraft | None:
        """Return the one call with an id, whichever thread's it is; None where several have it."""
        owner = self._calls.get(id)
        return owner.timeline.named(id) if owner is not None else None

    def _human(self, record: ClaudeRecord, content: Any, at: datetime | None) -> None:
        text, images = said.said_in(content), said.pictures_in(content)
        timeline, kind = self.main.timeline, said.said_by(record, text)
        command, self._command, self._command_text = self._command_text, None, ""
        if kind == "machine" and images:
            timeline.add_context("program", text, at)
            text, kind = "", "prompt"
        if kind == "prompt":
            if aside := said.asides_in(content):
                is_behind = text.startswith(said.PLAN)
                timeline.add_context("program", aside, at, is_behind=is_behind)
            self._repeat(text)
            if text or images:
                self._delivered.clear()
                self._prompt(record, timeline.prompt(text, at, images))
        elif kind == "slash_command":
            timeline.intervene("slash_command", said.command_in(text), at)
            self._command = records.text_or_none(record.uuid)
            self._command_text = "\n".join(said.words_in(content)).strip()
        elif kind in ("notice", "machine"):
            if command and text.startswith("<local-command-std"):
                # The command is the program's own, and the model is given it with what it printed.
                timeline.add_context("command", command, at)
            whole = "\n".join(said.words_in(content)).strip()
            self._add_context(whole, at, self.main, said.origin_of(record))
        elif kind == "interruption":
            self._add_context(text, at, self.main)
            if type(record.interruptedMessageId) is str:
                timeline.stop(record.interruptedMessageId)
            if text.startswith(said.INTERRUPTED_CALL) and timeline.latest == "rejection":
                return
            _, _, rest = text.partition("]")
            timeline.intervene("interruption", rest.strip(), at)

    def _expand(self, record: ClaudeRecord, text: str) -> bool:
        """Take what the model was given for a slash command, the record that hangs on its own;
        return whether the text is that."""
        is_expansion = (
            self._command is not None
            and record.parentUuid == self._command
            and said.kind_of(text) == "prompt"
        )
        if is_expansion:
            self.main.timeline.expand(text)
        return is_expansion

    def _prompt(self, record: ClaudeRecord, turn: TurnDraft) -> None:
        uuid, parent = records.text_or_none(record.uuid), records.text_or_none(record.parentUuid)
        self.prompts.append(records.Asked(turn, uuid, parent))

    def _queued(self, record: ClaudeRecord, at: datetime | None) -> None:
        """Follow the queue of what is typed while the model works.

        What is removed was given to the model, and many versions write it down nowhere else. What
        is dequeued becomes a prompt with a record of its own, and ``popAll`` gives all back.
        """
        words = text_of(record.content).strip()
        if self.is_agent:
            return
        if record.operation == "enqueue":
            self._queue.append(words)
            self._end_tasks(words)
        elif record.operation == "popAll":
            self._queue = [each for each in self._queue if not said.is_typed(each)]
        elif record.operation in ("dequeue", "remove") and self._queue:
            typed = [each for each in self._queue if said.is_typed(each)]
            first = typed[0] if typed else self._queue[0]
            taken = words if words in self._queue else first
            self._queue.remove(taken)
            if record.operation == "remove" and said.is_typed(taken):
                turn = self.main.timeline.prompt(taken, at, origin="queued")
                self._delivered.append(turn)
                self.prompts.append(records.Asked(turn, None, None, is_delivered=True))

    def _repeat(self, *texts: str) -> None:
        """Drop from the queue, and of what was taken out of it, what a record holds as well."""
        for text in {text.strip() for text in texts}:
            if text in self._queue:
                self._queue.remove(text)
            same = next((turn for turn in self._delivered if turn.prompt == text), None)
            if same is not None:
                self._delivered.remove(same)
                same.provisional = True
                same.ended = same.ended if same.messages else None  # the turn before ended before

    def _result(
        self,
        block: Block,
        record: ClaudeRecord,
        outcome: Any,
        at: datetime | None,
        thread: TranscriptDraft,
    ) -> None:
        """Answer a call: the record's own thread's where that has one with the id."""
        id = string(block.tool_use_id)
        if id not in self._calls:
            if id:
                self._early.setdefault(id, (block, record, outcome, at, thread))
            return
        thread = thread if id in thread.timeline.calls else self._calls[id]
        timeline, text = thread.timeline, text_of(block.content)
        call = timeline.calls[id]
        timeline.touch(at)
        failed = block.is_error is True
        if said.is_refused(record, failed, text):
            words = string(record.userFeedback).strip() or said.words_of_refusal(text)
            timeline.reject(call, text, at, words)
        if call.status != "unanswered":
            return
        call.result, call.status = text, "failed" if failed else "ok"
        timeline.answered(call)
        call.exit_code = said.exit_code_of(call.name, text, outcome, failed)
        if failed:
            return
        if call.name in _WAITING_TOOLS:
            self._waited(call, text)
        call.edit = said.edit_of(call.name, call.input, outcome, self._written)
        if call.name in ASKING_TOOLS:
            timeline.intervene("answer", said.answers_in(outcome, text), at)
        if type(outcome) is not records.ToolOutcome:
            return
        if type(outcome.agentId) is str and call.name in _DELEGATING_TOOLS:
            self.started_by[outcome.agentId] = call
        work = outcome.agentId or outcome.backgroundTaskId
        if type(work) is str:
            self._background[work] = call

    def _thread(self, record: ClaudeRecord) -> TranscriptDraft:
        """Return a record's thread; of a sidechain's, its agent's, else that of its chain."""
        if self.is_agent or not record.isSidechain:
            return self.main
        id = string(record.agentId) or self._side_id
        if not id:
            uuid, parent = string(record.uuid), record.parentUuid
            id = self._side_of.get(parent, uuid) if type(parent) is str else uuid
            self._side_of[uuid] = id
        return self.main.agent(id or "sidechain")

    def _system(self, record: ClaudeRecord, at: datetime | None) -> None:
        if record.subtype == "local_command":
            self._add_context(string(record.content).strip(), at, self._thread(record))
        elif record.subtype == "compact_boundary":
            self._thread(record).timeline.compact()
            self._summarised = True
            before = records.text_or_none(record.logicalParentUuid)
            if before is not None and before not in self.parents:
                self.requests.is_whole = False

    def _attachment(self, record: ClaudeRecord, at: datetime | None) -> None:
        attachment = record.attachment
        if type(attachment) is not records.Attachment:
            return
        is_own = not (record.isSidechain or self.is_agent)
        if attachment.type != "queued_command":
            if is_own:
                self.requests.attachment(attachment)
            if given := context_in(attachment):
                self._thread(record).timeline.add_context(*given, at, is_ahead=True)
            return
        content = attachment.prompt
        if attachment.isMeta or not is_own:
            words = "\n".join(said.words_in(content)).strip()
            self._add_context(words, at, self._thread(record))
            return
        text, images = "\n".join(said.words_in(content)).strip(), said.pictures_in(content)
        self._repeat(text)
        kind = said.said_by(attachment, text)
        if kind in ("notice", "machine"):
            self._add_context(text, at, self.main, said.origin_of(attachment))
        elif kind == "prompt" and (text or images) and attachment.commandMode == "prompt":
            self.conversational = True
            self._prompt(record, self.main.timeline.prompt(text, at, images, "queued"))

    def _progress(self, record: ClaudeRecord, at: datetime | None) -> None:
        data = record.data
        if type(data) is not records.Report or data.type != "agent_progress":
            return
        inner, id = data.message, string(data.agentId)
        if type(inner) is not ClaudeRecord or not id:
            return
        thread = self.main.agent(id, "progress")
        if thread.place != "progress":
            return
        if id not in self.started_by:
            owner = self._calls.get(string(record.parentToolUseID))
            call = owner.timeline.calls[string(record.parentToolUseID)] if owner else None
            if call is not None and call.name in _DELEGATING_TOOLS:
                self.started_by[id] = call
        thread.prompt = thread.prompt or string(data.prompt)
        kind, stamp = inner.type, moment(inner.timestamp) or at
        if kind == "assistant":
            self._assistant(inner, stamp, thread)
        elif kind == "user":
            self._user(inner, stamp, thread)

    def _request(self, record: ClaudeRecord, at: datetime | None) -> None:
        if self.is_agent or record.agentId is not None:
            return
        if record.type == "api-request-blob":
            if type(record.message) is ClaudeMessage:
                self._sent.append(record.message)
            return
        self.requests.take(record)
        if record.type == "api-request":
            if self.requests.goes_on(record):
                self._settle_context(at)
            self._sent = []

    def _settle_context(self, at: datetime | None) -> None:
        """Take what the model was given to the letter, where the file holds the messages sent."""
        timeline = self.main.timeline
        sent = [
            (text, message.role == "system")
            for message in self._sent
            for text in said.texts_sent(message.content, timeline.calls)
        ]
        if not sent:
            return
        turn = timeline.turns[-1] if timeline.turns else None
        typed = [turn.prompt, *(deed.text for deed in turn.interventions)] if turn else []
        context: list[ContextText] = []
        files = [
            instruction.text
            for instruction in self.main.instructions
            if instruction.place == "message"
        ]
        for text, is_programs in sent:
            known = next((one for one in timeline.context if said.core_of(one.text) in text), None)
            if known is not None:
                context.append(replace(known, text=text))
            elif any(file in text for file in files):
                continue  # the person's prompt files, which the session has as such
            elif (is_programs or said.is_reminder(text)) and not any(
                words and words in text for words in typed
            ):
                context.append(ContextText(said_by="program", text=text, at=at))
        timeline.replace_context(context)

    def _summary(self, record: ClaudeRecord, at: datetime | None) -> None:
        self.summaries.append((record.leafUuid, string(record.summary)))

    def _title(self, record: ClaudeRecord, at: datetime | None) -> None:
        """Take the title that the person gave, else the latest that a model did."""
        is_custom = record.type == "custom-title"
        title = string(record.customTitle if is_custom else record.aiTitle).strip()
        rank = 2 if is_custom else 1
        if title and rank >= self.title_rank:
            self.main.title, self.title_rank = title, rank
