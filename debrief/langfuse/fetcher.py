"""Sessions as a Langfuse server holds them, from servers old and new, in the normal form."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import msgspec
from msgspec import UNSET

from debrief.errors import InputError
from debrief.keys import digest_of, slugify
from debrief.langfuse.assembly import Assembly
from debrief.langfuse.client import (
    LangfuseClient,
    RequestRefusedError,
    Row,
    newer_or_older,
    timestamp,
)
from debrief.langfuse.messages import Memory
from debrief.langfuse.traces import ServerTrace
from debrief.sessions.model import Session, TranscriptRef, Usage
from debrief.sessions.readers.values import moment

SOURCE = "langfuse"
FIELDS = "core,basic,io,metadata,model,usage,trace_context"
WHOLE = "attributes,tools"
"""Metadata that servers give whole only when asked: tools are declared there."""

Span = tuple[datetime, datetime]

_TASK_TAG = "task:"
_AT_ONCE = 4
_OF_A_TRACE = ("input", "output", "tags")
_MOMENT = timedelta(seconds=1)
"""Longer than a server's fractions of a second."""


class SessionFetcher:
    """Fetches sessions.

    Args:
        client: of the server; its patience and its pace hold for all requests together.
        redact: what a session passes through before anybody sees it.
    """

    def __init__(
        self,
        client: LangfuseClient,
        redact: Callable[[Session], Session] | None = None,
    ) -> None:
        self.client = client
        self._redact = redact

    def fetch_session(self, session_id: str, span: Span | None = None) -> Session:
        """Return one session in the normal form.

        Args:
            session_id: as the server has it.
            span: when its first and its last observation began, if that is known.

        Raises:
            InputError: the server has nothing of it.
            LangfuseAwayError, RequestRefusedError: it cannot be asked.
        """
        rows = fetch_rows(self.client, session_id, span)
        if not rows:
            raise InputError(f"{SOURCE}:{session_id}", f"{self.client.host} has nothing of it")
        return session_of(session_id, rows, self._redact)


def fetch_rows(client: LangfuseClient, session_id: str, span: Span | None = None) -> list[Row]:
    """Return all observations of a session, in the order of their start.

    Newer servers give them by session. On older ones the session names its traces, and each
    trace is fetched for its observations; a trace without any stands for itself.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    rows = newer_or_older(
        lambda: observations(client, session_id, FIELDS, span),
        lambda: _rows_of_traces(client, session_id),
    )
    return sorted(rows, key=lambda row: (str(row.get("startTime") or ""), str(row.get("id"))))


def observations(
    client: LangfuseClient, session_id: str, fields: str, span: Span | None = None
) -> Iterator[Row]:
    """Yield a session's observations, newest first, as the server sends them.

    A span bounds the question in time, which servers with years of data answer much faster.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: status 404 when the server is too old for this way.
    """
    bounds: dict[str, str] = {}
    if span is not None:
        first, last = timestamp(span[0]), timestamp(span[1] + _MOMENT)
        bounds = {"fromStartTime": first, "toStartTime": last}
    if "metadata" in fields.split(","):
        bounds["expandMetadata"] = WHOLE
    return client.observations(sessionId=session_id, fields=fields, **bounds)


def first_trace_id(client: LangfuseClient, session_id: str) -> str | None:
    """Return the id of the session's earliest trace; None when the server has none of it.

    Errors as for ``observations``.
    """
    rows = newer_or_older(
        lambda: observations(client, session_id, "core"),
        lambda: client.pages("/traces", sessionId=session_id, limit=100),
    )
    began = (
        (str(row.get("startTime") or row.get("timestamp") or ""), row.get("traceId") or row["id"])
        for row in rows
    )
    return min(began, default=("", None))[1]


def _rows_of_traces(client: LangfuseClient, session_id: str) -> Iterator[Row]:
    try:
        session = client.get(f"/sessions/{quote(session_id, safe='')}")
    except RequestRefusedError as error:
        if error.status == 404 and "NotFound" in error.reason:
            return
        raise
    paths = [f"/traces/{quote(str(t['id']), safe='')}" for t in session.get("traces") or ()]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="traces") as pool:
        for whole in pool.map(client.get, paths):
            yield from _rows_of_trace(whole)


def _rows_of_trace(trace: Row) -> Iterator[Row]:
    own = list(trace.get("observations") or ())
    roots = [row for row in own if not row.get("parentObservationId")]
    for row in own:
        if len(roots) == 1 and row is roots[0]:
            whole = _as_root(trace)
            missing = (name for name in _OF_A_TRACE if row.get(name) in (None, ""))
            yield {**row, **{name: whole[name] for name in missing}, "isRootObservation": True}
        else:
            yield {**row, "isRootObservation": False}
    if len(roots) != 1:
        yield _as_root(trace)


def _as_root(trace: Row) -> Row:
    """Return a trace as the root observation that newer servers would show for it."""
    return {
        **{name: trace.get(name) for name in ("id", "name", *_OF_A_TRACE)},
        "traceId": trace["id"],
        "type": "SPAN",
        "startTime": trace.get("timestamp"),
        "isRootObservation": True,
    }


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
    moments = [moment(row.get(name)) for row in rows for name in ("startTime", "endTime")]
    known = [at for at in moments if at] or [datetime.fromtimestamp(0, UTC)]
    data = msgspec.json.encode((turns, declared))
    digest, path = hashlib.sha256(data).hexdigest(), path_of(session_id)
    whole = TranscriptRef(path=path, digest=digest, size=len(data), records=len(rows))
    session = Session(
        id=session_id,
        source=SOURCE,
        tool=SOURCE,
        models=tuple(name for name, _ in models.most_common()),
        task=_task(rows),
        started=min(known),
        ended=max(known),
        title=next((str(row["traceName"]) for row in rows if row.get("traceName")), ""),
        transcripts=(whole,),
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


def _task(rows: Sequence[Row]) -> str:
    tags = (tag for row in rows for tag in row.get("tags") or () if isinstance(tag, str))
    named = next((tag for tag in tags if tag.startswith(_TASK_TAG)), "")
    return slugify(named.removeprefix(_TASK_TAG)) if named else "unknown"
