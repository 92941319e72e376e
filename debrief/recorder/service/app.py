"""The application and its endpoints: tasks, sessions, exports, benchmarks and health."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from uuid import UUID

import anyio
import orjson
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from debrief import __version__
from debrief.errors import DebriefError
from debrief.recorder.contracts import Contract, Status, TaskId
from debrief.recorder.exporting import ExportedLine, lines_of
from debrief.recorder.service.problems import (
    EXPORT_ANSWER,
    RECORD_ANSWER,
    add_refusals,
    document,
    documented_body,
    refusals,
    unavailable,
)
from debrief.recorder.service.requests import (
    BenchmarkQuery,
    ExportQuery,
    Ingest,
    RateLimit,
    SessionQuery,
    json_body,
    needs,
    record_body,
)
from debrief.recorder.service.running import LOGGER, RequestLog, ServiceLimits
from debrief.recorder.storage.rows import (
    Benchmark,
    NewBenchmark,
    NewTask,
    StoredSession,
    Task,
    Upload,
)
from debrief.recorder.storage.store import RecordStore

if TYPE_CHECKING:
    from starlette import types as asgi

    from debrief.recorder.storage.listing import Export
    from debrief.recorder.storage.rows import Scope

router = APIRouter()
_HEALTH_SECONDS = 3.0
"""How long the database may take to answer ``GET /health``."""


class Service:
    """What every request is answered with.

    Args:
        store: the database of records.
        ingest: checks a record before it is stored.
        limits: how much clients may request.
    """

    def __init__(self, store: RecordStore, ingest: Ingest, limits: ServiceLimits) -> None:
        self.store = store
        self.ingest = ingest
        self.limits = limits
        self.rate_limit = RateLimit(limits.requests_a_second, limits.burst)
        self.health_threads = anyio.CapacityLimiter(8)
        self.exports = 0
        """That are under way."""


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


_Service = Annotated[Service, Depends(_service)]
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


def endpoint(
    method: str,
    path: str,
    scope: Scope | None,
    *statuses: int,
    made: bool = False,
    body: type[BaseModel] | None = None,
    answer: dict[str, Any] | None = None,
) -> Callable[[_Endpoint], _Endpoint]:
    """Return a decorator that adds a function to the API.

    Args:
        method: of the request.
        path: of the request.
        scope: that its token needs; None: it takes no token.
        statuses: with which it refuses, beside those that are the same for all.
        made: it answers 201.
        body: what it reads.
        answer: the documentation of an answer that is not JSON of a model.
    """
    responses = refusals(*statuses, has_token=scope is not None, has_body=body is not None)
    return router.api_route(
        path,
        methods=[method],
        status_code=201 if made else 200,
        tags=[path.split("/")[1]],
        dependencies=[needs(scope)] if scope else [],
        responses={200: answer, **responses} if answer else responses,
        response_class=Response if answer else JSONResponse,
        openapi_extra=documented_body(body) if body else None,
    )


class Health(Contract):
    """The service works, and so does its database."""

    status: Literal["ok"] = "ok"
    version: str


@endpoint("GET", "/health", None)
async def check_health(service: _Service) -> Health:
    """Ask the database; 503 when it does not answer within three seconds. Takes no token."""
    try:
        with anyio.fail_after(_HEALTH_SECONDS):
            await run_sync(
                service.store.check, abandon_on_cancel=True, limiter=service.health_threads
            )
    except TimeoutError:
        raise unavailable("database", "does not answer") from None
    return Health(version=__version__)


class Tasks(Contract):
    """All tasks, by id."""

    tasks: list[Task]


@endpoint("GET", "/tasks", "read")
def list_tasks(service: _Service) -> Tasks:
    """Return all tasks."""
    return Tasks(tasks=list(service.store.tasks()))


@endpoint("GET", "/tasks/{id}", "read", 404)
def show_task(service: _Service, id: TaskId) -> Task:
    """Return a task; 404 when there is none of that id."""
    return service.store.task(id)


@endpoint("POST", "/tasks", "write", 409, made=True, body=NewTask)
def make_task(service: _Service, task: Annotated[NewTask, json_body(NewTask)]) -> Task:
    """Make a task; 409 when there is another one of that id."""
    return service.store.add_task(task)


class SessionPage(Contract):
    """Some sessions, in the order in which they were received."""

    sessions: list[StoredSession]
    cursor: str | None
    """Continues after the last of them; sessions received later follow it too."""
    more: bool
    """There are more by now."""


class StoredUpload(StoredSession):
    """What an upload became."""

    session_id: UUID
    """The session's id."""


class NewStatus(Contract):
    """The status that a session gets."""

    status: Status


@endpoint("POST", "/sessions", "write", 404, 409, made=True, body=Upload)
def store_session(
    service: _Service, data: Annotated[bytes, Depends(record_body)], response: Response
) -> StoredUpload:
    """Check a record and store it, as a draft.

    The id is the client's, so that a repeated upload is harmless: the same record again gets the
    same answer, another one under the same id 409. A record that contradicts itself, or contains
    a secret that cannot be replaced, is refused with every reason (422). Secrets that can be
    replaced are; the session then stays a draft.
    """
    stored = service.store.add_session(service.ingest.check(data))
    response.headers["Location"] = f"/sessions/{stored.id}"
    return StoredUpload(**stored.model_dump(), session_id=stored.id)


@endpoint("GET", "/sessions", "read")
def list_sessions(service: _Service, query: Annotated[SessionQuery, Query()]) -> SessionPage:
    """Return a page of sessions without their records, in the order they were received."""
    page = service.store.sessions(query.filters, query.cursor, query.limit)
    return SessionPage(sessions=list(page.items), cursor=page.cursor, more=page.more)


@endpoint("GET", "/sessions/{id}", "read", 404)
def show_session(service: _Service, id: UUID) -> StoredSession:
    """Return a session without its record."""
    return service.store.session(id)


@endpoint("GET", "/sessions/{id}/record", "export", 404, answer=RECORD_ANSWER)
def show_record(service: _Service, id: UUID) -> Response:
    """Return the stored record, byte for byte."""
    return Response(service.store.record_text(id), media_type="application/json")


@endpoint("PATCH", "/sessions/{id}", "write", 404, 409, body=NewStatus)
def mark_session(
    service: _Service, id: UUID, new: Annotated[NewStatus, json_body(NewStatus)]
) -> StoredSession:
    """Set a session's status; 409 with every reason when it is not ready."""
    return service.store.set_status(id, new.status)


@endpoint("GET", "/export.jsonl", "export", answer=EXPORT_ANSWER)
async def export_lines(service: _Service, query: Annotated[ExportQuery, Query()]) -> Response:
    """Stream the selected records, in the order in which they were received.

    ``Debrief-Count`` says how many sessions are selected, ``Debrief-Cursor`` continues after the
    last of them. A record of which no line can be made is left out; ``manifest`` names it.
    """
    if service.exports >= service.limits.exports:
        raise unavailable("service", f"{service.limits.exports} exports run already")

    service.exports += 1
    try:
        chosen = (query.filters, query.cursor, query.limit)
        export = await run_sync(service.store.export, *chosen)
    except BaseException:
        service.exports -= 1
        raise
    return ExportResponse(export, query, service)


class BenchmarkPage(Contract):
    """Some benchmarks, in the order in which they were received."""

    benchmarks: list[Benchmark]
    cursor: str | None
    more: bool


@endpoint("POST", "/benchmarks", "write", 404, made=True, body=NewBenchmark)
def store_benchmark(
    service: _Service, new: Annotated[NewBenchmark, json_body(NewBenchmark)]
) -> Benchmark:
    """Store a figure beside the sessions that the adapter was trained on, or measured by."""
    return service.store.add_benchmark(new)


@endpoint("GET", "/benchmarks", "read")
def list_benchmarks(service: _Service, query: Annotated[BenchmarkQuery, Query()]) -> BenchmarkPage:
    """Return a page of benchmarks, in the order in which they were received."""
    page = service.store.benchmarks(**query.model_dump())
    return BenchmarkPage(benchmarks=list(page.items), cursor=page.cursor, more=page.more)


MEDIA_TYPE = "application/jsonl"
_CHUNK = 1 << 18
"""Bytes that are sent at once, about."""
_MOST_NAMED = 1_000
"""Withheld sessions that a manifest names."""


class ExportResponse(StreamingResponse):
    """Sends an export's lines for as long as the client is there.

    A failure on the way ends the connection without the last chunk of the transfer, so that no
    client takes what it received for everything.

    Args:
        export: the records; closed when the answer ends.
        query: what was requested.
        service: counts the exports that are under way.
    """

    def __init__(self, export: Export, query: ExportQuery, service: Service) -> None:
        headers = {"Debrief-Cursor": export.end, "Debrief-Count": str(export.count)}
        lines = lines_of(query.format, export)
        super().__init__(_chunks(export, query, lines), media_type=MEDIA_TYPE, headers=headers)
        self._export = export
        self._service = service

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Send everything, and close the export whatever happens."""
        try:
            await super().__call__(scope, receive, send)
        except DebriefError as error:
            # The server breaks off an answer that is left unfinished.
            fields = {"id": scope["state"]["request_id"], "error": type(error).__name__}
            logging.getLogger(LOGGER).warning("export broke off", extra={"fields": fields})
        finally:
            self._export.close()
            self._service.exports -= 1


def _chunks(export: Export, query: ExportQuery, lines: Iterable[ExportedLine]) -> Iterator[bytes]:
    chunk = bytearray()
    count = 0
    withheld: list[ExportedLine] = []
    for line in lines:
        if not line.line:
            withheld.append(line)
            continue
        count += 1
        chunk += line.line
        if len(chunk) >= _CHUNK:
            yield bytes(chunk)
            chunk.clear()
    if query.manifest:
        reasons = [{"id": str(line.id), "reason": line.withheld} for line in withheld[:_MOST_NAMED]]
        manifest = {
            "sessions": export.count,
            "lines": count,
            "withheld": len(withheld),
            "reasons": reasons,
            "cursor": export.end,
        }
        chunk += orjson.dumps({"manifest": manifest}) + b"\n"
    yield bytes(chunk)


def create_app(service: Service) -> FastAPI:
    """Return the application that answers with a service's store."""
    app = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.service = service
    app.openapi = partial(document, app)  # type: ignore[method-assign]
    app.router.routes.extend(router.routes)
    add_refusals(app)
    app.add_middleware(RequestLog)
    return app
