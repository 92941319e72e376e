"""The application and its endpoints: tasks, sessions, exports, benchmarks and health."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

import anyio
import orjson
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator
from starlette.exceptions import HTTPException
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from debrief.errors import DebriefError
from debrief.recorder.contracts import RECORD_VERSION, Contract, Record, Status, TaskId
from debrief.recorder.encoding import MAX_BYTES, MAX_PARTS, has_too_many_parts
from debrief.recorder.exporting import ExportedLine, lines_of
from debrief.recorder.service.access import (
    BearerTokens,
    RateLimit,
    check_scopes,
    needs,
    refuse_token,
)
from debrief.recorder.service.draining import DrainMiddleware
from debrief.recorder.service.ingest import Ingest
from debrief.recorder.service.plain import AnyUpload
from debrief.recorder.service.problems import REFUSALS, refuse, unavailable
from debrief.recorder.service.queries import BenchmarkQuery, ExportQuery, SessionQuery
from debrief.recorder.service.running import ServiceLimits
from debrief.recorder.storage.rows import (
    Benchmark,
    NewBenchmark,
    NewTask,
    StoredSession,
    Task,
)
from debrief.recorder.storage.store import RecordStore
from debrief.version import VERSION

if TYPE_CHECKING:
    from starlette import types as asgi

    from debrief.recorder.storage.listing import Export


class _GuardedRoute(APIRoute):
    """Refuses a token without the scope before it reads a body, and a body of very many values
    before models are made of it: each may be one error."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()
        needed = [
            scope for dependency in self.dependencies for scope in getattr(dependency, "scopes", ())
        ]

        async def guarded(request: Request) -> Response:
            check_scopes(request, needed)
            if await run_sync(has_too_many_parts, await request.body()):
                raise HTTPException(422, f"over {MAX_PARTS:,} values")
            return await answer(request)

        return guarded


router = APIRouter(route_class=_GuardedRoute)


def _as_named(model: type[BaseModel]) -> BeforeValidator:
    """Make a validator that takes a body by the contract's names, and not by those of Python."""
    return BeforeValidator(lambda body: model.model_validate(body, by_alias=True, by_name=False))


OPEN_PATHS = frozenset({"/health", "/openapi.json"})
"""What is answered without a token."""
MEDIA_TYPE = "application/jsonl"
_LOG = logging.getLogger("uvicorn.error")
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


class Health(Contract):
    """The service works, and so does its database."""

    status: Literal["ok"] = "ok"
    version: str
    record_version: int = RECORD_VERSION
    """The latest version of records that it takes."""


@router.get("/health")
async def check_health(service: _Service) -> Health:
    """Ask the database; 503 when it does not answer within three seconds. Takes no token."""
    try:
        with anyio.fail_after(_HEALTH_SECONDS):
            await run_sync(
                service.store.check, abandon_on_cancel=True, limiter=service.health_threads
            )
    except TimeoutError:
        raise unavailable("database", "does not answer") from None
    return Health(version=VERSION)


class Tasks(Contract):
    """All tasks, by id."""

    tasks: list[Task]


@router.get("/tasks", dependencies=[needs("read")])
def list_tasks(service: _Service) -> Tasks:
    """Return all tasks."""
    return Tasks(tasks=list(service.store.tasks()))


@router.get("/tasks/{id}", dependencies=[needs("read")])
def show_task(service: _Service, id: TaskId) -> Task:
    """Return a task; 404 when there is none of that id."""
    return service.store.task(id)


@router.post("/tasks", status_code=201, dependencies=[needs("write")])
def make_task(service: _Service, task: Annotated[NewTask, _as_named(NewTask)]) -> Task:
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
    missing: list[str] = []
    """The fields that were not sent, as ``record.meta.finalTree``: filled in, or left out. A client
    that sends them gets more: a record with all of them can be marked ready."""


class NewStatus(Contract, defer_build=False):
    """The status that a session gets."""

    status: Status


@router.post("/sessions", status_code=201, dependencies=[needs("write")])
def store_session(service: _Service, upload: AnyUpload, response: Response) -> StoredUpload:
    """Check a record and store it, as a draft.

    Task, repository, baseline and messages are enough: the service fills in what else it can, and
    ``missing`` names what the client may add. The id is the client's, or is made of what was sent,
    so that a repeated upload is harmless: the same record again gets the same answer, another one
    under the same id 409. A record that contradicts itself, or contains
    a secret that cannot be replaced, is refused with every reason (422). Secrets that can be
    replaced are; the session then stays a draft.
    """
    stored = service.store.add_session(service.ingest.check(upload))
    response.headers["Location"] = f"/sessions/{stored.id}"
    return StoredUpload(**stored.model_dump(), session_id=stored.id, missing=list(upload.missing))


@router.get("/sessions", dependencies=[needs("read")])
def list_sessions(service: _Service, query: Annotated[SessionQuery, Query()]) -> SessionPage:
    """Return a page of sessions without their records, in the order they were received."""
    page = service.store.sessions(query.filters, query.cursor, query.limit)
    return SessionPage(sessions=list(page.items), cursor=page.cursor, more=page.more)


@router.get("/sessions/{id}", dependencies=[needs("read")])
def show_session(service: _Service, id: UUID) -> StoredSession:
    """Return a session without its record."""
    return service.store.session(id)


@router.get(
    "/sessions/{id}/record",
    dependencies=[needs("export")],
    response_class=Response,
    responses={200: {"model": Record}},
)
def show_record(service: _Service, id: UUID) -> Response:
    """Return the stored record, byte for byte."""
    return Response(service.store.record_text(id), media_type="application/json")


@router.patch("/sessions/{id}", dependencies=[needs("write")])
def mark_session(
    service: _Service, id: UUID, new: Annotated[NewStatus, _as_named(NewStatus)]
) -> StoredSession:
    """Set a session's status; 409 with every reason when it is not ready."""
    return service.store.set_status(id, new.status)


@router.get(
    "/export.jsonl",
    dependencies=[needs("export")],
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
)
async def export_lines(service: _Service, query: Annotated[ExportQuery, Query()]) -> Response:
    """Stream the selected records, in the order in which they were received.

    ``Debrief-Count`` says how many sessions are selected, ``Debrief-Cursor`` continues after the
    last of them. A record of which no line can be made is left out; ``manifest`` names it. 404 when
    the selected task does not exist.
    """
    if service.exports >= service.limits.exports:
        raise unavailable("service", f"{service.limits.exports} exports run already")

    service.exports += 1
    try:
        if query.task_id is not None:
            await run_sync(service.store.task, query.task_id)
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


@router.post("/benchmarks", status_code=201, dependencies=[needs("write")])
def store_benchmark(
    service: _Service, new: Annotated[NewBenchmark, _as_named(NewBenchmark)]
) -> Benchmark:
    """Store a figure beside the sessions that the adapter was trained on, or measured by."""
    return service.store.add_benchmark(new)


@router.get("/benchmarks", dependencies=[needs("read")])
def list_benchmarks(service: _Service, query: Annotated[BenchmarkQuery, Query()]) -> BenchmarkPage:
    """Return a page of benchmarks, in the order in which they were received."""
    page = service.store.benchmarks(**query.model_dump())
    return BenchmarkPage(benchmarks=list(page.items), cursor=page.cursor, more=page.more)


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
            _LOG.warning("An export broke off: %s", type(error).__name__)
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
    app = FastAPI(
        title="Debrief recorder",
        version=VERSION,
        summary="Records of coding sessions in, training lines out.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=REFUSALS,
    )
    app.state.service = service
    app.include_router(router)
    for kind in (DebriefError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, refuse)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BYTES)
    app.add_middleware(
        AuthenticationMiddleware, backend=BearerTokens(OPEN_PATHS), on_error=refuse_token
    )
    app.add_middleware(DrainMiddleware)
    return app
