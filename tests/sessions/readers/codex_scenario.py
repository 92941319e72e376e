"""Rollouts of Codex CLI, record by record."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from debrief.sessions.model import Session
from debrief.sessions.readers.codex import READER
from tests.sessions.readers.content import read_all, write_records

ID = "019a0000-0000-7000-8000-000000000001"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"


def record(second: float, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromisoformat("2026-03-02T10:00:00+00:00").timestamp() + second
    stamp = datetime.fromtimestamp(at).astimezone().isoformat()
    return {"timestamp": stamp, "type": kind, "payload": payload}


def meta(second: float = 0, **more: Any) -> dict[str, Any]:
    facts = {
        "id": ID,
        "cwd": "/home/ann/shop",
        "cli_version": "0.140.0",
        "source": "cli",
        "git": {"branch": "main", "repository_url": "git@host:ann/shop.git"},
    }
    return record(second, "session_meta", {**facts, **more})


def context(second: float, model: str, **more: Any) -> dict[str, Any]:
    return record(second, "turn_context", {"model": model, "cwd": "/home/ann/shop", **more})


def event(second: float, kind: str, **more: Any) -> dict[str, Any]:
    return record(second, "event_msg", {"type": kind, **more})


def item(second: float, kind: str, **more: Any) -> dict[str, Any]:
    return record(second, "response_item", {"type": kind, **more})


def said(second: float, role: str, words: str) -> dict[str, Any]:
    block = {"type": "output_text" if role == "assistant" else "input_text", "text": words}
    return item(second, "message", role=role, content=[block])


def asked(second: float, words: str) -> list[dict[str, Any]]:
    return [said(second, "user", words), event(second, "user_message", message=words)]


def called(second: float, name: str, call: str, **arguments: Any) -> dict[str, Any]:
    return item(second, "function_call", name=name, call_id=call, arguments=json.dumps(arguments))


def answered(second: float, call: str, output: Any) -> dict[str, Any]:
    return item(second, "function_call_output", call_id=call, output=output)


def counted(second: float, total: tuple[int, int, int], last: tuple[int, int, int] | None) -> Any:
    fields = ("input_tokens", "cached_input_tokens", "output_tokens")
    info: dict[str, Any] = {"total_token_usage": dict(zip(fields, total, strict=True))}
    if last is not None:
        info["last_token_usage"] = dict(zip(fields, last, strict=True))
    return event(second, "token_count", info=info)


def completed(second: float, kind: str, thread: str = ID, **more: Any) -> dict[str, Any]:
    """Return the event of a paginated rollout that an item is complete."""
    return event(second, "item_completed", thread_id=thread, item={"type": kind, **more})


def wrote(second: float, *texts: str, kinds: tuple[str, ...] = ("user.text",)) -> dict[str, Any]:
    """Return a message in the user's name that tells of each part where it is from."""
    content = [
        {"type": "input_image"} if kind == "user.image" else {"type": "input_text", "text": text}
        for text, kind in zip(texts, kinds, strict=True)
    ]
    about = {"content_item_kinds": list(kinds)}
    return item(
        second,
        "message",
        role="user",
        content=content,
        internal_chat_message_metadata_passthrough=about,
    )


def prompted(second: float, words: str) -> list[dict[str, Any]]:
    """Return a prompt as a paginated rollout holds it."""
    content = [{"type": "text", "text": words}]
    return [wrote(second, words), completed(second, "UserMessage", content=content)]


def spent(second: float, total: tuple[int, int, int, int], last: tuple[int, ...]) -> Any:
    """Return what a paginated rollout says that a call cost: its own record, and the event."""
    fields = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    whole, own = (dict(zip(fields, counts, strict=True)) for counts in (total, last))
    info = {"total_token_usage": whole, "last_token_usage": own}
    return [
        record(second, "token_usage_record", {"usage": own, "thread_token_usage": whole}),
        event(second, "token_count", info=info),
    ]


def numbered(records: Iterable[dict[str, Any]], first: int = 0) -> list[dict[str, Any]]:
    """Return records with the numbers that a paginated rollout's have."""
    return [{**each, "ordinal": number} for number, each in enumerate(records, first)]


def write(folder: Path, records: Iterable[Any], name: str = f"rollout-{ID}") -> Path:
    return write_records(folder / f"{name}.jsonl", *records)


def read_one(folder: Path, *records: Any) -> Session:
    write(folder, records)
    (session,) = read_all(READER, folder)
    return session


def read_turn(folder: Path, *records: Any) -> Session:
    """Read a session in which a person says "go", and then what ``records`` tell happens."""
    return read_one(folder, meta(), *asked(1, "go"), *records)
