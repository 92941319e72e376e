"""Tasks of Cline's extension for editors: ``<tasks>/<id>/api_conversation_history.json``.

What the model was sent, word for word. Its program wraps the person's words in elements and puts
the environment behind them; results are texts that name their call, and in older versions calls
are elements too. ``ui_messages.json`` beside it tells the tokens and times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Head, Peek
from debrief.sessions.readers.documents import JsonRecord
from debrief.sessions.readers.patches import FileEdit, edit_of_arguments, joined, replaced
from debrief.sessions.readers.timeline import CallDraft, MessageDraft
from debrief.sessions.readers.values import (
    decoded_arguments,
    first_string,
    inside,
    mapping,
    mappings,
    moment,
    number_in,
    string,
    text_of,
    whole_numbers,
)

DOCUMENT = "api_conversation_history.json"
_EXTENSION = "User/globalStorage/saoudrizwan.claude-dev/tasks"
HOME_FOLDERS = (
    ".cline/data/tasks",
    f".config/Code/{_EXTENSION}",
    f"Library/Application Support/Code/{_EXTENSION}",
    f".vscode-server/data/{_EXTENSION}",
)
_BESIDE = ("ui_messages.json", "task_metadata.json")
_START = re.compile(rb'\A\s*\[\s*\{\s*"role"\s*:\s*"user"\s*,\s*"content"\s*:')
_TASK = re.compile(rb"<(?:task|environment_details|user_message|feedback)>")
_TIME = re.compile(rb'(?<!\\)"ts"\s*:\s*(\d{9,16})')
_FOLDER = re.compile(r"# Current Working Directory \(([^()\n]+)\) Files")
_COMMIT = re.compile(r'"latestGitCommitHash":\s*"([0-9a-f]{40})"')
_RESULT = re.compile(r"\s*\[(\w+)(?: for .*?)?\] Result:\s*", re.DOTALL)
_WORDS = ("task", "user_message", "feedback", "answer")
_REFUSED = "The user denied this operation"
_EXIT_CODE = re.compile(r"exit(?:ed)?(?: with)? code:? (-?\d+)", re.IGNORECASE)
_ERROR = re.compile(r"\s*(?:The tool execution failed|Error |\[ERROR\])")
_SEARCH = re.compile(r"[-<]{3,} SEARCH>?")
_REPLACE = re.compile(r"[+>]{3,} REPLACE>?")
_ELEMENT = re.compile(r"<(\w+)>")
_CALL = re.compile(
    "<(execute_command|read_file|write_to_file|replace_in_file|search_files|list_files"
    "|list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|web_fetch"
    "|ask_followup_question|plan_mode_respond|attempt_completion|new_task)>"
)
_EDITING = frozenset({"write_to_file", "new_file", "replace_in_file", "apply_patch"})


def claims(head: bytes) -> bool:
    """Return whether a beginning is of a task's document."""
    return _START.match(head) is not None and _TASK.search(head) is not None


def describe(head: Head, path: str) -> Peek:
    """Return what the beginning says: a task's folder is named after the time it began."""
    id = _id(path)
    return Peek(session_id=id, started=_began(id) or head.first_time(_TIME))


def beside(path: str) -> tuple[str, ...]:
    """Return what the extension keeps beside a task's document."""
    paths = (str(Path(path).with_name(name)) for name in _BESIDE)
    return tuple(each for each in paths if Path(each).is_file())


def convert(document: JsonRecord, others: list[JsonRecord], draft: TranscriptDraft) -> None:
    """Take a task's messages over.

    Args:
        others: the files beside the document that could be read.
    """
    draft.id, draft.tool = _id(draft.path), "cline-vscode"
    draft.see(_began(draft.id))
    requests: dict[int, JsonRecord] = {}
    for each in others:
        for shown in mappings(each.get("messages")):
            if shown.get("say") == "api_req_started":
                before = shown.get("conversationHistoryIndex")
                requests[before + 2 if type(before) is int else len(requests) * 2 + 1] = shown
        hosts = mappings(each.get("environment_history"))
        draft.version = draft.version or string((hosts or [{}])[-1].get("cline_version"))
    for index, message in draft.objects_in(document.get("messages")):
        request = requests.get(index, {})
        at = moment(message.get("ts", request.get("ts")))
        draft.see(at)
        if message.get("role") == "user":
            _ask(message.get("content"), at, draft)
        elif message.get("role") == "assistant":
            _answer(message, request, f"{draft.id}-{index + 1}", at, draft)


def _id(path: str) -> str:
    return Path(path).parent.name


def _began(id: str) -> datetime | None:
    return moment(int(id)) if re.fullmatch(r"\d{12,14}", id) else None


def _ask(content: Any, at: datetime | None, draft: TranscriptDraft) -> None:
    """Take a message to the model: results of calls, then what the person says."""
    pending: CallDraft | None = None
    blocks = [{"type": "text", "text": content}] if type(content) is str else mappings(content)
    images = sum(block.get("type") == "image" for block in blocks)
    for block in blocks:
        if block.get("type") == "tool_result":
            pending = draft.called(block.get("tool_use_id"))
            pending = _result(pending, text_of(block.get("content")), at, draft)
            continue
        text = string(block.get("text"))
        if text.startswith("<environment_details>"):
            if not draft.cwd and (folder := _FOLDER.search(text)):
                draft.cwd = folder[1]
            if not draft.commit and (commit := _COMMIT.search(text)):
                draft.commit = commit[1]
        elif named := _RESULT.match(text):
            calls = _open(draft)
            call = next((each for each in calls if each.name == named[1]), next(iter(calls), None))
            draft.orphan_results += call is None
            pending = _result(call, text[named.end() :], at, draft)
        elif pending is not None:
            pending = _result(pending, text, at, draft)
        else:
            _say(text, images, at, draft)


def _open(draft: TranscriptDraft) -> list[CallDraft]:
    turns = draft.timeline.turns
    messages = turns[-1].messages if turns else []
    calls = messages[-1].calls if messages else []
    return [call for call in calls if call.status == "unanswered"]


def _say(text: str, images: int, at: datetime | None, draft: TranscriptDraft) -> None:
    words = next((found for name in _WORDS if (found := inside(text, name)) is not None), None)
    if words is not None:
        draft.timeline.prompt(words.strip("\n"), at, images)


def _result(
    call: CallDraft | None, text: str, at: datetime | None, draft: TranscriptDraft
) -> CallDraft | None:
    """Answer a call; return it when its answer is still to come."""
    timeline = draft.timeline
    words = next((found for name in _WORDS[1:] if (found := inside(text, name)) is not None), None)
    if call is None or not text.strip():
        return call
    if text.startswith(_REFUSED):
        timeline.reject(call, text, at, words=(words or "").strip("\n"))
        return None
    code = number_in(text[:200], _EXIT_CODE) if call.name == "execute_command" else None
    failed = _ERROR.match(text) is not None
    timeline.result(call, text, failed=failed, at=at, exit_code=code, edit=_edit(call))
    if words is not None:
        asked = call.name in ("ask_followup_question", "plan_mode_respond", "attempt_completion")
        if asked and call.name != "ask_followup_question":
            timeline.prompt(words.strip("\n"), at)
        else:
            timeline.intervene("answer" if asked else "remark", words.strip("\n"), at)
    return None


def _answer(
    message: JsonRecord,
    request: JsonRecord,
    identity: str,
    at: datetime | None,
    draft: TranscriptDraft,
) -> None:
    timeline = draft.timeline
    model = first_string(mapping(message.get("modelInfo")), "modelId")
    model = model or first_string(mapping(request.get("modelInfo")), "modelId")
    answer = timeline.begin_message(identity, model, at)
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if type(content) is str else mappings(content)
    has_calls = any(block.get("type") == "tool_use" for block in blocks)
    for block in blocks:
        if block.get("type") == "tool_use":
            timeline.call(answer, block.get("id"), block.get("name"), block.get("input"), at)
        elif block.get("type") == "text" and has_calls:
            answer.texts.append(string(block.get("text")))
        elif block.get("type") == "text":
            answer.texts.append(_elements(string(block.get("text")), answer, at, draft))
    timeline.spend(_usage(message, request))


def _elements(text: str, answer: MessageDraft, at: datetime | None, draft: TranscriptDraft) -> str:
    """Take calls that are elements of a text; return the text without them."""
    kept: list[str] = []
    done = 0
    while (start := _CALL.search(text, done)) is not None:
        end = text.rfind(f"</{start[1]}>")
        if end < start.end():
            break
        draft.timeline.call(answer, "", start[1], _parameters(text[start.end() : end]), at)
        kept.append(text[done : start.start()])
        done = end + len(start[0]) + 1
    return "".join([*kept, text[done:]])


def _parameters(text: str) -> dict[str, str]:
    """Return the elements of a call, as far as they are closed."""
    found: dict[str, str] = {}
    at = 0
    while (start := _ELEMENT.search(text, at)) is not None:
        end = text.find(f"</{start[1]}>", start.end())
        if end < 0:
            break
        found[start[1]] = text[start.end() : end].strip("\n")
        at = end + len(start[0]) + 1
    return found


def _usage(message: JsonRecord, request: JsonRecord) -> Usage:
    shown = string(request.get("text"))
    counts = decoded_arguments(shown) if shown else {}
    if counts.get("tokensIn") is not None:
        return Usage(*whole_numbers(counts, "tokensIn", "tokensOut", "cacheWrites", "cacheReads"))
    tokens = mapping(message.get("metrics")).get("tokens")
    prompt, output, cached = whole_numbers(tokens, "prompt", "completion", "cached")
    return Usage(prompt, output, 0, cached)


def _edit(call: CallDraft) -> FileEdit | None:
    if call.name not in _EDITING:
        return None
    given = call.arguments
    path = first_string(given, "path", "absolutePath")
    if call.name == "replace_in_file":
        parts = _replacements(string(given.get("diff")))
        return joined(replaced(path, old, new, estimated=True) for old, new in parts)
    return edit_of_arguments({**given, "path": path})


def _replacements(diff: str) -> Iterator[tuple[str, str]]:
    """Yield what each block of a diff searches for, and what it puts there."""
    old: list[str] | None = None
    new: list[str] | None = None
    for line in diff.splitlines():
        if _SEARCH.fullmatch(line):
            old, new = [], None
        elif old is not None and new is None and line and not line.strip("="):
            new = []
        elif old is not None and new is not None and _REPLACE.fullmatch(line):
            yield "".join(f"{each}\n" for each in old), "".join(f"{each}\n" for each in new)
            old = new = None
        elif new is not None:
            new.append(line)
        elif old is not None:
            old.append(line)
