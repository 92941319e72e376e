"""Records of a droid transcript as events of a session."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import orjson

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.blocks import text_of
from debrief.sessions.readers.elements import without
from debrief.sessions.readers.jsonl import JsonLines, compact_json, string, whole_number
from debrief.sessions.readers.moments import moment
from debrief.sessions.readers.patches import (
    Edit,
    created,
    from_apply_patch,
    from_unified,
    joined,
    replaced,
)
from debrief.sessions.readers.timeline import (
    NO_USAGE,
    MessageDraft,
    arguments_text,
    decoded_arguments,
)

MACHINE_VISIBILITY = frozenset({"llm_only", "user_only"})
"""Of messages that no person wrote: context for the model, notices for the screen."""

CONTEXT = "context-"
"""What the ids of messages with context for the model begin with."""

_REMINDERS = ("system-reminder", "system-notification")
_ATTACHED_FILE = re.compile(r"Contents of .+ \(lines \d+-\d+ of \d+\):\n")
_EXIT_CODE = re.compile(
    r"\[Process exited with code (-?\d+)\]|\(exit code:? (-?\d+)\)|\bexit code:? (-?\d+)",
    re.IGNORECASE,
)
_INTERRUPTED = "[Request interrupted by user"
_STOPPED = re.compile(r"interrupt|cancel|abort", re.IGNORECASE)
_EDITING = frozenset({"ApplyPatch", "Create", "Write", "Edit", "MultiEdit"})
_TAIL = 300


def convert(lines: JsonLines, reading: Reading) -> None:
    """Tell ``reading``'s timeline what the records say, in their order."""
    seen: set[str] = set()
    for record in lines:
        kind = record.get("type")
        at = moment(record.get("timestamp"))
        reading.facts.see(at)
        if kind == "message":
            identity = record.get("id")
            if isinstance(identity, str) and identity:
                if identity in seen:
                    continue
                seen.add(identity)
            message = record.get("message")
            if isinstance(message, dict):
                _message(record, message, f"line-{lines.line}", at, reading)
            else:
                lines.report("a message record without a message")
        elif kind == "session_start":
            _start(record, reading)
        elif kind == "compaction_state":
            reading.timeline.compact()
        elif kind == "agent_turn_outcome" and _STOPPED.search(str(record.get("reason", ""))):
            reading.timeline.intervene("interruption", "", at)


def _start(record: dict[str, Any], reading: Reading) -> None:
    facts = reading.facts
    if facts.id:
        return
    facts.id = string(record.get("id"))
    facts.title = string(record.get("sessionTitle")) or string(record.get("title"))
    if facts.title in ("New Session", ""):
        facts.title = string(record.get("title"))
    facts.cwd = string(record.get("cwd"))
    facts.version = string(record.get("version"))
    facts.parent = string(record.get("callingSessionId"))
    facts.parent_call = string(record.get("callingToolUseId"))


def _message(
    record: dict[str, Any],
    message: dict[str, Any],
    fallback: str,
    at: datetime | None,
    reading: Reading,
) -> None:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return
    blocks = [block for block in blocks if isinstance(block, dict)]
    identity = string(record.get("id")) or fallback
    if message.get("role") == "assistant":
        _answer(message, blocks, identity, at, reading)
    elif message.get("role") == "user":
        machine = string(record.get("visibility")) in MACHINE_VISIBILITY or identity.startswith(
            CONTEXT
        )
        _ask(blocks, machine, at, reading)


def _answer(
    message: dict[str, Any],
    blocks: list[dict[str, Any]],
    identity: str,
    at: datetime | None,
    reading: Reading,
) -> None:
    timeline = reading.timeline
    model = string(message.get("modelId")) or string(message.get("model")) or reading.facts.model
    draft: MessageDraft = timeline.begin_message(identity, model, at)
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            text = string(block.get("text"))
            if text.strip():
                draft.texts.append(text)
        elif kind == "tool_use":
            number = len(draft.calls)
            call_id = string(block.get("id")) or f"{identity}-{number}"
            name = string(block.get("name")) or "unknown"
            timeline.call(draft, call_id, name, arguments_text(block.get("input")), at)
    usage = message.get("usage")
    if isinstance(usage, dict):
        timeline.spend(_message_usage(usage))


def _ask(
    blocks: list[dict[str, Any]], machine: bool, at: datetime | None, reading: Reading
) -> None:
    timeline = reading.timeline
    texts: list[str] = []
    images = 0
    answers = False
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            answers = True
            _result(block, at, reading)
        elif kind == "image":
            images += 1
        elif kind == "text":
            text = string(block.get("text"))
            if "<system-" in text:
                text = without(text, _REMINDERS).strip()
            if text.strip() and not _ATTACHED_FILE.match(text):
                texts.append(text)
    if machine or not (texts or images):
        return
    prompt = "\n\n".join(texts)
    if prompt.startswith(_INTERRUPTED):
        timeline.intervene("interruption", "", at)
    elif answers:
        if prompt:
            timeline.intervene("remark", prompt, at)
    else:
        timeline.prompt(prompt, at, images=images)


def _result(block: dict[str, Any], at: datetime | None, reading: Reading) -> None:
    timeline = reading.timeline
    call_id = string(block.get("tool_use_id"))
    text = result_text(block.get("content"))
    call = timeline.calls.get(call_id)
    if call is None:
        reading.orphan_results += 1
        return
    outcome = _outcome(text)
    failed = block.get("is_error") is True or outcome.get("success") is False
    exit_code = None
    if call.name == "Execute":
        match = _EXIT_CODE.search(text, max(0, len(text) - _TAIL)) or _EXIT_CODE.search(
            text, 0, _TAIL
        )
        if match:
            exit_code = int(match[1] or match[2] or match[3])
            failed = failed or exit_code != 0
    edit = None if failed else _edit(call.name, call.input, outcome)
    timeline.result(call, text, failed=failed, at=at, exit_code=exit_code, edit=edit)


def result_text(content: Any) -> str:
    """Return the text of a tool result: a string, a list of blocks, or an object."""
    return compact_json(content) if type(content) is dict else text_of(content)


def _outcome(text: str) -> dict[str, Any]:
    if not (text.startswith("{") and '"success"' in text):
        return {}
    try:
        outcome = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return outcome if isinstance(outcome, dict) else {}


def _edit(name: str, given: str, outcome: dict[str, Any]) -> Edit | None:
    if name not in _EDITING:
        return None
    arguments = decoded_arguments(given)
    diff = string(outcome.get("diff"))
    if name == "ApplyPatch":
        patch = string(arguments.get("input")) or string(arguments.get("patch"))
        edits = from_apply_patch(patch)
        told = from_unified(edits[0].path, diff) if len(edits) == 1 else None
        return told if told is not None and told.patch else joined(edits)
    path = string(arguments.get("file_path")) or string(arguments.get("path"))
    if not path:
        return None
    told = from_unified(path, diff)
    if told.patch:
        return told
    if name in ("Create", "Write"):
        return created(path, string(arguments.get("content")), estimated=True)
    changes = arguments.get("changes") or arguments.get("edits")
    parts = changes if type(changes) is list else [arguments]
    return joined(_replacement(path, part) for part in parts if type(part) is dict)


def _replacement(path: str, part: dict[str, Any]) -> Edit:
    old = string(part.get("old_string")) or string(part.get("old_str"))
    new = string(part.get("new_string")) or string(part.get("new_str"))
    return replaced(path, old, new, estimated=True)


def _message_usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        whole_number(usage.get("input_tokens")),
        whole_number(usage.get("output_tokens")),
        whole_number(usage.get("cache_creation_input_tokens")),
        whole_number(usage.get("cache_read_input_tokens")),
    )


def settings_usage(settings: dict[str, Any], key: str = "tokenUsage") -> Usage:
    """Return the tokens that a settings file tells; nothing when it tells none."""
    usage = settings.get(key)
    if not isinstance(usage, dict):
        return NO_USAGE
    return Usage(
        whole_number(usage.get("inputTokens")),
        whole_number(usage.get("outputTokens")),
        whole_number(usage.get("cacheCreationTokens")),
        whole_number(usage.get("cacheReadTokens")),
    )
