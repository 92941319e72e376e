"""Events of Copilot CLI as events of a session."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.copilot.edits import edit_of
from debrief.sessions.readers.jsonl import JsonLines, Record, compact_json, string, whole_number
from debrief.sessions.readers.moments import moment
from debrief.sessions.readers.timeline import NO_USAGE, CallDraft, MessageDraft, arguments_text

_EXIT_CODE = re.compile(r"exit(?:ed with)? code:? (-?\d+)>?\s*\Z")
_NOTICE = "<system_notification>"
_MACHINE_SOURCES = ("system", "skill", "command", "autopilot")
_DENIED = "denied"


def convert(lines: JsonLines, reading: Reading) -> None:
    """Tell ``reading``'s timeline what the events say, in their order."""
    conversion = Conversion(reading)
    seen: set[str] = set()
    for record in lines:
        identity = string(record.get("id"))
        if identity and identity in seen:
            lines.report("the event repeats an earlier one and was counted once")
            continue
        seen.add(identity)
        data = record.get("data")
        if type(data) is dict:
            conversion.add(string(record.get("type")), data, record)
        elif "data" in record:
            lines.report("an event without data")
    conversion.finish()


class Conversion:
    """Keeps what one event must know of those before it."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._timeline = reading.timeline
        self._facts = reading.facts
        self._model = ""
        self._told = NO_USAGE
        """What shutdowns say that the session cost so far."""
        self._since = 0
        """Output tokens of messages after the last shutdown; one may tell none of them."""
        self._shut_down = False
        self._billed: list[str] = []
        """The models that shutdowns name."""
        self._asked: dict[str, str] = {}
        """The calls that permission was asked for, by the requests' ids."""

    def add(self, kind: str, data: Record, record: Record) -> None:
        """Take one event."""
        at = moment(record.get("timestamp"))
        self._facts.see(at)
        if kind == "user.message":
            self._ask(data, at)
        elif kind == "assistant.message":
            self._answer(data, string(record.get("id")), at)
        elif kind == "tool.execution_start":
            self._start(data, at)
        elif kind == "tool.execution_complete":
            self._complete(data, at)
        elif kind in ("session.start", "session.resume"):
            self._begin(data)
        elif kind == "session.model_change":
            self._model = string(data.get("newModel")) or self._model
        elif kind == "session.shutdown":
            self._shutdown(data)
        elif kind == "session.compaction_complete" and data.get("success") is not False:
            self._timeline.compact()
        elif kind == "system.notification":
            self._timeline.notice(at)
        elif kind == "abort":
            self._timeline.intervene("interruption", "", at)
        elif kind == "permission.requested":
            asked = data.get("permissionRequest")
            call = string(asked.get("toolCallId")) if type(asked) is dict else ""
            self._asked[string(data.get("requestId"))] = call
        elif kind == "permission.completed":
            self._permitted(data, at)
        elif kind == "subagent.started":
            agent = self._agent(string(data.get("toolCallId")))
            agent.facts.agent_type = string(data.get("agentName"))

    def finish(self) -> None:
        """Settle the tokens: as the shutdowns tell them, and what came after the last."""
        reading = self._reading
        if len(set(self._billed)) == 1:
            for timeline in (
                reading.timeline,
                *(each.timeline for each in reading.agents.values()),
            ):
                timeline.name_model(self._billed[0])
        reading.usage = self._told + Usage(output=self._since)
        if not self._shut_down and not self._timeline.empty:
            reading.report(0, "no shutdown was recorded: input tokens are not known")

    def _begin(self, data: Record) -> None:
        facts = self._facts
        facts.id = facts.id or string(data.get("sessionId"))
        facts.version = facts.version or string(data.get("copilotVersion"))
        self._model = string(data.get("selectedModel")) or self._model
        if "vscodeVersion" in data:
            self._reading.tool = "copilot-vscode"
        context = data.get("context")
        if type(context) is dict:
            facts.cwd = facts.cwd or string(context.get("cwd"))
            facts.branch = facts.branch or string(context.get("branch"))
            facts.commit = facts.commit or string(context.get("headCommit"))
            facts.repository = facts.repository or string(context.get("repository")).split("/")[-1]

    def _ask(self, data: Record, at: datetime | None) -> None:
        text = string(data.get("content"))
        if string(data.get("source")).startswith(_MACHINE_SOURCES) or text.startswith(_NOTICE):
            return
        attachments = data.get("attachments")
        images = sum(
            type(each) is dict and _is_image(each)
            for each in (attachments if type(attachments) is list else ())
        )
        if text.strip() or images:
            self._timeline.prompt(text, at, images=images)

    def _answer(self, data: Record, identity: str, at: datetime | None) -> None:
        reading = self._of(data)
        model = string(data.get("model")) or self._model
        name = string(data.get("messageId")) or identity
        draft = reading.timeline.begin_message(name, model, at)
        text = string(data.get("content"))
        if text.strip():
            draft.texts.append(text)
        requests = data.get("toolRequests")
        for request in requests if type(requests) is list else ():
            if type(request) is dict:
                tool = string(request.get("name")) or "unknown"
                self._call(reading, draft, request, tool, at)
        output = whole_number(data.get("outputTokens"))
        self._since += output
        draft.usage += Usage(output=output)

    @staticmethod
    def _call(
        reading: Reading,
        draft: MessageDraft,
        told: Record,
        name: str,
        at: datetime | None,
    ) -> CallDraft:
        call_id = string(told.get("toolCallId")) or f"{draft.id}-{len(draft.calls)}"
        given = told.get("arguments")
        return reading.timeline.call(draft, call_id, name, arguments_text(given), at)

    def _start(self, data: Record, at: datetime | None) -> None:
        reading = self._of(data)
        call = reading.timeline.calls.get(string(data.get("toolCallId")))
        if call is None:
            timeline = reading.timeline
            draft = timeline.message or timeline.begin_message(
                f"{string(data.get('toolCallId'))}-message", self._model, at
            )
            name = string(data.get("toolName")) or "unknown"
            call = self._call(reading, draft, data, name, at)
        call.at = at or call.at

    def _complete(self, data: Record, at: datetime | None) -> None:
        reading = self._of(data)
        call_id = string(data.get("toolCallId"))
        call = reading.timeline.calls.get(call_id)
        if call is None:
            self._reading.orphan_results += 1
            return
        if call.status == "rejected":
            return
        result = data.get("result")
        result = result if type(result) is dict else {}
        error = data.get("error")
        told = _text_of(result, error)
        text = told or ""
        code = _EXIT_CODE.search(text)
        exit_code = int(code[1]) if code else None
        failed = (
            data.get("success") is False
            or type(error) is dict
            or bool(exit_code)
            or result.get("result_type") in ("failure", "rejected", "denied")
        )
        if result.get("result_type") in ("rejected", "denied") or _is_refusal(error):
            reading.timeline.reject(call, text, at)
            return
        edit = None
        if not failed:
            edit = edit_of(call.name, call.input, result)
        reading.timeline.result(call, told, failed=failed, at=at, exit_code=exit_code, edit=edit)

    def _permitted(self, data: Record, at: datetime | None) -> None:
        result = data.get("result")
        kind = string(result.get("kind")) if type(result) is dict else ""
        call_id = string(data.get("toolCallId")) or self._asked.get(
            string(data.get("requestId")), ""
        )
        call = self._timeline.calls.get(call_id)
        if call is not None and kind.startswith(_DENIED) and "user" in kind:
            feedback = string(result.get("feedback")) if type(result) is dict else ""
            words = f"The user said: {feedback}" if feedback else "The user refused this call."
            self._timeline.reject(call, words, at)

    def _shutdown(self, data: Record) -> None:
        metrics = data.get("modelMetrics")
        told = NO_USAGE
        for model, metric in metrics.items() if type(metrics) is dict else ():
            usage = metric.get("usage") if type(metric) is dict else None
            if type(usage) is dict:
                told += _usage(usage)
                self._billed.append(model)
        missing = max(0, self._since - told.output)
        self._told += told + Usage(output=missing)
        self._shut_down = True
        self._since = 0

    def _of(self, data: Record) -> Reading:
        parent = string(data.get("parentToolCallId"))
        return self._agent(parent) if parent else self._reading

    def _agent(self, call_id: str) -> Reading:
        agents = self._reading.agents
        if call_id not in agents:
            agent = Reading(self._reading.path)
            agent.facts.id = agent.facts.parent_call = call_id
            agents[call_id] = agent
        return agents[call_id]


def _usage(usage: Record) -> Usage:
    read = whole_number(usage.get("cacheReadTokens"))
    write = whole_number(usage.get("cacheWriteTokens"))
    prompt = whole_number(usage.get("inputTokens"))
    return Usage(
        max(0, prompt - read - write), whole_number(usage.get("outputTokens")), write, read
    )


def _text_of(result: Record, error: Any) -> str | None:
    if type(error) is dict:
        return string(error.get("message"))
    content = result.get("content", result.get("text_result_for_llm"))
    if type(content) is str:
        return content
    return compact_json(content) if content is not None else None


def _is_refusal(error: Any) -> bool:
    return type(error) is dict and string(error.get("code")) in ("rejected", "denied")


def _is_image(attachment: Record) -> bool:
    kind = string(attachment.get("mimeType")) or string(attachment.get("type"))
    return kind.startswith("image")
