"""Troubles of a small shop, put together by hand for what is made of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from debrief.keys import digest_of
from debrief.sessions.model import Evidence, Usage
from debrief.troubles.model import Trouble, TroubleEvent, TroubleKind

SHOP = "sam/shop"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def event(kind: TroubleKind, subject: str, session: str = "s-1", **changed: Any) -> TroubleEvent:
    """One time that it happened."""
    values = {
        "session_id": session,
        "repository": SHOP,
        "kind": kind,
        "subject": subject,
        "at": MONDAY,
        "evidence": Evidence(1, "c1", "seen"),
        **changed,
    }
    return TroubleEvent(**values)


def trouble(kind: TroubleKind, subject: str = "it", count: int = 2, **changed: Any) -> Trouble:
    """A trouble of two sessions; fields of its events are given with it."""
    of_events: dict[str, Any] = {
        name: changed.pop(name)
        for name in ("command", "file", "words", "evidence")
        if name in changed
    }
    of_events["worked"] = changed.get("worked", "")
    of_events |= {name: changed[name] for name in ("name", "reason") if name in changed}
    if "name" in changed:
        changed["names"] = (changed.pop("name"),)
    repository = changed.get("repository", SHOP)
    examples = tuple(
        event(kind, subject, f"s-{n}", repository=repository, **of_events) for n in (2, 1)
    )
    values = {
        "id": digest_of(repository, kind, subject)[:12],
        "repository": repository,
        "kind": kind,
        "subject": subject,
        "count": count,
        "sessions": ("s-2", "s-1"),
        "first_seen": MONDAY,
        "last_seen": MONDAY + timedelta(days=3),
        "usage": Usage(input=100, output=900, cache_read=50_000),
        "cost_usd": 0.25,
        "examples": examples,
        **changed,
    }
    return Trouble(**values)


WRONG_RUNNER = trouble(
    "missing_tool",
    "pnpm: command not found",
    name="pnpm",
    reason="program",
    command="pnpm test",
    worked="bun test",
)
