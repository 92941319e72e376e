"""The application: routes, refusals in one shape, a line in the log for each request."""

from __future__ import annotations

import logging
from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from debrief.errors import DebriefError
from debrief.recorder.service.document import document
from debrief.recorder.service.logs import LOGGER, RequestLog
from debrief.recorder.service.problems import (
    MEDIA_TYPE,
    RefusedError,
    refusal_of,
    refusal_of_values,
)
from debrief.recorder.service.routes import Service, router


def create_app(service: Service) -> FastAPI:
    """Return the application that answers with a service's store."""
    app = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.service = service
    app.openapi = partial(document, app)  # type: ignore[method-assign]
    app.router.routes.extend(router.routes)
    for kind in (DebriefError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refuse)
    app.add_exception_handler(Exception, _report_fault)
    app.add_middleware(RequestLog)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, DebriefError):
        refusal = refusal_of(error)
    elif isinstance(error, RequestValidationError):
        refusal = refusal_of_values(error)
    else:
        assert isinstance(error, HTTPException)
        refusal = _refusal_of_route(request, error)
    if refusal.status == 503:
        fields = {"id": _request_id(request), "error": type(error).__name__}
        logging.getLogger(LOGGER).warning("unavailable", extra={"fields": fields})
    return _answer(request, refusal)


async def _report_fault(request: Request, error: Exception) -> Response:
    fields = {"id": _request_id(request)}
    logging.getLogger(LOGGER).error("fault", exc_info=error, extra={"fields": fields})
    move = "Report the request's id to whoever runs the service."
    return _answer(request, RefusedError(500, "service", "has a fault", move))


def _answer(request: Request, refusal: RefusedError) -> Response:
    details = refusal.details(_request_id(request))
    return Response(
        details.model_dump_json(by_alias=True),
        refusal.status,
        headers=refusal.headers,
        media_type=MEDIA_TYPE,
    )


def _refusal_of_route(request: Request, error: HTTPException) -> RefusedError:
    if error.status_code == 404:
        move = "GET /openapi.json lists them."
        return RefusedError(404, "path", "is not one of this service", move)
    if error.status_code == 405:
        methods: set[str] = set()
        for route in request.app.routes:
            if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
                methods |= route.methods or set()
        names = sorted(methods)
        headers = {"Allow": ", ".join(names)}
        return RefusedError(405, "method", f"is not {' or '.join(names)}", "", headers)
    return RefusedError(error.status_code, "request", str(error.detail), "", error.headers or {})


def _request_id(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))
