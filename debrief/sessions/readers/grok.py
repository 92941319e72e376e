"""Grok CLI: ``~/.grok/sessions/<folder>/<id>``, a folder a session.

``chat_history.jsonl`` is the conversation as the model is sent it. Beside it, ``updates.jsonl``
tells times, how calls ended, edits and tokens; ``summary.json`` the folder, and that another agent
began the session, which then is listed in that one's ``subagents``.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.documents import JsonLines, JsonRecord
from debrief.sessions.readers.patches import FileEdit, joined, replaced
from debrief.sessions.readers.timeline import NO_USAGE
from debrief.sessions.readers.values import (
    TokenNames,
    inside,
    mapping,
    mappings,
    moment,
    string,
    text_of,
    whole_number,
)

_CHAT, _UPDATES, _SUMMARY = "chat_history.jsonl", "updates.jsonl", "summary.json"
_QUERY = "user_query"
_CREATED = re.compile(rb'"created_at"\s*:\s*"([^"\\]{1,40})"')
_SUBAGENT = re.compile(rb'"session_kind"\s*:\s*"(subagent)"')
_BILLED = TokenNames(
    "inputTokens", "outputTokens", "cachedWriteTokens", "cachedReadTokens", cached_inside=True
)
_SPAWN, _IN_BACKGROUND = "spawn_subagent", "Subagent started in background"
_STARTED = re.compile(r"^subagent_id: ([\w-]+)$", re.MULTILINE)
_ENDED = ("completed", "failed")


class GrokReader(TranscriptReader):
    """Sessions of Grok's CLI, each with what is beside it."""

    source = "grok"
    tool = "grok"
    tools = ToolNames(
        run="run_terminal_command",
        read="read_file",
        search="list_dir grep",
        edit="search_replace write",
        wait="get_command_or_subagent_output",
        plan="todo_write enter_plan_mode exit_plan_mode",
        delegate="spawn_subagent",
        ask="ask_user_question",
        web="web_search web_fetch",
    )
    home_folders = (".grok/sessions",)
    moved_by = ("GROK_HOME", ".grok")
    start = re.compile(rb'\A\s*\{\s*"type"\s*:\s*"system"\s*,\s*"content"\s*:\s*"')
    message_mark = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
    asking = ("prompt",)

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the folder and the summary say."""
        summaries = [Head.of(each) for each in self.beside(path) if each.endswith(_SUMMARY)]
        is_subagent = any(summary.text(_SUBAGENT) for summary in summaries)
        return Peek(
            session_id=_id(path),
            started=next((summary.first_time(_CREATED) for summary in summaries), None),
            parent=_parent(path) if is_subagent else "",
        )

    def beside(self, path: str) -> tuple[str, ...]:
        """Return the files that tell more of a session, as far as they are there."""
        here = Path(path)
        if here.name != _CHAT:
            return ()
        return tuple(
            str(path) for path in map(here.with_name, (_SUMMARY, _UPDATES)) if path.exists()
        )

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one session."""
        draft = TranscriptDraft(path)
        draft.id = _id(path)
        beside = {Path(each).name: each for each in self.beside(path)}
        summaries = [beside[_SUMMARY]] if _SUMMARY in beside else []
        about: JsonRecord = next(draft.load_beside(summaries), {})
        draft.take(mapping(about.get("info")), cwd="cwd")
        draft.take(about, title="generated_title", branch="head_branch")
        if about.get("session_kind") == "subagent":
            draft.parent, draft.is_subagent = _parent(path), True
        draft.see(moment(about.get("created_at")))
        updates = _Updates()
        if _UPDATES in beside:
            with suppress(OSError):  # the conversation is whole without them
                draft.read_lines(updates.take, beside[_UPDATES])
        talk = _Talk(updates)
        draft.read_lines(talk.convert)
        draft.references.reverse()  # its own before what is beside it
        draft.see(updates.began)
        draft.see(updates.ended)
        if updates.usage != NO_USAGE:
            inner = [_usage_of(Path(path).parents[1] / id / _UPDATES) for id in talk.awaited]
            draft.usage = _less(updates.usage, sum(inner, NO_USAGE))
        return draft


READER = GrokReader()


def _id(path: str) -> str:
    here = Path(path)
    return here.parent.name if here.name == _CHAT else here.stem


def _parent(path: str) -> str:
    """Return the session that began another, as its folder shows; empty where it is not there."""
    here = Path(path).parent
    names = here.parent.glob(f"*/subagents/{here.name}")
    return next((name.parent.parent.name for name in sorted(names)), "")


def _usage_of(path: Path) -> Usage:
    """Return what a subagent spent, which counts in the turn that waited for it as well."""
    updates = _Updates()
    with suppress(OSError):
        updates.take(JsonLines(str(path)))
    return updates.usage


def _less(usage: Usage, inner: Usage) -> Usage:
    counts = zip(astuple(usage), astuple(inner), strict=True)
    return Usage(*(max(0, all_of_it - less) for all_of_it, less in counts))


class _Updates:
    """What the program tells a session's watchers, by calls, prompts and answers."""

    def __init__(self) -> None:
        self.usage = NO_USAGE
        self.began: datetime | None = None
        self.ended: datetime | None = None
        self.asked: dict[int, datetime | None] = {}
        """By number, when a prompt was given."""
        self.stopped: set[int] = set()
        """The prompts whose work the person stopped."""
        self.calls: dict[str, JsonRecord] = {}
        """The last update of a call."""
        self.times: dict[str, datetime | None] = {}
        self.answers: dict[int, datetime | None] = {}
        """By when they began to come, the times of answers, in their order."""

    def take(self, lines: JsonLines, draft: TranscriptDraft | None = None) -> None:
        """Take all updates."""
        prompt = -1
        for record in lines:
            params = mapping(record.get("params"))
            update, about = mapping(params.get("update")), mapping(params.get("_meta"))
            at, kind = moment(about.get("agentTimestampMs")), update.get("sessionUpdate")
            self.began = self.began or at
            self.ended = at or self.ended
            began = whole_number(about.get("streamStartMs"))
            if began:
                self.answers.setdefault(began, moment(began))
            if kind == "user_message_chunk":
                prompt = whole_number(mapping(update.get("_meta")).get("promptIndex"))
                self.asked.setdefault(prompt, at)
            elif kind in ("tool_call", "tool_call_update"):
                id = string(update.get("toolCallId"))
                self.times.setdefault(id, at)
                if update.get("status") in _ENDED:
                    self.calls[id] = {**update, "at": at}
            elif kind == "turn_completed":
                self.usage += _BILLED.usage(mapping(update.get("usage")))
                if update.get("stop_reason") == "cancelled":
                    self.stopped.add(prompt)


class _Talk:
    """A session's conversation on its way to the timeline."""

    def __init__(self, updates: _Updates) -> None:
        self._updates = updates
        self._prompt = -1
        self.awaited: list[str] = []
        """The subagents whose end a call waited for."""

    def convert(self, lines: JsonLines, draft: TranscriptDraft) -> None:
        """Take all records."""
        records = list(lines)
        answers = sum(record.get("type") == "assistant" for record in records)
        times = list(self._updates.answers.values())
        if len(times) != answers:  # which is whose nobody can tell
            times = []
        timeline = draft.timeline
        for number, record in enumerate(records):
            kind, content = record.get("type"), record.get("content")
            if kind == "system":
                draft.system_prompt = draft.system_prompt or string(content)
            elif kind == "user":
                self._ask(record, draft)
            elif kind == "reasoning":
                parts = mappings(record.get("summary"))
                timeline.thoughts += [string(part.get("text")) for part in parts]
            elif kind == "assistant":
                calls = mappings(record.get("tool_calls"))
                first = next(
                    (self._updates.times.get(string(call.get("id"))) for call in calls), None
                )
                at = times.pop(0) if times else first
                id = f"answer-{number}"
                message = timeline.begin_message(id, record.get("model_id"), at)
                message.texts.append(text_of(content))
                for call in calls:
                    began = self._updates.times.get(string(call.get("id")), at)
                    given = call.get("arguments")
                    timeline.call(message, call.get("id"), call.get("name"), given, began)
            elif kind == "tool_result":
                self._end(record, draft)
        self._stop(draft)

    def _ask(self, record: JsonRecord, draft: TranscriptDraft) -> None:
        content = record.get("content")
        words = text_of([part for part in mappings(content) if part.get("type") == "text"])
        if type(content) is str:
            words = content
        if type(record.get("prompt_index")) is not int:
            draft.timeline.add_context("program", words, None)
            return
        self._stop(draft)
        self._prompt = record["prompt_index"]
        at = self._updates.asked.get(self._prompt)
        images = sum("image" in string(part.get("type")) for part in mappings(content))
        query = inside(words, _QUERY)
        draft.timeline.prompt((words if query is None else query).strip("\n"), at, images)

    def _stop(self, draft: TranscriptDraft) -> None:
        if self._prompt in self._updates.stopped:
            draft.timeline.interrupt(None)

    def _end(self, record: JsonRecord, draft: TranscriptDraft) -> None:
        call = draft.called(record.get("tool_call_id"))
        if call is None:
            return
        text = text_of(record.get("content"))
        if call.name == _SPAWN and not text.startswith(_IN_BACKGROUND):
            self.awaited += _STARTED.findall(text)
        about = self._updates.calls.get(call.transcript_id, {})
        came = mapping(about.get("rawOutput"))
        code = came.get("exit_code") if came.get("type") == "Bash" else None
        draft.timeline.result(
            call,
            text,
            failed=about.get("status") == "failed",
            at=about.get("at"),
            exit_code=code if type(code) is int else None,
            edit=_edit(about.get("content")),
        )


def _edit(content: Any) -> FileEdit | None:
    diffs = (part for part in mappings(content) if part.get("type") == "diff")
    return joined(
        replaced(string(diff.get("path")), string(diff.get("oldText")), string(diff.get("newText")))
        for diff in diffs
    )
