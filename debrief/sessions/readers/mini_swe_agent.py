"""mini-swe-agent: ``<instance>.traj.json``, a run a document.

Until version 2 a model asks for a command in a block of Markdown, the only one of its answer, and
what came back is the next message in the person's name. Such a block is read as a call.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonRecord, compact_json
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import (
    decoded_arguments,
    first_string,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    text_of,
    usage_in,
    whole_numbers,
)

_DOCUMENT = ".traj.json"
_BLOCK = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_RETURN_CODE = re.compile(
    r"\A(?:<exception>.*?</exception>\s*)?<returncode>(-?\d{1,9})</returncode>", re.DOTALL
)
_INSTANCE = re.compile(r"[\w.-]+?__([\w.-]+)-\d+")
"""What SWE-bench calls a task: its owner, its repository and the number of a pull request."""
_TIMED_OUT = "The last command <command>"
_INTERRUPTED = "Interrupted by user: "
_REJECTED = "Command not executed."
_REASON = "The user rejected your command with the following message: "
_NEW_TASK = "The user added a new task: "
_HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


class MiniSweAgentReader(TranscriptReader):
    """Runs of mini-swe-agent, one document each."""

    source = "mini-swe-agent"
    tool = "mini-swe-agent"
    tools = ToolNames(run="bash")
    home_folders = (".config/mini-swe-agent",)
    suffixes = (_DOCUMENT,)
    start = re.compile(
        rb'\A\s*\{\s*"info"\s*:\s*\{\s*"(?:exit_status|submission|model_stats|config|mini_version)"'
    )

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what a document says: runs have no ids, so all of it is read."""
        try:
            draft = self.read_file(path)
        except (OSError, ValueError, RecursionError):  # reading it says why
            return Peek(session_id=_identity(path, []))
        return Peek(session_id=draft.id, started=draft.started) if draft.timeline.turns else None

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one run."""
        draft = TranscriptDraft(path)
        document = draft.load(path)
        info = mapping(document.get("info"))
        config = mapping(info.get("config"))
        draft.model = first_string(mapping(config.get("model")), "model_name")
        draft.take(info, version="mini_version")
        draft.take(mapping(config.get("environment")), cwd="cwd")
        draft.task = string(document.get("instance_id"))
        if instance := _INSTANCE.fullmatch(draft.task):
            draft.repository = instance[1]
        messages = list(draft.objects_in(document.get("messages")))
        draft.id = _identity(path, [message for _, message in messages])
        run = _Run(draft, mapping(config.get("agent")))
        for index, message in messages:
            run.add(index, message)
        return draft


READER = MiniSweAgentReader()


def _identity(path: str, messages: list[JsonRecord]) -> str:
    """Return a name for a run, of its file's and its first answer's: each run has the same task."""
    first = next((message for message in messages if message.get("role") == "assistant"), {})
    digest = hashlib.sha256(compact_json(first).encode(errors="replace")).hexdigest()
    return f"{Path(path).name.removesuffix(_DOCUMENT)}-{digest[:12]}"


class _Run:
    def __init__(self, draft: TranscriptDraft, agent: JsonRecord) -> None:
        self._draft, self._timeline = draft, draft.timeline
        self._template = string(agent.get("instance_template"))
        self._open: CallDraft | None = None
        """The call that the next message in the person's name answers."""

    def add(self, index: int, message: JsonRecord) -> None:
        extra, content = mapping(message.get("extra")), message.get("content")
        at = _time(message, extra)
        self._draft.see(at)
        role, text = message.get("role"), text_of(content)
        if role == "system":
            self._draft.system_prompt = self._draft.system_prompt or text
        elif role == "assistant":
            self._answer(f"message-{index + 1}", message, text, at)
        elif role == "tool":
            call = self._draft.called(message.get("tool_call_id"))
            if call is not None:
                self._result(call, text, extra, at)
        elif role == "user":
            self._hear(text, extra, at)
        elif role == "exit":
            self._end(text, at)
        else:
            self._draft.report(0, f"message {index + 1} is of no known role")

    def _answer(self, id: str, message: JsonRecord, text: str, at: datetime | None) -> None:
        extra = mapping(message.get("extra"))
        response = mapping(extra.get("response"))
        model = string(response.get("model")) or self._draft.model
        answer = self._timeline.begin_message(id, model, at)
        first = next(iter(mappings(response.get("choices"))), {})
        said = mapping(first.get("message"))
        answer.thoughts.append(first_string(said, "reasoning", "reasoning_content"))
        given = [
            (
                each.get("id"),
                function.get("name"),
                decoded_arguments(string(function.get("arguments"))),
            )
            for each in mappings(message.get("tool_calls"))
            if (function := mapping(each.get("function")))
        ]
        if not given:
            commands = [block.strip() for block in _BLOCK.findall(text)]
            if len(commands) == 1:  # of any other number, none was run
                text = _BLOCK.sub("", text).strip()
                given = [("", "bash", {"command": commands[0]})]
        answer.texts.append(text)
        self._open = None
        for each in given:
            call = self._timeline.call(answer, *each, at)
            self._open = self._open or call
        self._timeline.spend(_usage(response.get("usage")))

    def _hear(self, text: str, extra: JsonRecord, at: datetime | None) -> None:
        """Take a message in the person's name: the task, a result, or a word of the program's."""
        if not self._timeline.turns:
            self._ask(text, at)
        elif text.startswith(_INTERRUPTED):
            self._timeline.interrupt(at)
            self._timeline.intervene("remark", text.removeprefix(_INTERRUPTED), at)
        elif text.startswith(_REJECTED):
            if self._open is not None:
                words = text.partition(_REASON)[2]
                self._timeline.reject(self._open, text, at, words)
        elif text.startswith(_NEW_TASK):
            self._timeline.prompt(text.removeprefix(_NEW_TASK), at, expansion=text)
        elif self._open is not None and "interrupt_type" not in extra:
            self._result(self._open, text, extra, at)
            return
        elif text.strip():
            self._timeline.add_context("program", text, at)
        self._open = None

    def _ask(self, text: str, at: datetime | None) -> None:
        """Take the task, without what the program's own words around it say."""
        before, hole, after = self._template.partition("{{task}}")
        after = _HOLE.split(after)[0]
        start = len(before)
        end = text.find(after, start) if after.strip() else len(text)
        if hole and not _HOLE.search(before) and text.startswith(before) and end > start:
            self._timeline.prompt(text[start:end].strip(), at, expansion=text)
        else:
            self._timeline.prompt(text, at)

    def _result(self, call: CallDraft, text: str, extra: JsonRecord, at: datetime | None) -> None:
        code = extra.get("returncode")
        if type(code) is not int or abs(code) >= 1 << 31:
            code = number_in(text, _RETURN_CODE)
        failed = text.startswith(_TIMED_OUT) or bool(extra.get("exception_info"))
        self._timeline.result(call, text, failed=failed, at=at, exit_code=code)
        if call is self._open:
            self._open = None

    def _end(self, text: str, at: datetime | None) -> None:
        """Take what a run ended with: what the last call handed in, which answers that call."""
        if self._open is not None and text:
            self._timeline.result(self._open, text, failed=False, at=at)


def _time(message: JsonRecord, extra: JsonRecord) -> datetime | None:
    created = mapping(extra.get("response")).get("created")
    values = (message.get("timestamp"), extra.get("timestamp"), created)
    return next((at for value in values if (at := moment(value)) is not None), None)


def _usage(counts: Any) -> Usage:
    """Return tokens as LiteLLM counts them: input includes cached ones, output the reasoning."""
    written, read = whole_numbers(counts, "cache_creation_input_tokens", "cache_read_input_tokens")
    details = mapping(mapping(counts).get("prompt_tokens_details"))
    given, output = whole_numbers(counts, "prompt_tokens", "completion_tokens")
    (cached,) = whole_numbers(details, "cached_tokens")
    names = {"input": given, "output": output, "written": written, "read": read or cached}
    return usage_in(names, *names)
