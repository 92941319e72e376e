"""Records of a Codex rollout as events of a session."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from debrief.sessions.declared import declared_tools, qualified
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.codex.edits import changes_of, patch_in
from debrief.sessions.readers.codex.forks import CopiedHistory
from debrief.sessions.readers.codex.outputs import Output, read_output
from debrief.sessions.readers.codex.prompts import is_human, is_notice, own_words, without_citations
from debrief.sessions.readers.codex.tokens import TokenMeter
from debrief.sessions.readers.jsonl import JsonLines, Record, compact_json, string
from debrief.sessions.readers.moments import moment
from debrief.sessions.readers.patches import from_apply_patch, joined
from debrief.sessions.readers.timeline import CallDraft, MessageDraft, arguments_text

_ITEMS = frozenset(
    {
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "tool_search_output",
    }
)
_ABORTED = "<turn_aborted>"


def convert(lines: JsonLines, reading: Reading) -> None:
    """Tell ``reading``'s timeline what the records say, in their order."""
    conversion = Conversion(reading)
    copied = CopiedHistory()
    previous: Record | None = None
    for record in lines:
        if record == previous:
            lines.report("the record repeats the one before and was counted once")
            continue
        previous = record
        if copied.holds(record):
            continue
        conversion.add(record, lines)
    conversion.finish()


class Conversion:
    """Keeps what one record must know of those before it."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._timeline = reading.timeline
        self._facts = reading.facts
        self._meter = TokenMeter()
        self._model = ""
        self._answered = False
        """The model's latest message is complete: what it says next begins another one."""
        self._told: Counter[tuple[str, str]] = Counter()
        self._has_prompt_events = False
        self._reviewing = False
        self._numbered = 0
        self._calls_before = 0
        self._stand_ins: dict[str, tuple[str, bool]] = {}
        """What events say of calls whose own output may never come: text, and whether it failed."""

    def add(self, record: Record, lines: JsonLines) -> None:
        """Take one record."""
        kind = record.get("type")
        at = moment(record.get("timestamp"))
        payload = record.get("payload")
        if type(payload) is not dict:
            if "payload" in record:
                lines.report("a record without a payload")
                return
            kind, payload = _unwrapped(record)
        at = at or moment(payload.get("timestamp"))
        self._facts.see(at)
        if kind == "response_item":
            self._item(payload, at)
        elif kind == "event_msg":
            self._event(payload, at)
        elif kind == "turn_context":
            self._context(payload)
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "compacted":
            self._timeline.compact()

    def finish(self) -> None:
        """Settle what only the whole rollout tells."""
        if self._has_prompt_events:
            self._timeline.settle()
        for call_id, (text, failed) in self._stand_ins.items():
            call = self._timeline.calls[call_id]
            self._timeline.result(
                call, text, failed=failed, at=None, exit_code=call.exit_code, edit=call.edit
            )
        if self._meter.calls:
            self._reading.api_calls = self._meter.calls

    def _meta(self, payload: Record) -> None:
        facts = self._facts
        if facts.id:
            return
        facts.id = string(payload.get("id"))
        facts.cwd = facts.cwd or string(payload.get("cwd"))
        facts.version = string(payload.get("cli_version"))
        facts.agent_type = string(payload.get("agent_role"))
        facts.title = string(payload.get("agent_nickname"))
        self._model = self._model or string(payload.get("model"))
        facts.parent = parent_of(payload)
        facts.is_subagent = is_subagent(payload)
        self._reading.declared += declared_tools(_loaded(payload.get("dynamic_tools")))
        git = payload.get("git")
        if type(git) is dict:
            facts.branch = string(git.get("branch"))
            facts.commit = string(git.get("commit_hash"))
            facts.repository = repository_of(string(git.get("repository_url")))

    def _context(self, payload: Record) -> None:
        self._model = string(payload.get("model")) or self._model
        self._facts.cwd = self._facts.cwd or string(payload.get("cwd"))

    def _item(self, payload: Record, at: datetime | None) -> None:
        kind = payload.get("type") or ("message" if "role" in payload else "")
        if kind == "message":
            self._message(payload, at)
        elif kind in ("function_call", "custom_tool_call", "tool_search_call"):
            given = payload.get("arguments", payload.get("input"))
            name = string(payload.get("name")) or str(kind).removesuffix("_call")
            name = qualified(payload.get("namespace"), name)
            self._call(string(payload.get("call_id")), name, given, at)
        elif kind in ("function_call_output", "custom_tool_call_output", "tool_search_output"):
            output = payload.get("output", payload.get("tools"))
            if kind == "tool_search_output":
                self._reading.declared += declared_tools(payload.get("tools"))
            self._output(string(payload.get("call_id")), read_output(output), at)
        elif kind == "local_shell_call":
            name = string(payload.get("call_id")) or string(payload.get("id"))
            self._call(name, "local_shell", payload.get("action"), at)
        elif kind == "web_search_call":
            call = self._call(string(payload.get("id")), "web_search", payload.get("action"), at)
            self._timeline.result(call, None, failed=payload.get("status") == "failed", at=at)
        elif kind == "token_count":
            self._tokens(payload)

    def _message(self, payload: Record, at: datetime | None) -> None:
        content = payload.get("content")
        blocks = content if type(content) is list else [{"text": content}]
        blocks = [block for block in blocks if type(block) is dict]
        if payload.get("role") == "assistant":
            self._say("".join(string(block.get("text")) for block in blocks), "item", at)
            return
        if payload.get("role") != "user":
            return
        texts = [string(block.get("text")) for block in blocks]
        if any(text.startswith(_ABORTED) for text in texts):
            self._interrupt(at)
        if any(map(is_notice, texts)):
            self._timeline.notice(at)
        words = [text for text in texts if is_human(text)]
        images = sum(block.get("type") == "input_image" for block in blocks)
        if not words and not images:
            return
        self._reviewing = False
        text = own_words("\n\n".join(words))
        if self._timeline.fresh_prompt() != text:
            self._prompt(text, at, images, provisional=True)

    def _event(self, payload: Record, at: datetime | None) -> None:
        kind = payload.get("type")
        if kind == "user_message":
            self._asked(payload, at)
        elif kind == "agent_message":
            self._say(string(payload.get("message")), "event", at)
        elif kind == "token_count":
            self._tokens(payload)
        elif kind == "exec_command_end":
            self._executed(payload)
        elif kind == "patch_apply_end":
            self._patched(payload, at)
        elif kind == "mcp_tool_call_end":
            self._served(payload, at)
        elif kind == "dynamic_tool_call_response":
            self._dynamic(payload, at)
        elif kind == "turn_aborted":
            self._reviewing = False
            self._interrupt(at)
        elif kind == "entered_review_mode":
            self._reviewing = True
            hint = string(payload.get("user_facing_hint"))
            self._timeline.intervene("slash_command", f"/review {hint}".strip(), at)
        elif kind in ("exited_review_mode", "task_complete"):
            self._reviewing = False
        elif kind == "thread_name_updated":
            self._facts.title = string(payload.get("thread_name")) or self._facts.title

    def _asked(self, payload: Record, at: datetime | None) -> None:
        self._has_prompt_events = True
        if self._reviewing:
            return
        text = own_words(string(payload.get("message"))).strip()
        images = sum(
            len(part)
            for part in (payload.get("images"), payload.get("local_images"))
            if type(part) is list
        )
        if not text and not images:
            return
        if not self._timeline.confirm(text, images):
            self._prompt(text, at, images, provisional=False)

    def _prompt(self, text: str, at: datetime | None, images: int, *, provisional: bool) -> None:
        self._timeline.prompt(text, at, images=images, provisional=provisional)
        self._told.clear()
        self._calls_before = len(self._timeline.calls)

    def _interrupt(self, at: datetime | None) -> None:
        self._timeline.intervene("interruption", "", at)

    def _say(self, text: str, teller: str, at: datetime | None) -> None:
        """Add the model's words, which an event and an item tell once each, in either order."""
        text = without_citations(text).strip("\n")
        if not text.strip():
            return
        other = ("event" if teller == "item" else "item", text)
        if self._told[other] > 0:
            self._told[other] -= 1
            return
        self._told[teller, text] += 1
        self._draft(at).texts.append(text)

    def _draft(self, at: datetime | None) -> MessageDraft:
        self._reviewing = False
        message = self._timeline.message
        if message is None or self._answered or _has_results(message):
            self._numbered += 1
            name = f"{self._facts.id or 'message'}-{self._numbered}"
            message = self._timeline.begin_message(name, self._model, at)
            self._answered = False
        return message

    def _call(self, call_id: str, name: str, given: Any, at: datetime | None) -> CallDraft:
        message = self._draft(at)
        call_id = call_id or f"{message.id}-{len(message.calls)}"
        return self._timeline.call(message, call_id, name, arguments_text(given), at)

    def _output(self, call_id: str, output: Output, at: datetime | None) -> None:
        call = self._timeline.calls.get(call_id)
        if call is None:
            self._reading.orphan_results += 1
            return
        edit = call.edit
        if edit is None and call.name == "apply_patch" and not output.failed:
            edit = joined(from_apply_patch(patch_in(call.input)))
        exit_code = call.exit_code if output.exit_code is None else output.exit_code
        failed = output.failed or bool(exit_code)
        self._timeline.result(
            call, output.text, failed=failed, at=at, exit_code=exit_code, edit=edit
        )

    def _executed(self, payload: Record) -> None:
        call = self._timeline.calls.get(string(payload.get("call_id")))
        code = payload.get("exit_code")
        if call is None or type(code) is not int:
            return
        if call.exit_code is None:
            call.exit_code = code
        if call.status == "ok" and code != 0:
            call.status = "failed"
        output = payload.get("aggregated_output")
        if call.status == "unanswered" and type(output) is str:
            self._stand_ins[call.id] = output, code != 0

    def _patched(self, payload: Record, at: datetime | None) -> None:
        call_id = string(payload.get("call_id"))
        call = self._timeline.calls.get(call_id)
        success = payload.get("success") is True
        if call is None:
            call = self._script()
        output = string(payload.get("stdout")) or string(payload.get("stderr"))
        if call is None:
            call = self._call(call_id, "apply_patch", {}, at)
            self._timeline.result(call, output, failed=not success, at=at)
        if call.status == "unanswered" and call.id == call_id:
            self._stand_ins[call_id] = output, not success
        if not success:
            return
        edits = [call.edit] if call.edit is not None and call.id != call_id else []
        edits += changes_of(payload.get("changes"))
        call.edit = joined(edits)

    def _script(self) -> CallDraft | None:
        """Return the running script that a nested call came from, if one runs."""
        for call in reversed(list(self._timeline.calls.values())[self._calls_before :]):
            if call.status == "unanswered" and call.name.endswith("exec"):
                return call
        return None

    def _served(self, payload: Record, at: datetime | None) -> None:
        invocation = payload.get("invocation")
        given = invocation if type(invocation) is dict else {}
        call_id = string(payload.get("call_id"))
        call = self._timeline.calls.get(call_id)
        result = payload.get("result")
        result = result if type(result) is dict else {}
        answer = result.get("Ok")
        failed = "Err" in result or (type(answer) is dict and answer.get("isError") is True)
        text = _served_text(answer if "Ok" in result else result.get("Err"))
        if call is None:
            if self._script() is not None:
                return
            name = f"{string(given.get('server'))}__{string(given.get('tool'))}"
            call = self._call(call_id, name, given.get("arguments"), at)
            self._timeline.result(call, text, failed=failed, at=at)
        elif call.status == "unanswered":
            self._stand_ins[call_id] = text, failed

    def _dynamic(self, payload: Record, at: datetime | None) -> None:
        call_id = string(payload.get("call_id"))
        if call_id in self._timeline.calls:
            return
        name = string(payload.get("tool")) or "unknown"
        call = self._call(call_id, name, payload.get("arguments"), at)
        output = read_output(payload.get("content_items"), payload.get("success"))
        self._timeline.result(call, output.text, failed=output.failed, at=at)

    def _tokens(self, payload: Record) -> None:
        info = payload.get("info")
        if type(info) is dict and not self._model:
            self._model = string(info.get("model"))
        usage = self._meter.read(payload)
        if usage is not None:
            if self._timeline.message is None or self._answered:
                self._draft(None)
            self._timeline.spend(usage)
            self._answered = True


def _has_results(message: MessageDraft) -> bool:
    """Return whether calls of a message were answered: what comes next was said knowing that."""
    ends = (message.calls[0], message.calls[-1]) if message.calls else ()
    return any(call.status != "unanswered" for call in ends)


def _loaded(tools: Any) -> list[Any]:
    """Return those of the tools that the model is told of from the beginning; the others it has
    to search for, and the search's result tells them."""
    found: list[Any] = []
    for tool in tools if type(tools) is list else ():
        if type(tool) is dict and type(tool.get("tools")) is list:
            found.append({**tool, "tools": _loaded(tool["tools"])})
        elif type(tool) is dict and tool.get("deferLoading") is not True:
            found.append(tool)
    return found


def is_subagent(meta: Record) -> bool:
    """Return whether another agent, and no person, began the session."""
    source = meta.get("source")
    return type(source) is dict and "subagent" in source


def parent_of(meta: Record) -> str:
    """Return the id of the session that spawned this one; empty where none is told."""
    source = meta.get("source")
    agent = source.get("subagent") if type(source) is dict else None
    spawn = agent.get("thread_spawn") if type(agent) is dict else None
    return string(spawn.get("parent_thread_id")) if type(spawn) is dict else ""


def repository_of(url: str) -> str:
    """Return the repository's name in a remote's URL; empty when it holds none."""
    name = PurePosixPath(url.rstrip("/").replace(":", "/")).name.removesuffix(".git")
    return "" if name in ("", ".", "..") else name


def _unwrapped(record: Record) -> tuple[str, Record]:
    kind = string(record.get("type"))
    if kind in _ITEMS:
        return "response_item", record
    if not kind and "id" in record and "timestamp" in record:
        return "session_meta", record
    return "", {}


def _served_text(answer: Any) -> str:
    if type(answer) is dict and type(answer.get("content")) is list:
        return read_output(answer["content"]).text
    return answer if type(answer) is str else compact_json(answer)
