"""Rollouts of Codex CLI, record by record."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.sessions.readers.content import write_records

ID = "019a0000-0000-7000-8000-000000000001"


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


def event(second: float, kind: str, **more: Any) -> dict[str, Any]:
    return record(second, "event_msg", {"type": kind, **more})


def item(second: float, kind: str, **more: Any) -> dict[str, Any]:
    return record(second, "response_item", {"type": kind, **more})


def said(second: float, role: str, words: str) -> dict[str, Any]:
    block = {"type": "output_text" if role == "assistant" else "input_text", "text": words}
    return item(second, "message", role=role, content=[block])


def asked(second: float, words: str) -> list[dict[str, Any]]:
    return [said(second, "user", words), event(second, "user_message", message=words)]


def counted(second: float, total: tuple[int, int, int], last: tuple[int, int, int] | None) -> Any:
    fields = ("input_tokens", "cached_input_tokens", "output_tokens")
    info: dict[str, Any] = {"total_token_usage": dict(zip(fields, total, strict=True))}
    if last is not None:
        info["last_token_usage"] = dict(zip(fields, last, strict=True))
    return event(second, "token_count", info=info)


def write(folder: Path, records: Iterable[Any], name: str = f"rollout-{ID}") -> Path:
    return write_records(folder / f"{name}.jsonl", *records)
