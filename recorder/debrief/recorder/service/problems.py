"""Refusals: every request that cannot be answered gets the same shape of answer.

They are in the OpenAPI document too, which is made here, as are the bodies and streams that FastAPI
cannot know of.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from debrief.errors import DebriefError, flat
from debrief.recorder.contracts import Contract
from debrief.recorder.encoding import SCHEMA, place_of
from debrief.recorder.service.running import LOGGER
from debrief.recorder.storage.rows import AwayError, ReasonsError, StorageError
from debrief.version import VERSION

MEDIA_TYPE = "application/problem+json"
_MOST_REASONS = 50
"""Reasons in one answer; the rest is counted."""


class ProblemDetails(Contract):
    """Why a request was refused, in the form of RFC 9457."""

    status: Annotated[int, Field(ge=400, le=599)]
    """The HTTP status, again."""
    title: str
    """The status in words."""
    detail: str
    """One line: the place, the reason, the next move."""
    place: str
    """What is wrong: a header, a query value, a value in the body, a session."""
    reasons: list[str]
    """Everything that is wrong with it, in words."""
    next_move: str
    """What to do about it."""
    request_id: str
    """Finds the request in the service's log."""


class RefusedError(ReasonsError):
    """A request that is answered with a problem.

    Args:
        status: the HTTP status.
        place: what is wrong.
        reasons: in words, without a full stop; one text, or several.
        next_move: what the client can do about it.
        headers: headers of the answer.
    """

    def __init__(
        self,
        status: int,
        place: str,
        reasons: str | Sequence[str],
        next_move: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.headers = status, dict(headers or {})
        super().__init__(place, reasons if isinstance(reasons, str) else _first(reasons), next_move)

    def details(self, request_id: str) -> ProblemDetails:
        """Return what the client receives."""
        return ProblemDetails(
            status=self.status,
            title=HTTPStatus(self.status).phrase,
            detail=flat(str(self)),
            place=flat(self.culprit),
            reasons=list(map(flat, self.reasons)),
            next_move=self.next_move,
            request_id=request_id,
        )


def unavailable(place: str, reason: str, next_move: str = "Try again soon.") -> RefusedError:
    """Return a refusal of a request that may succeed later."""
    return RefusedError(503, place, reason, next_move, {"Retry-After": "5"})


def refusal_of(request: Request, error: Exception) -> RefusedError:
    """Return the refusal that an error means to a client."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, AwayError):
        return unavailable("database", "is away")
    if isinstance(error, StorageError):
        return unavailable("database", error.reason, error.next_move)
    if isinstance(error, DebriefError):
        status, reasons = getattr(error, "status", 422), getattr(error, "reasons", error.reason)
        return RefusedError(status, error.culprit, reasons, error.next_move)
    if isinstance(error, RequestValidationError):
        return _refusal_of_values(error)
    assert isinstance(error, HTTPException)
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


def _refusal_of_values(error: RequestValidationError) -> RefusedError:
    """Return the refusal of query values or path parameters that do not fit; names each."""
    reasons = [
        f"{place_of(item['loc'][1:])}: "
        + ("is not known" if item["type"] == "extra_forbidden" else item["msg"])
        for item in error.errors()
    ]
    reasons = [reason.replace(": Value error, ", ": ") for reason in reasons]
    places = dict.fromkeys(place_of(item["loc"]) for item in error.errors())
    return RefusedError(422, ", ".join(places), reasons, SCHEMA)


def _first(reasons: Sequence[str]) -> list[str]:
    if len(reasons) <= _MOST_REASONS:
        return list(reasons)
    return [*reasons[:_MOST_REASONS], f"and {len(reasons) - _MOST_REASONS} more"]


_REFERENCE = "#/components/schemas/{model}"
_MEANINGS = {
    400: "The body is not JSON in UTF-8.",
    401: "The token is missing, unknown or revoked.",
    403: "The token lacks the scope.",
    404: "There is no such thing.",
    409: "It contradicts what is stored.",
    413: "The body is too long.",
    415: "The body is not application/json, or it is compressed.",
    422: "It can be read, and cannot be taken; every reason is named.",
    429: "The token has sent too many requests.",
    503: "The database is away, or the service is busy. Try again.",
}
_bodies: list[type[BaseModel]] = []
"""Models that endpoints read for themselves, after they checked the token."""


def _header(kind: str, text: str) -> dict[str, Any]:
    return {"schema": {"type": kind}, "description": text}


_HEADERS = {
    401: {"WWW-Authenticate": _header("string", "How to authenticate.")},
    429: {"Retry-After": _header("integer", "Seconds until a request is allowed again.")},
    503: {"Retry-After": _header("integer", "Seconds until it is worth a retry.")},
}
RECORD_ANSWER = {
    "description": "The stored bytes.",
    "content": {"application/json": {"schema": {"$ref": _REFERENCE.format(model="Record")}}},
}
EXPORT_ANSWER = {
    "description": "One JSON object a line. The answer is chunked: a client that sees no last "
    "chunk has not received everything, and asks again with the same cursor.",
    "content": {"application/jsonl": {"schema": {"type": "string"}}},
    "headers": {
        "Debrief-Count": _header("integer", "Selected sessions."),
        "Debrief-Cursor": _header("string", "Continues after the last session."),
    },
}


def refusals(*statuses: int, has_token: bool, has_body: bool) -> dict[int | str, dict[str, Any]]:
    """Return how an endpoint refuses: the given statuses, and those that are the same for all."""
    common = (503, *((401, 403, 422, 429) if has_token else ()), *((400, 413, 415) * has_body))
    return {status: _refusal(status) for status in sorted({*statuses, *common})}


def documented_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the documentation of a body that an endpoint reads for itself."""
    _bodies.append(model)
    schema = {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}
    return {"requestBody": {"required": True, "content": {"application/json": schema}}}


def _refusal(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": _MEANINGS[status],
        "content": {
            MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model=ProblemDetails.__name__)}}
        },
    }
    if status in _HEADERS:
        answer["headers"] = _HEADERS[status]
    return answer


def document(app: FastAPI) -> dict[str, Any]:
    """Return the whole document, made once."""
    if app.openapi_schema:
        return app.openapi_schema
    result = get_openapi(
        title="Debrief recorder",
        version=VERSION,
        summary="Records of coding sessions in, training lines out.",
        description=(
            "Every refusal is one `ProblemDetails`. Bodies are JSON in UTF-8, at most 8,000,000 "
            "bytes, not compressed, without NUL and lone surrogates."
        ),
        routes=app.routes,
    )
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    _, definitions = models_json_schema(
        [(model, "validation") for model in _bodies] + [(ProblemDetails, "serialization")],
        ref_template=_REFERENCE,
    )
    schemas.update(definitions["$defs"])
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    app.openapi_schema = result
    return result


def add_refusals(app: FastAPI) -> None:
    """Answer every error of an application in the same shape."""
    for kind in (DebriefError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refuse)
    app.add_exception_handler(Exception, _report_fault)


async def _refuse(request: Request, error: Exception) -> Response:
    refusal = refusal_of(request, error)
    if refusal.status == 503:
        fields = {"id": request.state.request_id, "error": type(error).__name__}
        logging.getLogger(LOGGER).warning("unavailable", extra={"fields": fields})
    return _answer(request, refusal)


async def _report_fault(request: Request, error: Exception) -> Response:
    fields = {"id": request.state.request_id}
    logging.getLogger(LOGGER).error("fault", exc_info=error, extra={"fields": fields})
    move = "Report the request's id to whoever runs the service."
    return _answer(request, RefusedError(500, "service", "has a fault", move))


def _answer(request: Request, refusal: RefusedError) -> Response:
    details = refusal.details(request.state.request_id)
    return Response(
        details.model_dump_json(by_alias=True),
        refusal.status,
        headers=refusal.headers,
        media_type=MEDIA_TYPE,
    )
