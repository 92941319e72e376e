"""Sessions as a Langfuse server holds them: every observation, from servers old and new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from debrief.errors import DebriefError, InputError
from debrief.langfuse.client import LangfuseClient, RequestRefusedError
from debrief.langfuse.conversion import session_of
from debrief.sessions.model import Session, UnreadTranscript

LARGEST_PAGE = 1_000
FIELDS = "core,basic,io,metadata,model,usage,trace_context"
SOURCE = "langfuse"

Row = Mapping[str, Any]


class SessionFetcher:
    """Fetches sessions, several at once.

    Args:
        client: of the server; its patience and its pace hold for all requests together.
        at_once: sessions under way at once.
        redact: what a session passes through before anybody sees it.
    """

    def __init__(
        self,
        client: LangfuseClient,
        at_once: int = 4,
        redact: Callable[[Session], Session] | None = None,
    ) -> None:
        self.client = client
        self._at_once = at_once
        self._redact = redact

    def session_ids(self, begin: datetime, end: datetime) -> list[str]:
        """Return the ids of the sessions with observations that started in [begin, end).

        Errors as for ``observations``.
        """
        span = {"fromStartTime": _iso(begin), "toStartTime": _iso(end)}
        try:
            rows = self.client.pages(
                "/v2/observations", fields="core,basic", limit=LARGEST_PAGE, **span
            )
            return _unique(row.get("sessionId") for row in rows)
        except RequestRefusedError as error:
            if error.status != 404:
                raise
        span = {"fromTimestamp": _iso(begin), "toTimestamp": _iso(end)}
        return _unique(
            row.get("sessionId") for row in self.client.pages("/traces", limit=100, **span)
        )

    def fetch_session(self, session_id: str) -> Session:
        """Return one session in the normal form.

        Raises:
            InputError: the server has nothing of it.
            ServerAwayError, RequestRefusedError: it cannot be asked.
        """
        rows = fetch_rows(self.client, session_id)
        if not rows:
            raise InputError(f"{SOURCE}:{session_id}", f"{self.client.host} has nothing of it")
        return session_of(session_id, rows, self._redact)

    def fetch_sessions(
        self, session_ids: Iterable[str], week: str, known: Iterable[str] = ()
    ) -> Iterator[Session | UnreadTranscript]:
        """Yield sessions in the order asked for; one that fails is reported and costs no other.

        Args:
            session_ids: which.
            week: that they were looked for in, for the report of one that fails.
            known: those that an earlier, interrupted run fetched: they are passed over.
        """
        done = set(known)
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="fetch") as pool:
            waiting: list[tuple[str, Future[Session]]] = []
            try:
                for session_id in session_ids:
                    if session_id not in done:
                        waiting.append((session_id, pool.submit(self.fetch_session, session_id)))
                    if len(waiting) >= 2 * self._at_once:
                        yield self._finished(*waiting.pop(0), week)
                while waiting:
                    yield self._finished(*waiting.pop(0), week)
            finally:
                for _, future in waiting:
                    future.cancel()

    def _finished(
        self, session_id: str, future: Future[Session], week: str
    ) -> Session | UnreadTranscript:
        try:
            return future.result()
        except DebriefError as error:
            return UnreadTranscript(
                path=f"{SOURCE}:{session_id}",
                source=SOURCE,
                week=week,
                line=0,
                reason=error.reason,
                expected=False,
            )


def fetch_rows(client: LangfuseClient, session_id: str) -> list[Row]:
    """Return all observations of a session, in the order of their start.

    Newer servers give them by session. On older ones the session names its traces, and each
    trace is fetched for its observations; a trace without any stands for itself.

    Raises:
        ServerAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    try:
        rows = list(observations(client, session_id))
    except RequestRefusedError as error:
        if error.status != 404:
            raise
        rows = list(_rows_of_traces(client, session_id))
    return sorted(rows, key=lambda row: (str(row.get("startTime") or ""), str(row.get("id"))))


def observations(client: LangfuseClient, session_id: str, fields: str = FIELDS) -> Iterator[Row]:
    """Yield a session's observations, newest first, as the server sends them.

    Raises:
        ServerAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: status 404 when the server is too old for this way.
    """
    return client.pages("/v2/observations", sessionId=session_id, fields=fields, limit=LARGEST_PAGE)


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
    for trace in session.get("traces") or ():
        whole = client.get(f"/traces/{quote(str(trace['id']), safe='')}")
        own = list(whole.get("observations") or ())
        roots = [row for row in own if not row.get("parentObservationId")]
        for row in own:
            yield {**row, "isRootObservation": len(roots) == 1 and row is roots[0]}
        if len(roots) != 1:
            yield _as_root(whole)


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


def _unique(ids: Iterable[object]) -> list[str]:
    return sorted({str(one) for one in ids if one})


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
