"""From Langfuse's observations to the normal form: a trace is a turn, its observations its work."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET

from debrief.digests import digest_of
from debrief.langfuse.assembly import Assembly
from debrief.langfuse.chat import Memory
from debrief.langfuse.listing import moment_of
from debrief.langfuse.traces import ServerTrace
from debrief.sessions.model import DeclaredTool, Session, TranscriptRef, Turn, Usage
from debrief.slugs import slugify

SOURCE = "langfuse"

Row = Mapping[str, Any]

_TASK_TAG = "task:"


def session_of(
    session_id: str,
    rows: Sequence[Row],
    redact: Callable[[Session], Session] | None = None,
) -> Session:
    """Return a session made of its observations.

    A trace in which somebody asks for something is a turn; one that goes on from a call's result
    belongs to the turn before. Messages are what generations say, calls what they call, with what
    their tools' observations or later inputs say of them. Where no model tells its calls, tools'
    observations are the calls, and so are spans that have nothing below them. What a root says
    last is a message when no generation said it.

    Args:
        session_id: as the server has it.
        rows: its observations in the order of their start; at least one.
        redact: applied before the digest is taken.
    """
    traces: dict[str, list[Row]] = {}
    for row in rows:
        traces.setdefault(str(row.get("traceId")), []).append(row)
    assembly, memory = Assembly(), Memory()
    for identity, own in traces.items():
        assembly.add(ServerTrace(identity, own, memory))
    turns = assembly.finished()
    declared = assembly.declared
    messages = [message for turn in turns for message in turn.messages]
    models = Counter(message.model for message in messages if message.model)
    moments = [moment_of(row.get(name)) for row in rows for name in ("startTime", "endTime")]
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
        transcripts=(_reference(session_id, turns, declared, len(rows)),),
        turns=turns,
        usage=sum((message.usage for message in messages), Usage()),
        api_calls=sum(bool(message.model) for message in messages),
        declared_tools=declared or UNSET,
    )
    session = redact(session) if redact else session
    return msgspec.structs.replace(session, digest=digest_of(session))


def path_of(session_id: str) -> str:
    """Return what takes the place of a path where sessions from files have theirs."""
    return f"{SOURCE}:{session_id}"


def _reference(
    session_id: str, turns: tuple[Turn, ...], declared: tuple[DeclaredTool, ...], rows: int
) -> TranscriptRef:
    """Return what a session was read from; its digest is over all that was read."""
    data = msgspec.json.encode((turns, declared))
    digest = hashlib.sha256(data).hexdigest()
    return TranscriptRef(path=path_of(session_id), digest=digest, size=len(data), records=rows)


def _task(rows: Sequence[Row]) -> str:
    tags = (tag for row in rows for tag in row.get("tags") or () if isinstance(tag, str))
    named = next((tag for tag in tags if tag.startswith(_TASK_TAG)), "")
    return slugify(named.removeprefix(_TASK_TAG)) if named else "unknown"
