"""From Langfuse's observations to the normal form: a trace is a turn, its observations its work."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from debrief.digests import digest_of
from debrief.langfuse.listing import moment_of
from debrief.sessions.model import Message, Session, ToolCall, TranscriptRef, Turn, Usage
from debrief.slugs import slugify

SOURCE = "langfuse"

Row = Mapping[str, Any]

_TASK_TAG = "task:"
_USAGE = {
    "input": ("input", "input_tokens", "prompt_tokens"),
    "output": ("output", "output_tokens", "completion_tokens"),
    "cache_write": ("cache_creation_input_tokens", "input_cache_creation"),
    "cache_read": ("cache_read_input_tokens", "input_cached_tokens", "input_cache_read"),
}
_TEXT_KEYS = ("content", "text", "output", "answer", "response", "result", "completion", "message")
_PROMPT_KEYS = ("prompt", "input", "query", "question", "messages", "content", "text", "message")
_CALLS = ("TOOL", "RETRIEVER")
_ANSWERS = ("GENERATION", "EMBEDDING")
_DEEPEST = 8


def session_of(
    session_id: str,
    rows: Sequence[Row],
    redact: Callable[[Session], Session] | None = None,
) -> Session:
    """Return a session made of its observations.

    A trace's prompt is the input of its root, its messages are its generations, its calls its
    tools and those spans that have nothing below them. What a root says last is a message when
    no generation said it.

    Args:
        session_id: as the server has it.
        rows: its observations in the order of their start; at least one.
        redact: applied before the digest is taken.
    """
    traces: dict[str, list[Row]] = {}
    for row in rows:
        traces.setdefault(str(row.get("traceId")), []).append(row)
    turns = tuple(_turn(number, own) for number, own in enumerate(traces.values(), 1))
    messages = [message for turn in turns for message in turn.messages]
    models = Counter(message.model for message in messages if message.model)
    moments = [at for row in rows for at in (_moment(row, "startTime"), _moment(row, "endTime"))]
    known = [at for at in moments if at] or [datetime.fromtimestamp(0, UTC)]
    session = Session(
        id=session_id,
        source=SOURCE,
        tool=SOURCE,
        models=tuple(name for name, _ in models.most_common()),
        task=_task(rows),
        started=min(known),
        ended=max(known),
        title=next((str(row["traceName"]) for row in rows if row.get("traceName")), ""),
        transcripts=(_reference(session_id, turns, len(rows)),),
        turns=turns,
        usage=sum((message.usage for message in messages), Usage()),
        api_calls=sum(bool(message.model) for message in messages),
    )
    session = redact(session) if redact else session
    return msgspec.structs.replace(session, digest=digest_of(session))


def path_of(session_id: str) -> str:
    """Return what stands for a path where sessions from files have theirs."""
    return f"{SOURCE}:{session_id}"


def _reference(session_id: str, turns: tuple[Turn, ...], rows: int) -> TranscriptRef:
    """Return what a session was read from; its digest is over all that was read."""
    data = msgspec.json.encode(turns)
    digest = hashlib.sha256(data).hexdigest()
    return TranscriptRef(path=path_of(session_id), digest=digest, size=len(data), records=rows)


def _turn(number: int, rows: Sequence[Row]) -> Turn:
    parents = {row.get("parentObservationId") for row in rows}
    root = next((row for row in rows if row.get("isRootObservation")), None)
    messages: list[Message] = []
    for row in rows:
        kind = str(row.get("type") or "SPAN").upper()
        if kind in _ANSWERS:
            messages.append(_message(row))
        elif kind in _CALLS or (
            kind in ("SPAN", "EVENT") and row is not root and row.get("id") not in parents
        ):
            _add_call(messages, row)
    prompt = text_of(root.get("input") if root else None, _PROMPT_KEYS, "user")
    if not prompt:
        first = next((row for row in rows if row.get("input") not in (None, "")), None)
        prompt = text_of(first.get("input") if first else None, _PROMPT_KEYS, "user")
    last = text_of(root.get("output") if root else None, _TEXT_KEYS, "assistant")
    if root and last and all(message.text != last for message in messages):
        kind = str(root.get("type") or "").upper()
        if kind not in _ANSWERS and kind not in _CALLS:
            at = _moment(root, "endTime") or _moment(root, "startTime")
            messages.append(Message(id=f"{root.get('id')}:output", model="", at=at, text=last))
    ends = [at for row in rows if (at := _moment(row, "endTime"))]
    return Turn(
        number=number,
        prompt=prompt,
        at=_moment(rows[0], "startTime"),
        ended=max(ends) if ends else None,
        messages=tuple(messages),
    )


def _message(row: Row) -> Message:
    return Message(
        id=str(row.get("id")),
        model=str(row.get("model") or row.get("providedModelName") or ""),
        at=_moment(row, "startTime"),
        text=text_of(row.get("output"), _TEXT_KEYS, "assistant"),
        usage=_usage(row),
    )


def _add_call(messages: list[Message], row: Row) -> None:
    """Put a call into the message that came before it, or into one of its own."""
    failed = row.get("level") == "ERROR"
    told = str(row.get("statusMessage") or "") if failed else ""
    output = row.get("output")
    result = "\n".join(filter(None, (_plain(output), told))) if output or told else None
    call = ToolCall(
        id=str(row.get("id")),
        name=str(row.get("name") or row.get("type") or "tool"),
        input=_arguments(row.get("input")),
        result=result,
        status="failed" if failed else "unanswered" if result is None else "ok",
        at=_moment(row, "startTime"),
    )
    if not messages:
        messages.append(Message(id=f"{row.get('id')}:call", model="", at=call.at))
    before = messages[-1]
    messages[-1] = msgspec.structs.replace(before, calls=(*before.calls, call))


def text_of(value: object, keys: Iterable[str], role: str, depth: int = 0) -> str:
    """Return the text in an input or output, whatever form an integration gave it.

    Strings that hold JSON are looked into; of a list of chat messages the last one of ``role``
    counts; of an object the first of ``keys`` that holds text. Anything else is given as JSON.
    """
    value = _decoded(value)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if depth < _DEEPEST:
        if isinstance(value, list):
            said = [item for item in value if isinstance(item, dict) and "role" in item]
            own = [item for item in said if item["role"] == role]
            if own:
                return text_of(own[-1].get("content"), keys, role, depth + 1)
            parts = [item for item in value if isinstance(item, dict) and "text" in item]
            if parts and len(parts) == len(value):
                return "\n".join(str(part["text"]) for part in parts)
        if isinstance(value, dict):
            for key in keys:
                if value.get(key):
                    return text_of(value[key], keys, role, depth + 1)
            if len(value) == 1 and isinstance(only := next(iter(value.values())), str):
                return only
    return _plain(value)


def _decoded(value: object) -> object:
    if isinstance(value, str) and value[:1] in "[{":
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _arguments(value: object) -> str:
    decoded = _decoded(value)
    if not isinstance(decoded, dict):
        decoded = {} if decoded in (None, "") else {"input": decoded}
    return orjson.dumps(decoded).decode()


def _usage(row: Row) -> Usage:
    details = row.get("usageDetails") or row.get("usage") or {}
    if not isinstance(details, dict):
        return Usage()
    found = {
        name: next((int(details[key]) for key in keys if details.get(key)), 0)
        for name, keys in _USAGE.items()
    }
    return Usage(**found)


def _task(rows: Sequence[Row]) -> str:
    tags = (tag for row in rows for tag in row.get("tags") or () if isinstance(tag, str))
    named = next((tag for tag in tags if tag.startswith(_TASK_TAG)), "")
    return slugify(named.removeprefix(_TASK_TAG)) if named else "unknown"


def _moment(row: Row, name: str) -> datetime | None:
    return moment_of(row.get(name))
