"""Answers that come before their request was read, to clients that send all of it first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from starlette.datastructures import Headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST = 64_000_000
"""Bytes that are read of a refused body, before its connection is closed."""
SECONDS = 15.0
"""How long they are waited for."""


class DrainMiddleware:
    """Reads the rest of a body before its connection is closed.

    Closing a connection with bytes unread resets it, and a client that sends its whole body before
    it reads the answer, as Python's ``urllib`` does, never sees why it was refused. The answer
    itself is sent first.

    Args:
        app: answers the requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not _has_body(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        is_read = False

        async def receive_part() -> Message:
            nonlocal is_read
            message = await receive()
            is_read = message["type"] != "http.request" or not message.get("more_body")
            return message

        async def send_and_drain(message: Message) -> None:
            is_last = message["type"] == "http.response.body" and not message.get("more_body")
            if not is_last or is_read:
                await send(message)
                return
            await send({**message, "more_body": True})
            left = LONGEST
            with anyio.move_on_after(SECONDS):
                while left > 0 and not is_read:
                    left -= len((await receive_part()).get("body", b""))
            await send({"type": "http.response.body"})

        await self._app(scope, receive_part, send_and_drain)


def _has_body(headers: Headers) -> bool:
    """Return whether a client sends a body without waiting to be asked for it."""
    waits = headers.get("expect", "").lower() == "100-continue"
    return not waits and ("content-length" in headers or "transfer-encoding" in headers)
