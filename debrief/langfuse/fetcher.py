"""Fetch sessions from a Langfuse server, old or new, and convert them to the normal form.

A session's id may stand on the root of a trace alone, on servers of version 4 too. So what has the
id is asked for first, then what else is in those traces; traces that only the older way shows (data
from before a server's move to version 4, or a server that never moved) are fetched one by one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import msgspec
import orjson
from msgspec import UNSET
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of, slugify
from debrief.langfuse.assembly import Assembly
from debrief.langfuse.client import TRACES, LangfuseClient, Row, timestamp
from debrief.langfuse.messages import Memory
from debrief.langfuse.plugins import lacking_in, session_of_plugin
from debrief.langfuse.traces import ServerTrace
from debrief.sessions.model import Session, TranscriptRef, Usage
from debrief.sessions.readers.documents import compact_json
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
    session_id: str, rows: Sequence[Row], redact: Callable[[Session], Session] | None = None
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
    session = session_of_plugin(path, rows) or _session_of_traces(rows)
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
    inner = (row for row in rows if not row.get("isRootObservation"))
    parents = {str(row["parentObservationId"]) for row in inner if row.get("parentObservationId")}
    bare = sum(row.get(_BARE) is True for row in rows)
    return len(parents - known) + bare + lacking_in(rows)


def path_of(session_id: str) -> str:
    """Return what takes the place of a path where sessions from files have theirs."""
    return f"{SOURCE}:{session_id}"


def _task(rows: Sequence[Row]) -> str:
    tags = (tag for row in rows for tag in row.get("tags") or () if isinstance(tag, str))
    named = next((tag for tag in tags if tag.startswith(_TASK_TAG)), "")
    return slugify(named.removeprefix(_TASK_TAG)) if named else ""


Span = tuple[datetime, datetime]

LISTING = "core,basic,time,trace_context"
FIELDS = f"{LISTING},io,metadata,model,usage"
WHOLE = "attributes,tools,cwd,git_branch"
"""Metadata that servers give whole only when asked: tools are declared there."""

_TRACES_AT_ONCE = 50
_AT_ONCE = 4
_BARE = "isBareTrace"
"""Marks a row that stands for a trace without observations."""
_OF_A_TRACE = ("input", "output", "tags", "environment")
_MOMENT = timedelta(seconds=1)
"""Longer than a server's fractions of a second."""


def fetch_rows(
    client: LangfuseClient, session_id: str, span: Span | None = None, count: int | None = None
) -> list[Row]:
    """Return all observations of a session, in the order of events.

    A trace without observations stands for itself.

    Args:
        client: of the server.
        session_id: as the server has it.
        span: when its first and its last observation began, if that is known: servers with years
            of data answer much faster.
        count: how many there are at least, if that is known: once they are here, no other way to
            them is tried.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    found = {_id(row): row for row in _by_session(client, session_id, FIELDS, span)}
    if count is None or len(found) < count:
        found |= {_id(row): row for row in _beside(client, session_id, found.values(), span)}
    if count is None or len(found) < count:
        traces = {str(row.get("traceId")) for row in found.values()}
        older = [str(row["id"]) for row in client.traces(sessionId=session_id)]
        for row in _of_traces(client, dict.fromkeys(id for id in older if id not in traces)):
            found[_id(row)] = row
    return in_order(found.values())


def listed_rows(client: LangfuseClient, session_id: str) -> Iterator[Row]:
    """Yield a session's observations in short, and the traces of which there are none so.

    Errors as for ``fetch_rows``.
    """
    found = {_id(row): row for row in _by_session(client, session_id, LISTING)}
    found |= {_id(row): row for row in _beside(client, session_id, found.values(), None, LISTING)}
    yield from found.values()
    traces = {row.get("traceId") for row in found.values()}
    for trace in client.traces(sessionId=session_id):
        if trace["id"] not in traces:
            yield trace


def first_trace_id(client: LangfuseClient, session_id: str) -> str | None:
    """Return the id of the session's earliest trace; None when the server has none of it.

    Errors as for ``fetch_rows``.
    """
    rows = list(_by_session(client, session_id, "core")) or client.traces(sessionId=session_id)
    began = (
        (str(row.get("startTime") or row.get("timestamp") or ""), row.get("traceId") or row["id"])
        for row in rows
    )
    return min(began, default=("", None))[1]


def _by_session(
    client: LangfuseClient, session_id: str, fields: str, span: Span | None = None
) -> Iterator[Row]:
    return client.observations(sessionId=session_id, fields=fields, **_bounds(fields, span))


def _beside(
    client: LangfuseClient,
    session_id: str,
    found: Iterable[Row],
    span: Span | None,
    fields: str = FIELDS,
) -> Iterator[Row]:
    """Yield what is in the traces of a session and has no session's id."""
    traces = sorted({str(row.get("traceId")) for row in found})
    for first in range(0, len(traces), _TRACES_AT_ONCE):
        where = [
            _condition("traceId", "any of", *traces[first : first + _TRACES_AT_ONCE]),
            _condition("sessionId", "none of", session_id),
        ]
        rows = client.observations(
            filter=orjson.dumps(where).decode(), fields=fields, **_bounds(fields, span)
        )
        yield from (row for row in rows if not row.get("sessionId"))


def _condition(column: str, operator: str, *values: str) -> dict[str, object]:
    return {"type": "stringOptions", "column": column, "operator": operator, "value": values}


def _bounds(fields: str, span: Span | None) -> dict[str, str]:
    bounds: dict[str, str] = {}
    if span is not None:
        first, last = timestamp(span[0]), timestamp(span[1] + _MOMENT)
        bounds = {"fromStartTime": first, "toStartTime": last}
    if "metadata" in fields.split(","):
        bounds["expandMetadata"] = WHOLE
    return bounds


def _of_traces(client: LangfuseClient, ids: Iterable[str]) -> Iterator[Row]:
    paths = [f"{TRACES}/{quote(id, safe='')}" for id in ids]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="traces") as pool:
        for whole in pool.map(client.get, paths):
            yield from _of_trace(whole)


def _of_trace(trace: Row) -> Iterator[Row]:
    own = list(trace.get("observations") or ())
    roots = [row for row in own if not row.get("parentObservationId")]
    name = {"traceName": trace.get("name")}
    for row in own:
        if len(roots) == 1 and row is roots[0]:
            whole = _as_root(trace)
            missing = (name for name in _OF_A_TRACE if row.get(name) in (None, ""))
            facts = {name: whole[name] for name in missing}
            yield {**name, **row, **facts, "isRootObservation": True}
        else:
            yield {**name, **row, "isRootObservation": False}
    if len(roots) != 1:
        yield {**_as_root(trace), _BARE: not own}


def _as_root(trace: Row) -> Row:
    """Return a trace as the root observation that newer servers would show for it."""
    facts = ("id", "name", "metadata", "createdAt", "updatedAt", *_OF_A_TRACE)
    return {
        **{name: trace.get(name) for name in facts},
        "traceId": trace["id"],
        "type": "SPAN",
        "startTime": trace.get("timestamp"),
        "isRootObservation": True,
    }


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return observations in the order of their start.

    Servers keep milliseconds, and order what began in the same one at random. Of that, parents are
    before their children, models' answers before tools, and of conversations the longer ones later,
    as each repeats the one before.
    """
    rows = list(rows)
    parents = {_id(row): str(row.get("parentObservationId") or "") for row in rows}
    lengths = {_id(row): _length(row) for row in rows}
    longest: dict[str, int] = {}
    for row in rows:
        trace = str(row.get("traceId"))
        longest[trace] = max(longest.get(trace, 0), lengths[_id(row)])

    def place(row: Row) -> tuple[str, int, str, int, bool, int, str]:
        id, trace = _id(row), str(row.get("traceId"))
        began, depth = str(row.get("startTime") or ""), _depth(id, parents)
        is_beside = row.get("type") != "GENERATION"
        return began, longest[trace], trace, depth, is_beside, lengths[id], id

    return sorted(rows, key=place)


def _length(row: Row) -> int:
    """Return how long the conversation is that a model is given; 0 for all else."""
    given = row.get("input") if row.get("type") == "GENERATION" else None
    return len(given if isinstance(given, str) else compact_json(given))


def _depth(id: str, parents: Mapping[str, str]) -> int:
    seen: set[str] = set()
    while (id := parents.get(id, "")) and id not in seen:
        seen.add(id)
    return len(seen)


def _id(row: Row) -> str:
    return str(row.get("id"))
