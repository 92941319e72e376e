"""Messages of a Gemini CLI chat as events of a session."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.jsonl import Record, compact_json, string, whole_number
from debrief.sessions.readers.moments import moment
from debrief.sessions.readers.patches import Edit, created, from_unified, replaced
from debrief.sessions.readers.timeline import CallDraft, arguments_text

SHELL = "run_shell_command"

_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)", re.MULTILINE)
_REFERENCED = re.compile(r"\s*--- Content from referenced files ---")
_NUDGE = "System: Please continue."
"""What the program says in the person's name when an answer broke off."""
_CANCELLED = re.compile(r"request cancelled|cancelled by user|user cancelled", re.IGNORECASE)


def convert(messages: list[Any], rewound: frozenset[int], reading: Reading) -> None:
    """Tell ``reading``'s timeline what the messages say, in their order.

    Args:
        rewound: places in ``messages`` that the person went back to before.
    """
    seen: set[str] = set()
    for place, message in enumerate(messages):
        if type(message) is not dict:
            reading.report(0, f"message {place + 1} is not an object")
            continue
        identity = string(message.get("id"))
        if identity and identity in seen:
            reading.report(0, f"message {place + 1} repeats an earlier one and was counted once")
            continue
        seen.add(identity)
        at = moment(message.get("timestamp"))
        reading.facts.see(at)
        kind = message.get("type")
        if kind == "user":
            _ask(message, at, place in rewound, reading)
        elif kind == "gemini":
            _answer(message, identity or f"message-{place + 1}", at, reading)
        elif kind == "info" and _CANCELLED.search(_text(message.get("content"))):
            reading.timeline.intervene("interruption", "", at)
        elif kind == "compression":
            reading.timeline.compact()


def _ask(message: Record, at: datetime | None, rewound: bool, reading: Reading) -> None:
    content = message.get("content")
    parts = content if type(content) is list else [content]
    words: list[str] = []
    images = 0
    for part in parts:
        text = part if type(part) is str else _text(part)
        if _REFERENCED.match(text):
            break
        if text.strip():
            words.append(text)
        images += _is_image(part)
    prompt = "\n".join(words)
    if (words or images) and prompt.strip() != _NUDGE:
        reading.timeline.prompt(prompt, at, images=images, rewound=rewound)


def _answer(message: Record, identity: str, at: datetime | None, reading: Reading) -> None:
    timeline = reading.timeline
    draft = timeline.begin_message(identity, string(message.get("model")), at)
    text = _text(message.get("content"))
    if text.strip():
        draft.texts.append(text)
    calls = message.get("toolCalls")
    for number, told in enumerate(calls if type(calls) is list else ()):
        if type(told) is not dict:
            continue
        call_id = string(told.get("id")) or f"{identity}-{number}"
        name = string(told.get("name")) or "unknown"
        call = timeline.call(draft, call_id, name, arguments_text(told.get("args")), at)
        _result(call, told, reading)
    tokens = message.get("tokens")
    if type(tokens) is dict:
        timeline.spend(_usage(tokens))


def _result(call: CallDraft, told: Record, reading: Reading) -> None:
    status = told.get("status")
    at = moment(told.get("timestamp"))
    text = _result_text(told.get("result"))
    timeline = reading.timeline
    if status == "cancelled":
        timeline.reject(call, text, at)
        return
    if status not in ("success", "completed", "error"):
        return
    exit_code = _exit_code(call.name, text, failed=status == "error")
    failed = status == "error" or bool(exit_code)
    edit = None if failed else _edit(call.name, told.get("args"), told.get("resultDisplay"))
    timeline.result(call, text, failed=failed, at=at, exit_code=exit_code, edit=edit)


def _exit_code(name: str, text: str, *, failed: bool) -> int | None:
    """Return a command's exit code; newer versions leave it out when it is 0."""
    if name != SHELL:
        return None
    found = _EXIT_CODE.search(text)
    if found:
        return int(found[1])
    return 0 if text.startswith("Output:") and not failed else None


def _edit(name: str, arguments: Any, display: Any) -> Edit | None:
    given = arguments if type(arguments) is dict else {}
    path = string(given.get("file_path")) or string(given.get("absolute_path"))
    if type(display) is dict and type(display.get("fileDiff")) is str:
        target = string(display.get("filePath")) or path or string(display.get("fileName"))
        return from_unified(target, display["fileDiff"])
    if not path:
        return None
    if name == "write_file":
        return created(path, string(given.get("content")), estimated=True)
    if name in ("replace", "edit"):
        old, new = string(given.get("old_string")), string(given.get("new_string"))
        return replaced(path, old, new, estimated=True)
    return None


def _usage(tokens: Record) -> Usage:
    cached = whole_number(tokens.get("cached"))
    prompt = whole_number(tokens.get("input")) + whole_number(tokens.get("tool"))
    output = whole_number(tokens.get("output")) + whole_number(tokens.get("thoughts"))
    return Usage(max(0, prompt - cached), output, 0, cached)


def _text(content: Any) -> str:
    if type(content) is str:
        return content
    if type(content) is dict:
        return string(content.get("text"))
    if type(content) is list:
        parts = (_text(part) for part in content if type(part) is not list)
        return "\n".join(filter(None, parts))
    return ""


def _is_image(part: Any) -> bool:
    data = part.get("inlineData") if type(part) is dict else None
    return type(data) is dict and string(data.get("mimeType")).startswith("image/")


def _result_text(result: Any) -> str:
    if type(result) is str:
        return result
    texts: list[str] = []
    for part in result if type(result) is list else [result]:
        answer = part.get("functionResponse") if type(part) is dict else None
        response = answer.get("response") if type(answer) is dict else None
        if type(response) is dict:
            told = response.get("output", response.get("error", response))
            texts.append(told if type(told) is str else compact_json(told))
        elif type(part) is dict and _text(part):
            texts.append(_text(part))
    return "\n".join(texts)
