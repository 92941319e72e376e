"""Taking a body: refused by its headers where they tell enough, and counted while it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import Request
from starlette.requests import ClientDisconnect

from debrief.recorder.service.problems import RefusedError
from debrief.recorder.service.state import service_of
from debrief.recorder.service.work import busy


def record_body(request: Request) -> AbstractAsyncContextManager[bytes]:
    """Take the body of a request that may bring a record; its room is held for a block."""
    return _taken(request, service_of(request).limits.body)


async def small_body(request: Request) -> AsyncIterator[bytes]:
    """Give a route the body of a request that brings a few fields."""
    async with _taken(request, service_of(request).limits.small_body) as body:
        yield body


@asynccontextmanager
async def _taken(request: Request, limit: int) -> AsyncIterator[bytes]:
    _check_headers(request, limit)
    room = service_of(request).bodies
    held = 0
    chunks: list[bytes] = []
    try:
        async for chunk in request.stream():
            if held + len(chunk) > limit:
                raise _too_long(limit)
            if not room.take(len(chunk)):
                raise busy("it is taking as many bodies as it can hold")
            held += len(chunk)
            chunks.append(chunk)
        yield b"".join(chunks)
    except ClientDisconnect:
        raise RefusedError(400, "body", "ended before it was whole", "Send it again.") from None
    finally:
        room.give_back(held)


def _check_headers(request: Request, limit: int) -> None:
    codings = request.headers.getlist("content-encoding")
    if any(coding.strip().lower() not in ("", "identity") for coding in codings):
        raise RefusedError(
            415,
            "Content-Encoding",
            "is not taken",
            "Send the body as it is.",
            {"Accept-Encoding": "identity"},
        )
    kinds = request.headers.getlist("content-type")
    if len(kinds) != 1 or not _is_json(kinds[0]):
        raise RefusedError(
            415,
            "Content-Type",
            "is not application/json in UTF-8",
            "Send: Content-Type: application/json",
        )
    length = request.headers.get("content-length", "")
    if length.isdigit() and (len(length) > 12 or int(length) > limit):
        raise _too_long(limit)


def _is_json(kind: str) -> bool:
    media_type, *parameters = kind.lower().split(";")
    named = [parameter.partition("=") for parameter in parameters]
    charsets = {value.strip(' \t"') for name, _, value in named if name.strip() == "charset"}
    return media_type.strip() == "application/json" and charsets <= {"utf-8"}


def _too_long(limit: int) -> RefusedError:
    return RefusedError(413, "body", f"is over {limit:,} bytes", "Record a smaller change.")
