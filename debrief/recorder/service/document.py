"""The OpenAPI document: what FastAPI cannot know of bodies, refusals and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from debrief import __version__
from debrief.recorder.service.problems import MEDIA_TYPE, ProblemDetails

if TYPE_CHECKING:
    from fastapi import FastAPI

_REFERENCE = "#/components/schemas/{model}"
_MEANINGS = {
    400: "The body is not JSON, or two parsers would read it in two ways.",
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
_HEADERS = {
    401: ("WWW-Authenticate", "string", "How to authenticate."),
    429: ("Retry-After", "integer", "Seconds until a request is allowed again."),
    503: ("Retry-After", "integer", "Seconds until it is worth a retry."),
}
_bodies: list[type[BaseModel]] = []
"""Models that endpoints read for themselves, after they checked the token."""


def _header(kind: str, text: str) -> dict[str, Any]:
    return {"schema": {"type": kind}, "description": text}


RECORD_ANSWER = {
    "description": "The stored bytes.",
    "content": {"application/json": {"schema": {"$ref": _REFERENCE.format(model="Record")}}},
}
EXPORT_ANSWER = {
    "description": "One JSON object a line. The answer is chunked: a client that sees no last "
    "chunk has not received everything, and asks again with the same cursor.",
    "content": {"application/jsonl": {"schema": {"type": "string"}}},
    "headers": {
        "Debrief-Count": _header("integer", "Selected sessions; absent with split."),
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
        name, kind, text = _HEADERS[status]
        answer["headers"] = {name: _header(kind, text)}
    return answer


def document(app: FastAPI) -> dict[str, Any]:
    """Return the whole document, made once."""
    if app.openapi_schema:
        return app.openapi_schema
    result = get_openapi(
        title="Debrief recorder",
        version=__version__,
        summary="Records of coding sessions in, training lines out.",
        description=(
            "Every refusal is one `ProblemDetails`. Bodies are JSON in UTF-8, at most 8,000,000 "
            "bytes, not compressed, without keys that occur twice, NUL, or lone surrogates."
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
