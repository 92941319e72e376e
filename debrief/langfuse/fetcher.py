"""Sessions as a Langfuse server holds them: every observation, from servers old and new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from debrief.errors import InputError
from debrief.langfuse.client import LangfuseClient, RequestRefusedError
from debrief.langfuse.conversion import SOURCE, session_of
from debrief.langfuse.listing import timestamp
from debrief.sessions.model import Session

FIELDS = "core,basic,io,metadata,model,usage,trace_context"
WHOLE = "attributes,tools"
"""Metadata that servers give whole only when asked: tools are declared there."""

Row = Mapping[str, Any]
Span = tuple[datetime, datetime]

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
    try:
        rows = list(observations(client, session_id, FIELDS, span))
    except RequestRefusedError as error:
        if error.status != 404:
            raise
        rows = list(_rows_of_traces(client, session_id))
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
        begin, last = span
        bounds["fromStartTime"] = timestamp(begin)
        bounds["toStartTime"] = timestamp(last + _MOMENT)
    if "metadata" in fields.split(","):
        bounds["expandMetadata"] = WHOLE
    return client.observations(sessionId=session_id, fields=fields, **bounds)


def first_trace_id(client: LangfuseClient, session_id: str) -> str | None:
    """Return the id of the session's earliest trace; None when the server has none of it.

    Errors as for ``observations``.
    """
    try:
        rows = [
            (str(row.get("startTime") or ""), str(row["traceId"]))
            for row in observations(client, session_id, "core")
        ]
    except RequestRefusedError as error:
        if error.status != 404:
            raise
        rows = [
            (str(row.get("timestamp") or ""), str(row["id"]))
            for row in client.pages("/traces", sessionId=session_id, limit=100)
        ]
    return min(rows)[1] if rows else None


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
        "id": trace["id"],
        "traceId": trace["id"],
        "type": "SPAN",
        "name": trace.get("name"),
        "startTime": trace.get("timestamp"),
        "endTime": None,
        "isRootObservation": True,
        "input": trace.get("input"),
        "output": trace.get("output"),
        "tags": trace.get("tags") or [],
    }
