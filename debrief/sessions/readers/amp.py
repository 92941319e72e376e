"""Amp: ``~/.local/share/amp/threads/<id>.json``, a thread a document.

What came back from a call is stored as its program got it; the model was given it as text, which
is made here as the program makes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek, ToolNames, TranscriptReader
from debrief.sessions.readers.codex.records import repository_of
from debrief.sessions.readers.documents import JsonRecord, compact_json
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments
from debrief.sessions.readers.timeline import CallDraft
from debrief.sessions.readers.values import (
    first_string,
    mapping,
    mappings,
    moment,
    string,
    text_of,
    usage_in,
    whole_numbers,
)

_ID = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_CREATED = re.compile(rb'(?<!\\)"(?:created|sentAt)"\s*:\s*(\d{10,16})')
_SENT = re.compile(rb'(?<!\\)"sentAt"\s*:\s*(\d{10,16})')
_PARENT = re.compile(rb'(?<!\\)"mainThreadID"\s*:\s*"([^"\\]+)"')
_BILLED = ("inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)
_EDITING = frozenset({"apply_patch", "create_file", "edit_file", "undo_edit"})
_UNFINISHED = frozenset({"in-progress", "queued", "blocked-on-user", "cancellation-requested"})
_GUIDANCE = "discoveredGuidanceFiles"
_RUN_BY_HAND = "manual_bash_invocation"
_MOST_NESTED = 20


class AmpReader(TranscriptReader):
    """Amp's threads, one document each."""

    source = "amp"
    tool = "amp"
    tools = ToolNames(
        run="Bash shell_command",
        read="Read look_at read_thread",
        search="Grep glob finder list_directory find_thread",
        edit=" ".join(sorted(_EDITING)),
        plan="todo_write todo_read",
        delegate="Task oracle librarian",
        web="web_search read_web_page",
    )
    home_folders = (".local/share/amp/threads",)
    moved_by = ("XDG_DATA_HOME", ".local/share")
    suffixes = (".json",)
    start = re.compile(
        rb'\A\s*\{\s*"v"\s*:\s*\d+\s*,\s*'
        rb'(?:"id"\s*:\s*"[^"]*"\s*,\s*"created"|"created"\s*:\s*\d+\s*,\s*"id")\s*:'
    )
    message_mark = re.compile(rb'(?<!\\)"role"\s*:\s*"(?:user|assistant)"')

    def describe(self, head: Head, path: str) -> Peek:
        """Return what the beginning says; a thread without an id is named after its file."""
        created = head.text(_CREATED)
        return Peek(
            session_id=head.text(_ID) or Path(path).stem,
            started=moment(int(created)) if created else None,
            root=head.text(_SENT),
            parent=head.text(_PARENT),
        )

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one thread."""
        draft = TranscriptDraft(path)
        thread = draft.load(path)
        draft.take(thread, id="id", title="title", parent="mainThreadID")
        draft.id = draft.id or Path(path).stem
        _describe(mapping(mapping(thread.get("env")).get("initial")), draft)
        draft.see(moment(thread.get("created")))
        for link in mappings(thread.get("relationships")):
            if (link.get("type"), link.get("role")) == ("fork", "child"):
                draft.relative_of = string(link.get("threadID"))
        ends = _ends(mapping(thread.get("meta")).get("traces"))
        for index, message in draft.objects_in(thread.get("messages")):
            role = message.get("role")
            if role == "user":
                _ask(message, ends.get(("tools", index - 1)), draft)
            elif role == "assistant":
                _answer(message, f"message-{index}", ends.get(("inference", index - 1)), draft)
            elif role == "info":
                _inform(message, draft)
        return draft


READER = AmpReader()


def _describe(initial: JsonRecord, draft: TranscriptDraft) -> None:
    """Take where the thread was begun, and with which version."""
    tree = next(iter(mappings(initial.get("trees"))), {})
    repository = mapping(tree.get("repository"))
    draft.cwd = _path(tree.get("uri"))
    draft.branch = string(repository.get("ref")).removeprefix("refs/heads/")
    draft.repository = repository_of(string(repository.get("url")))
    draft.take(repository, commit="sha")
    draft.take(mapping(initial.get("platform")), version="clientVersion")


def _path(uri: Any) -> str:
    """Return the path that a ``file:`` URI names; empty for any other."""
    try:
        parts = urlsplit(string(uri))
    except ValueError:
        return ""
    return unquote(parts.path) if parts.scheme == "file" else ""


def _ends(traces: Any) -> dict[tuple[str, int], datetime]:
    """Return when requests and calls ended, by what they were and the message they followed."""
    ends: dict[tuple[str, int], datetime] = {}
    for trace in mappings(traces):
        at, index = moment(trace.get("endTime")), mapping(trace.get("context")).get("messageId")
        if at is not None and type(index) is int:
            ends[string(trace.get("name")), index] = at
    return ends


def _ask(message: JsonRecord, ended: datetime | None, draft: TranscriptDraft) -> None:
    timeline, blocks = draft.timeline, mappings(message.get("content"))
    sent = moment(mapping(message.get("meta")).get("sentAt"))
    for at in (ended, sent):
        draft.see(at)
    _guide(message, draft)
    has_results = False
    for block in blocks:
        if block.get("type") == "tool_result":
            has_results = True
            _result(block, ended or sent, draft)
    texts = [string(block.get("text")) for block in blocks if block.get("type") == "text"]
    images = sum(block.get("type") == "image" for block in blocks)
    text = "\n\n".join(filter(str.strip, texts))
    if text or images:
        if mapping(message.get("source")).get("type") == "course-correction":
            timeline.add_context("program", text, sent)
        elif has_results:
            timeline.intervene("remark", text, sent)
        else:
            timeline.prompt(text, sent, images)


def _answer(
    message: JsonRecord, identity: str, ended: datetime | None, draft: TranscriptDraft
) -> None:
    timeline, counts = draft.timeline, mapping(message.get("usage"))
    at = moment(counts.get("timestamp")) or ended
    draft.see(at)
    answer = timeline.begin_message(identity, counts.get("model"), at)
    # What broke off within a call was neither run nor shown to the model again.
    blocks = (
        each for each in mappings(message.get("content")) if each.get("complete") is not False
    )
    draft.add_blocks(answer, blocks, at)
    timeline.spend(_usage(counts))
    if mapping(message.get("state")).get("type") == "cancelled":
        timeline.interrupt(at)


def _usage(counts: JsonRecord) -> Usage:
    """Return tokens; of whether input includes what was cached, the total is the witness."""
    usage = Usage(*whole_numbers(counts, *_BILLED))
    (total,) = whole_numbers(counts, "totalInputTokens")
    is_inside = total == usage.input and total >= usage.cache_write + usage.cache_read
    return usage_in(counts, *_BILLED) if is_inside else usage


def _inform(message: JsonRecord, draft: TranscriptDraft) -> None:
    """Take what a thread holds beside the conversation: summaries, commands, instructions."""
    for block in mappings(message.get("content")):
        summary = mapping(block.get("summary"))
        if block.get("type") == "summary" and summary.get("type") == "message":
            draft.timeline.compact(string(summary.get("summary")))
        elif block.get("type") == _RUN_BY_HAND and block.get("hidden") is not True:
            command = string(mapping(block.get("args")).get("cmd"))
            output = string(mapping(mapping(block.get("toolRun")).get("result")).get("output"))
            draft.timeline.add_context("command", f"Ran `{command}`\n```\n{output}\n```", None)
        elif block.get("type") == "text" and string(block.get("text")).strip():
            draft.timeline.add_context("program", string(block.get("text")), None)


def _guide(holder: JsonRecord, draft: TranscriptDraft) -> None:
    """Take the prompt files that the program found and gave the model."""
    files = (
        (_path(each.get("uri")), string(each.get("content")))
        for each in mappings(holder.get(_GUIDANCE))
    )
    draft.add_instructions(((path, text) for path, text in files if text), "message")


def _result(block: JsonRecord, at: datetime | None, draft: TranscriptDraft) -> None:
    call = draft.called(block.get("toolUseID"))
    run = mapping(block.get("run"))
    status, result = string(run.get("status")), run.get("result")
    _guide(mapping(result), draft)
    if call is None or status in _UNFINISHED:
        return
    if status == "rejected-by-user":
        words = string(run.get("reason"))
        draft.timeline.reject(call, "User rejected invoking the tool", at, words)
    elif status == "cancelled":
        draft.timeline.result(call, _progress(run.get("progress")), failed=True, at=at)
        call.status = "failed"
        draft.timeline.interrupt(at)
    elif status == "error":
        text = string(mapping(run.get("error")).get("message")) or string(run.get("error"))
        draft.timeline.result(call, text, failed=True, at=at)
    else:
        code = mapping(result).get("exitCode")
        draft.timeline.result(
            call,
            _shown(result),
            failed=False,
            at=at,
            exit_code=code if type(code) is int and abs(code) < 1 << 31 else None,
            edit=_edit(call, mapping(result)) if call.name in _EDITING else None,
        )


def _progress(progress: Any) -> str | None:
    """Return what a call that was cancelled had printed by then; None where nothing is known."""
    if type(progress) is list:
        return "\n".join(map(string, progress))
    return string(progress) or string(mapping(progress).get("output")) or None


def _shown(result: Any) -> str | None:
    """Return the text of a result that the model was given."""
    if result is None:
        return None
    if type(result) is str:
        return result
    if type(result) is list:
        is_content = all(each.get("type") in ("text", "image") for each in mappings(result))
        return text_of(result) if result and is_content else compact_json(result)
    if type(result) is not dict:
        return compact_json(result)
    if "imageInfo" in result:
        return "[image]"
    shown = {name: value for name, value in result.items() if name != _GUIDANCE}
    return "\n".join(_tagged(shown, _MOST_NESTED))


def _tagged(fields: JsonRecord, depth: int) -> Iterator[str]:
    for name, value in fields.items():
        if type(value) is dict and depth:
            yield f"<{name}>\n" + "\n".join(_tagged(value, depth - 1)) + f"\n</{name}>"
        else:
            text = value if type(value) is str else compact_json(value)
            yield f"<{name}>{text}</{name}>"


def _edit(call: CallDraft, result: JsonRecord) -> FileEdit | None:
    diff = first_string(result, "diff")
    fenced = _FENCE.match(diff)
    return edit_of_arguments(call.arguments, fenced[1] if fenced else diff)
