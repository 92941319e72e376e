"""The API's own document: what FastAPI cannot know of bodies, refusals and streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from debrief import __version__
from debrief.recorder.service.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    from fastapi import FastAPI

_REFERENCE = "#/components/schemas/{model}"
_MEANINGS: Mapping[int, str] = {
    400: "The request or its body cannot be read: JSON that is none, or that two parsers would "
    "read in two ways.",
    401: "The token is missing, unknown or revoked.",
    403: "The token has not the scope that this takes.",
    404: "There is no such thing.",
    405: "The path does not take this method.",
    408: "The request came too slowly.",
    409: "It contradicts what is stored.",
    413: "The body is too long.",
    415: "The body is not application/json, or it is compressed.",
    422: "It can be read, and cannot be taken: every reason is told.",
    429: "The token has sent too many requests.",
    431: "The headers are too long.",
    503: "The database is away, or the service has too much to do. Try again.",
}
_HEADERS: Mapping[int, Mapping[str, tuple[str, str]]] = {
    401: {"WWW-Authenticate": ("string", "How to say who you are.")},
    415: {},
    429: {"Retry-After": ("integer", "Seconds until a request is taken again.")},
    503: {"Retry-After": ("integer", "Seconds until it is worth a try.")},
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of a route for its document."""
    return {status: _problem(status) for status in statuses}


def guarded(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of a route that takes a token, with those of the route itself."""
    return problems(*sorted({401, 403, 422, 429, 503, *statuses}))


def with_body(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the refusals of a route that takes a token and a body."""
    return guarded(400, 408, 413, 415, *statuses)


def body(model: type[BaseModel]) -> dict[str, Any]:
    """Return what tells the body of a route that reads it for itself."""
    return {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": _REFERENCE.format(model=model.__name__)}}
            },
        }
    }


def _problem(status: int) -> dict[str, Any]:
    headers = {
        name: {"schema": {"type": kind}, "description": text}
        for name, (kind, text) in _HEADERS.get(status, {}).items()
    }
    answer: dict[str, Any] = {
        "description": _MEANINGS[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
    }
    return {**answer, "headers": headers} if headers else answer


def document(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Return the whole document, made once.

    Args:
        app: the application.
        bodies: what routes read for themselves, after the token was looked at.
    """
    if app.openapi_schema:
        return app.openapi_schema
    from fastapi.openapi.utils import get_openapi

    made = get_openapi(
        title="Debrief recorder",
        version=__version__,
        summary="Records of coding sessions in, training lines out.",
        description=(
            "Every refusal is one `Problem`. Bodies are JSON in UTF-8, at most 8,000,000 bytes, "
            "not compressed, without keys that occur twice, NUL, or lone surrogates."
        ),
        routes=app.routes,
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    _, written = models_json_schema(
        [(model, "validation") for model in bodies] + [(Problem, "serialization")],
        ref_template=_REFERENCE,
    )
    schemas.update(written["$defs"])
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    app.openapi_schema = made
    return made
