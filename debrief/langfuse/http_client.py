"""The HTTP client below the SDK and below our own requests: it keeps a pace and waits."""

from __future__ import annotations

import json
import threading
import time
from functools import cache
from ssl import SSLContext
from typing import Any

import httpx

from debrief.langfuse.errors import API, LangfuseAwayError, RequestRefusedError
from debrief.retry import TEMPORARY_STATUS, RetryPolicy, retrying
from debrief.sessions.readers.documents import mend, plain_text

_TOO_MUCH = frozenset({500, 502, 504})


class RetryingClient(httpx.Client):
    """Sends requests evenly spaced, and again while the server is busy.

    A response that it returns is a success, as all else is raised. The SDK has nothing left to
    retry: it would wait in another way, without a pace, and ask again what a server will never
    have (501).

    Args:
        host: of the server.
        auth: the keys of its project.
        retries: how often and how long a busy server is retried.
        timeout: seconds for one request.
        spacing: seconds between two requests.
    """

    def __init__(
        self,
        host: str,
        auth: tuple[str, str],
        retries: RetryPolicy,
        timeout: float,
        spacing: float,
    ) -> None:
        limits = httpx.Limits(max_connections=16)
        super().__init__(auth=auth, timeout=timeout, limits=limits, verify=_trusted())
        self.host = host
        self._spacing, self._sleep = spacing, retries.sleep
        self._next = 0.0
        self._pacing = threading.Lock()
        self._gave_up = False
        """The server stayed away: until it answers, a request is sent once and not waited for."""
        self._retry = retrying(
            retries,
            lambda error: isinstance(error, httpx.TransportError | httpx.HTTPStatusError),
            name=host,
        )

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request and return the successful response, read to its end.

        Raises:
            LangfuseAwayError: after the last attempt.
            RequestRefusedError: the server refuses the request.
        """
        try:
            if self._gave_up:
                response = self._once(request, **options)
            else:
                response = self._retry(self._once, request, **options)
        except httpx.TransportError as error:
            self._gave_up = True
            reason = f"cannot be reached: {type(error).__name__} {error}".rstrip()
            away = LangfuseAwayError(self.host, reason, "Run again when it is up.")
            away.overloaded = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise away from None
        except httpx.HTTPStatusError as busy:
            away = LangfuseAwayError(self.host, f"stayed busy: {busy}", "Run again later.")
            away.overloaded = busy.response.status_code in _TOO_MUCH
            raise away from None
        self._gave_up = False
        status = response.status_code
        if not response.is_success:
            move = "Check LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_HOST."
            path = request.url.path.partition(API)[2]
            reason = f"refused {request.method} {path}: {_reason(response)}"
            raise RequestRefusedError(
                self.host, reason, move if status in (401, 403) else "", status
            )
        return response

    def _once(self, request: httpx.Request, **options: Any) -> httpx.Response:
        with self._pacing:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._spacing
        if start > now:
            self._sleep(start - now)
        response = super().send(request, **options)
        if response.status_code in TEMPORARY_STATUS:
            raise httpx.HTTPStatusError(_reason(response), request=request, response=response)
        return _mended(response)


@cache
def _trusted() -> SSLContext:
    """Return the certificates that are trusted: loading them takes longer than a request does."""
    return httpx.create_ssl_context()


def _mended(response: httpx.Response) -> httpx.Response:
    """Return a response without halves of surrogate pairs, which nothing could encode again."""
    if b"\\ud" not in response.content.lower():
        return response
    try:
        value = mend(json.loads(response.content, strict=False))
    except (ValueError, RecursionError):
        return response
    headers = {
        name: value
        for name, value in response.headers.items()
        if name not in ("content-encoding", "content-length", "transfer-encoding")
    }
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=json.dumps(value, ensure_ascii=False).encode(),
        request=response.request,
        extensions=response.extensions,
    )


def _reason(response: httpx.Response) -> str:
    text = response.text[:300]
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        parts = [str(body[key])[:300] for key in ("message", "error") if body.get(key)]
        text = " ".join(parts) or text
    return f"{response.status_code} {' '.join(plain_text(text).split())}".strip()
