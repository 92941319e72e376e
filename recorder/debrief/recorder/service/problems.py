"""Refusals: every request that cannot be answered gets the same shape of answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from debrief.errors import DebriefError, flat
from debrief.recorder.contracts import Contract
from debrief.recorder.encoding import SCHEMA, place_of
from debrief.recorder.storage.rows import AwayError, ReasonsError, StorageError

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


_ANSWER: dict[str, Any] = {
    "description": "Refused: every reason is named.",
    "model": ProblemDetails,
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
}
_TOO_LONG = {
    "description": "The body is too long; plain text, as no endpoint has seen it",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}
REFUSALS: dict[int | str, dict[str, Any]] = {413: _TOO_LONG, "4XX": _ANSWER, "5XX": _ANSWER}
"""For the OpenAPI document: what every endpoint may answer too."""


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

    def details(self) -> ProblemDetails:
        """Return what the client receives."""
        return ProblemDetails(
            status=self.status,
            title=HTTPStatus(self.status).phrase,
            detail=flat(str(self)),
            place=flat(self.culprit),
            reasons=list(map(flat, self.reasons)),
            next_move=self.next_move,
        )


def unavailable(place: str, reason: str, next_move: str = "Try again soon.") -> RefusedError:
    """Return a refusal of a request that may succeed later."""
    return RefusedError(503, place, reason, next_move, {"Retry-After": "5"})


def refusal_of(error: Exception) -> RefusedError:
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
    return RefusedError(error.status_code, "request", str(error.detail), SCHEMA, error.headers)


def _refusal_of_values(error: RequestValidationError) -> RefusedError:
    """Return the refusal of a body, query values or path parameters; names each."""
    reasons = [
        f"{place_of(item['loc'][1:])}: "
        + ("is not known" if item["type"] == "extra_forbidden" else item["msg"])
        for item in error.errors()
    ]
    reasons = [reason.replace(": Value error, ", ": ") for reason in reasons]
    places = [item["loc"] if item["loc"][0] != "body" else ("body",) for item in error.errors()]
    return RefusedError(422, ", ".join(dict.fromkeys(map(place_of, places))), reasons, SCHEMA)


def _first(reasons: Sequence[str]) -> list[str]:
    if len(reasons) <= _MOST_REASONS:
        return list(reasons)
    return [*reasons[:_MOST_REASONS], f"and {len(reasons) - _MOST_REASONS} more"]


def refuse(request: HTTPConnection, error: Exception) -> Response:
    """Answer a request that met an error."""
    refusal = refusal_of(error)
    if refusal.status == 405:
        # Starlette names the methods of the path's first route alone.
        path = getattr(request.scope.get("route"), "path", "")
        methods = request.app.openapi()["paths"].get(path, {})
        refusal.headers["Allow"] = ", ".join(sorted(map(str.upper, methods)))
    return Response(
        refusal.details().model_dump_json(by_alias=True),
        refusal.status,
        headers=refusal.headers,
        media_type=MEDIA_TYPE,
    )
