"""Rows for the store, as a service would hand them over."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import uuid4

from debrief.recorder.contracts import NewBenchmark, NewTask
from debrief.recorder.storage.rows import NewRow

TEXT = b'{"tools": [], "messages": [], "meta": {"b": "\\u00fc", "a": 1, "a": 2}}'
"""What jsonb would not give back: it is in an order of its own, and says one thing twice."""


def task(id: str = "cart") -> NewTask:
    return NewTask(id=id, name=id.title())


def row(**given: Any) -> NewRow:
    text = given.setdefault("text", TEXT)
    facts: dict[str, Any] = {
        "id": uuid4(),
        "task_id": "cart",
        "repo_name": "shop",
        "repo_remote": "git@example.org:shop/shop.git",
        "branch": None,
        "base_ref": "1" * 40,
        "created_at": datetime(2026, 11, 2, 9, 42, tzinfo=UTC),
        "sha256": sha256(text).hexdigest(),
        "verified": True,
        "files": 3,
        "validated": True,
        "redactions": 0,
    }
    return NewRow(**(facts | given))


def benchmark(**given: Any) -> NewBenchmark:
    return NewBenchmark(
        **{"value": 0.5, "adapter": "cart-lora", "version": "3", "metric": "pass", **given}
    )
