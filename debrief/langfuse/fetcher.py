"""Sessions as a Langfuse server holds them, from servers old and new, in the normal form."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of, slugify
from debrief.langfuse.assembly import Assembly
from debrief.langfuse.claude_plugin import is_of_plugin, lacking_in, session_of_plugin
from debrief.langfuse.client import LangfuseClient, Row
from debrief.langfuse.codex_plugin import (
    is_of_codex_plugin,
    lacking_calls,
    session_of_codex_plugin,
)
from debrief.langfuse.messages import Memory
from debrief.langfuse.rows import Span, fetch_rows, is_bare_trace
from debrief.langfuse.traces import ServerTrace
from debrief.sessions.model import Session, TranscriptRef, Usage
from debrief.sessions.readers.values import moment

SOURCE = "langfuse"
_TASK_TAG = "task:"
_PATIENCE = timedelta(minutes=10)
"""How long after its latest observation arrived a session is waited for that lacks some."""


class StillArrivingError(InputError):
    """Not all of a session has reached the server yet."""


class SessionFetcher:
    """Fetches sessions.

    Args:
        client: of the server; its patience and its pace hold for all requests together.
        redact: what a session passes through before anybody sees it.
        now: the clock.
    """

    def __init__(
        self,
        client: LangfuseClient,
        redact: Callable[[Session], Session] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.client = client
        self._redact = redact
        self._now = now

    def fetch_session(
        self, session_id: str, span: Span | None = None, count: int | None = None
    ) -> Session:
        """Return one session in the normal form.

        Args:
            session_id: as the server has it.
            span: when its first and its last observation began, if that is known.
            count: how many observations it has at least, if that is known.

        Raises:
            StillArrivingError: the server does not have all of it yet.
            InputError: it has nothing of it.
            LangfuseAwayError, RequestRefusedError: it cannot be asked.
        """
        rows, path = fetch_rows(self.client, session_id, span, count), path_of(session_id)
        if not rows:
            raise InputError(path, f"{self.client.host} has nothing of it")
        lacking = max((count or 0) - len(rows), 0)
        if not lacking and (arrived := _arrived(rows)) and self._now() - arrived < _PATIENCE:
            lacking = _lacking(rows)
        if lacking:
            reason = f"{lacking} of its observations are not there yet: it is still arriving"
            raise StillArrivingError(path, reason, "Run again in some minutes.")
        return session_of(session_id, rows, self._redact)


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
    path = path_of(session_id)
    if is_of_plugin(rows):
        session = session_of_plugin(path, rows)
    elif is_of_codex_plugin(rows):
        session = session_of_codex_plugin(path, rows)
    else:
        session = _session_of_traces(rows)
    data = msgspec.json.encode((session.turns, session.declared_tools or ()))
    digest = hashlib.sha256(data).hexdigest()
    whole = TranscriptRef(path=path, digest=digest, size=len(data), records=len(rows))
    session = replace(
        session,
        id=session_id,
        source=SOURCE,
        task=_task(rows) or session.task,
        transcripts=(whole,),
    )
    session = redact(session) if redact else session
    return replace(session, digest=digest_of(session))


def _session_of_traces(rows: Sequence[Row]) -> Session:
    traces: dict[str, list[Row]] = {}
    for row in rows:
        traces.setdefault(str(row.get("traceId")), []).append(row)
    assembly, memory = Assembly(), Memory()
    for identity, own in traces.items():
        assembly.add(ServerTrace(identity, own, memory))
    turns = assembly.finished()
    messages = [message for turn in turns for message in turn.messages]
    models = Counter(message.model for message in messages if message.model)
    moments = [moment(row.get(name)) for row in rows for name in ("startTime", "endTime")]
    known = [at for at in moments if at] or [datetime.fromtimestamp(0, UTC)]
    return Session(
        id="",
        source=SOURCE,
        tool=SOURCE,
        models=tuple(name for name, _ in models.most_common()),
        task="unknown",
        started=min(known),
        ended=max(known),
        title=next((str(row["traceName"]) for row in rows if row.get("traceName")), ""),
        turns=turns,
        usage=sum((message.usage for message in messages), Usage()),
        api_calls=sum(bool(message.model) for message in messages),
        declared_tools=assembly.declared or UNSET,
    )


def _arrived(rows: Sequence[Row]) -> datetime | None:
    """Return when the latest observation reached the server, where it tells."""
    times = (moment(row.get(name)) for row in rows for name in ("createdAt", "updatedAt"))
    return max(filter(None, times), default=None)


def _lacking(rows: Sequence[Row]) -> int:
    """Return how many observations are not there that others speak of, or a trace came without."""
    known = {str(row.get("id")) for row in rows}
    parents = {str(row["parentObservationId"]) for row in rows if _is_below(row)}
    bare = sum(is_bare_trace(row) for row in rows)
    return len(parents - known) + bare + lacking_in(rows) + lacking_calls(rows)


def _is_below(row: Row) -> bool:
    return bool(row.get("parentObservationId")) and not row.get("isRootObservation")


def path_of(session_id: str) -> str:
    """Return what takes the place of a path where sessions from files have theirs."""
    return f"{SOURCE}:{session_id}"


def _task(rows: Sequence[Row]) -> str:
    tags = (tag for row in rows for tag in row.get("tags") or () if isinstance(tag, str))
    named = next((tag for tag in tags if tag.startswith(_TASK_TAG)), "")
    return slugify(named.removeprefix(_TASK_TAG)) if named else ""
