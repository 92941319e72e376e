"""A route for what comes often: it does without the framework's steps between path and function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.routing import APIRoute

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class DirectRoute(APIRoute):
    """Calls a coroutine function with the request, and sends the response that it returns.

    What it depends on and answers with is told to the document, and done by the function itself.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)
