"""What a client is told when its request cannot be answered: one shape for every failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

from pydantic import Field

from debrief.errors import DebriefError
from debrief.recorder.contracts import Contract

MEDIA_TYPE = "application/problem+json"
MOST_REASONS = 50
"""Reasons that one answer tells; what is over it is counted."""
_LONGEST = 2_000


class Problem(Contract):
    """Why a request was refused, in the form of RFC 9457."""

    status: Annotated[int, Field(ge=400, le=599)]
    """The HTTP status, again."""
    title: str
    """The status in words."""
    detail: str
    """One line: the place, the reason, the next move."""
    place: str
    """What is wrong: a header, a query value, the way to a value in the body, a session."""
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
        super().__init__(place, "; ".join(_few(self.reasons)), next_move)

    def __reduce__(self) -> tuple[type[RefusedError], tuple[object, ...]]:  # type: ignore[override]
        return type(self), (self.status, self.culprit, self.reasons, self.next_move, self.headers)


def problem_of(error: RefusedError, request_id: str) -> Problem:
    """Return what a client is told of an error."""
    return Problem(
        status=error.status,
        title=HTTPStatus(error.status).phrase,
        detail=_short(str(error)),
        place=_short(error.culprit),
        reasons=[_short(reason) for reason in _few(error.reasons)],
        next_move=error.next_move,
        request_id=request_id,
    )


def _few(reasons: Sequence[str]) -> list[str]:
    if len(reasons) <= MOST_REASONS:
        return list(reasons)
    return [*reasons[:MOST_REASONS], f"and {len(reasons) - MOST_REASONS} more"]


def _short(text: str) -> str:
    """Return a text that JSON and a terminal take: no lone surrogates, no control characters."""
    clean = text.encode("utf-8", "replace").decode()
    clean = "".join(
        char if char.isprintable() or char == " " else "\N{REPLACEMENT CHARACTER}" for char in clean
    )
    return clean if len(clean) <= _LONGEST else f"{clean[:_LONGEST]}…"
