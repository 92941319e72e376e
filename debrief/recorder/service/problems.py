"""Refusals: every request that cannot be answered gets the same shape of answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

from fastapi.exceptions import RequestValidationError
from pydantic import Field

from debrief.errors import DebriefError
from debrief.recorder.contracts import Contract
from debrief.recorder.encoding import SCHEMA, place_of
from debrief.recorder.errors import (
    AwayError,
    ConflictError,
    MalformedError,
    NotFoundError,
    StorageError,
    UnfitError,
    UnknownTaskError,
)

MEDIA_TYPE = "application/problem+json"
_MOST_REASONS = 50
"""Reasons in one answer; the rest is counted."""
_LONGEST = 2_000
_STATUS: tuple[tuple[type[DebriefError], int], ...] = (
    (MalformedError, 400),
    (NotFoundError, 404),
    (UnknownTaskError, 404),
    (ConflictError, 409),
)
"""Of errors that are not 422."""


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


class RefusedError(DebriefError):
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
        self.status = status
        self.reasons = [reasons] if isinstance(reasons, str) else list(reasons)
        self.headers = dict(headers or {})
        super().__init__(place, "; ".join(_first(self.reasons)), next_move)

    def details(self, request_id: str) -> ProblemDetails:
        """Return what the client receives."""
        return ProblemDetails(
            status=self.status,
            title=HTTPStatus(self.status).phrase,
            detail=_printable(str(self)),
            place=_printable(self.culprit),
            reasons=[_printable(reason) for reason in _first(self.reasons)],
            next_move=self.next_move,
            request_id=request_id,
        )


def unavailable(place: str, reason: str, next_move: str = "Try again soon.") -> RefusedError:
    """Return a refusal of a request that may succeed later."""
    return RefusedError(503, place, reason, next_move, {"Retry-After": "5"})


def refusal_of(error: DebriefError) -> RefusedError:
    """Return the refusal that an error means to a client."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, AwayError):
        return unavailable("database", "is away")
    if isinstance(error, StorageError):
        return unavailable("database", error.reason, error.next_move)
    if isinstance(error, UnfitError):
        return RefusedError(422, error.culprit, error.reasons, error.next_move)
    status = next((number for kind, number in _STATUS if isinstance(error, kind)), 422)
    return RefusedError(status, error.culprit, error.reason, error.next_move)


def refusal_of_values(error: RequestValidationError) -> RefusedError:
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


def _printable(text: str) -> str:
    """Return a text that JSON and a terminal take: no lone surrogates, no control characters."""
    text = text.encode("utf-8", "replace").decode()
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
