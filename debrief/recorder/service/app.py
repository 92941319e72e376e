"""The application: routes, refusals in one shape, a line in the log for each request."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from debrief.errors import DebriefError
from debrief.recorder.contracts import NewTask, Upload
from debrief.recorder.encoding import place_of
from debrief.recorder.errors import (
    AwayError,
    ConflictError,
    CursorError,
    NotFoundError,
    StorageError,
    UnknownTaskError,
)
from debrief.recorder.ingest import MalformedError, UnfitError
from debrief.recorder.service.documented import document
from debrief.recorder.service.logs import LOGGER, RequestLog
from debrief.recorder.service.problems import MEDIA_TYPE, RefusedError, problem_of
from debrief.recorder.service.routes import benchmarks, export, health, sessions, tasks
from debrief.recorder.service.state import Service

_STATUS: tuple[tuple[type[DebriefError], int], ...] = (
    (MalformedError, 400),
    (NotFoundError, 404),
    (ConflictError, 409),
    (UnknownTaskError, 404),
    (CursorError, 422),
    (UnfitError, 422),
    (StorageError, 503),
)


BODIES = (Upload, NewTask, sessions.NewStatus, benchmarks.NewFigure)


def create_app(service: Service) -> FastAPI:
    """Return the application that answers with a service's store."""

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(lifespan=life, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.service = service
    app.openapi = partial(document, app, BODIES)  # type: ignore[method-assign]
    for module in (health, tasks, sessions, export, benchmarks):
        app.router.routes.extend(module.router.routes)
    app.add_exception_handler(DebriefError, _told)
    app.add_exception_handler(RequestValidationError, _told)
    app.add_exception_handler(HTTPException, _told)
    app.add_exception_handler(Exception, _broken)
    app.add_middleware(RequestLog)
    return app


async def _told(request: Request, error: Exception) -> Response:
    refused = _refusal(request, error)
    if refused.status == 503 and not isinstance(error, RefusedError):
        fields = {"id": _request_id(request), "error": type(error).__name__}
        logging.getLogger(LOGGER).warning("database", extra={"fields": fields})
    return answered(refused, _request_id(request))


async def _broken(request: Request, error: Exception) -> Response:
    fields = {"id": _request_id(request)}
    logging.getLogger(LOGGER).error("broken", exc_info=error, extra={"fields": fields})
    refused = RefusedError(500, "service", "has a fault", "Tell its keeper the request's id.")
    return answered(refused, _request_id(request))


def answered(refused: RefusedError, request_id: str) -> Response:
    """Return the answer that tells of a refusal."""
    problem = problem_of(refused, request_id)
    return Response(
        problem.model_dump_json(by_alias=True),
        refused.status,
        headers=refused.headers,
        media_type=MEDIA_TYPE,
    )


def _refusal(request: Request, error: Exception) -> RefusedError:
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, UnfitError):
        return RefusedError(422, error.culprit, error.reasons, error.next_move)
    if isinstance(error, AwayError):
        return RefusedError(503, "database", "is away", "Try again soon.", {"Retry-After": "5"})
    if isinstance(error, DebriefError):
        status = next((number for kind, number in _STATUS if isinstance(error, kind)), 422)
        headers = {"Retry-After": "5"} if status == 503 else {}
        culprit = "database" if status == 503 else error.culprit
        return RefusedError(status, culprit, error.reason, error.next_move, headers)
    if isinstance(error, RequestValidationError):
        return _of_values(error)
    assert isinstance(error, HTTPException)
    return _of_routing(request, error)


def _of_values(error: RequestValidationError) -> RefusedError:
    reasons = [
        f"{place_of(item['loc'][1:])}: {item['msg'].removeprefix('Value error, ')}"
        for item in error.errors()
    ]
    places = dict.fromkeys(place_of(item["loc"]) for item in error.errors())
    return RefusedError(422, ", ".join(places), reasons, "GET /openapi.json says what fits.")


def _of_routing(request: Request, error: HTTPException) -> RefusedError:
    if error.status_code == 404:
        return RefusedError(
            404, "path", "is none of this service's", "GET /openapi.json lists them."
        )
    if error.status_code == 405:
        allowed = _methods_of(request)
        return RefusedError(
            405, "method", f"is not {' or '.join(allowed)}", "", {"Allow": ", ".join(allowed)}
        )
    return RefusedError(error.status_code, "request", str(error.detail), "", error.headers or {})


def _methods_of(request: Request) -> list[str]:
    """Return every method that the request's path takes."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return sorted(methods)


def _request_id(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))
