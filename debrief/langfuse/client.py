"""The way to a Langfuse server: plain HTTP, patient with a busy one, plain about a refusing one.

The SDK is not used. Its version 5 loses scores silently when it queues them, writes lists alone,
which servers up to 4.16 refuse, and no longer reads sessions; version 4 cannot read newer servers.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from debrief.errors import ConfigurationError, LangfuseError
from debrief.settings import Settings

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

API = "/api/public"
LARGEST_PAGE = 1_000
"""Observations that a server gives at once at most."""

_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_TOO_MUCH = frozenset({500, 502, 504})
_SMALLEST_PAGE, _SHRINKING = 10, 10


class ServerAwayError(LangfuseError):
    """The server could not be reached, or stayed busy: nothing was wrong with the request."""

    overloaded = False
    """It was reached, and could not answer in time: a smaller question may do."""


class RequestRefusedError(LangfuseError):
    """The server answered, and will answer the same again."""

    def __init__(self, culprit: str, reason: str, next_move: str = "", status: int = 0) -> None:
        super().__init__(culprit, reason, next_move)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.culprit, self.reason, self.next_move, self.status)


class Patience:
    """How long a busy server is waited for.

    Args:
        attempts: requests at most for one call.
        first_wait: seconds before the second; doubled each time.
        longest_wait: seconds between two at most, whatever Retry-After says.
        timeout: seconds for one request.
        requests_a_minute: kept by spacing requests evenly; None for as fast as they come.
        sleep: how to wait.
    """

    def __init__(
        self,
        attempts: int = 6,
        first_wait: float = 1.0,
        longest_wait: float = 60.0,
        timeout: float = 30.0,
        requests_a_minute: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.attempts = attempts
        self.first_wait = first_wait
        self.longest_wait = longest_wait
        self.timeout = timeout
        self.spacing = 60 / requests_a_minute if requests_a_minute else 0.0
        self.sleep = sleep


class LangfuseClient:
    """One server and one project of it. Safe to use from several threads.

    Args:
        host: as ``https://langfuse.example.org``.
        public_key: of the project.
        secret_key: of the project; it is in no error and no log.
        patience: how long a busy server is waited for.
    """

    def __init__(
        self, host: str, public_key: str, secret_key: str, patience: Patience | None = None
    ) -> None:
        import httpx

        self.host = host.rstrip("/")
        self.patience = patience or Patience()
        self.takes_lists: bool | None = None
        """Whether scores are sent as lists; None until the server was asked."""
        self.rows_at_once = LARGEST_PAGE
        """Observations in one answer; fewer once the server was overloaded by so many."""
        self._next = 0.0
        self._pacing = threading.Lock()
        self._http = httpx.Client(
            base_url=f"{self.host}{API}",
            auth=httpx.BasicAuth(public_key, secret_key),
            timeout=self.patience.timeout,
            limits=httpx.Limits(max_connections=16),
            verify=_trusted(),
        )

    def __enter__(self) -> LangfuseClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str, **parameters: str | int | None) -> Any:
        """Return what stands at ``path``; parameters that are None are left out.

        Raises:
            ServerAwayError: after the last attempt.
            RequestRefusedError: the server refuses the request.
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._call("GET", path, params=given)

    def post(self, path: str, body: object) -> Any:
        """Send ``body`` as JSON and return the answer; errors as for ``get``.

        A busy server is sent the same again, so the body must be one that may arrive twice.
        """
        return self._call("POST", path, json=body)

    def delete(self, path: str) -> None:
        """Delete what stands at ``path``; errors as for ``get``."""
        self._call("DELETE", path)

    def pages(self, path: str, **parameters: str | int | None) -> Iterator[Mapping[str, Any]]:
        """Yield the items of all pages, by cursor where the server gives one, else by number.

        Errors as for ``get``.
        """
        page: dict[str, str | int] = {}
        while True:
            answer = self.get(path, **{**parameters, **page})
            yield from self._data(answer, path)
            meta = answer.get("meta") or {}
            if cursor := meta.get("cursor"):
                if cursor == page.get("cursor"):
                    raise RequestRefusedError(self.host, f"{path} gives the same cursor for ever")
                page = {"cursor": cursor}
            elif int(meta.get("page") or 1) < int(meta.get("totalPages") or 0):
                page = {"page": int(meta["page"]) + 1}
            else:
                return

    def observations(self, **parameters: str | int | None) -> Iterator[Mapping[str, Any]]:
        """Yield observations, newest first; errors as for ``get``, 404 on a server without them.

        A thousand of them may hold gigabytes. A server that cannot answer so much in time is
        asked for less at once, from where it had come to.
        """
        cursor: str | None = None
        while True:
            try:
                answer = self.get(
                    "/v2/observations", limit=self.rows_at_once, cursor=cursor, **parameters
                )
            except ServerAwayError as away:
                if not away.overloaded or self.rows_at_once <= _SMALLEST_PAGE:
                    raise
                self.rows_at_once //= _SHRINKING
                continue
            yield from self._data(answer, "/v2/observations")
            next_cursor = (answer.get("meta") or {}).get("cursor")
            if not next_cursor:
                return
            if next_cursor == cursor:
                raise RequestRefusedError(self.host, "gives the same cursor for ever")
            cursor = next_cursor

    def _data(self, answer: Any, path: str) -> list[Mapping[str, Any]]:
        if not isinstance(answer, dict) or not isinstance(answer.get("data"), list):
            raise RequestRefusedError(self.host, f"{path} answered without a list of data")
        data: list[Mapping[str, Any]] = answer["data"]
        return data

    def _call(self, method: str, path: str, **request: Any) -> Any:
        import httpx
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

        retrying = Retrying(
            retry=retry_if_exception_type((httpx.TransportError, _BusyError)),
            stop=stop_after_attempt(self.patience.attempts),
            wait=self._wait,
            sleep=self.patience.sleep,
            reraise=True,
        )
        try:
            response: httpx.Response = retrying(self._once, method, path, **request)
        except httpx.TransportError as error:
            reason = f"cannot be reached: {type(error).__name__} {error}".rstrip()
            away = ServerAwayError(self.host, reason, "Run again when it is up.")
            away.overloaded = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise away from None
        except _BusyError as busy:
            reason = f"stayed busy: {_reason(busy.response)}"
            away = ServerAwayError(self.host, reason, "Run again later.")
            away.overloaded = busy.response.status_code in _TOO_MUCH
            raise away from None
        if response.is_success:
            return _json(response)
        raise _refusal(self.host, method, path, response)

    def _once(self, method: str, path: str, **request: Any) -> httpx.Response:
        self._keep_pace()
        response = self._http.request(method, path, **request)
        if response.status_code in _BUSY:
            raise _BusyError(response)
        return response

    def _keep_pace(self) -> None:
        if not self.patience.spacing:
            return
        with self._pacing:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self.patience.spacing
        if start > now:
            self.patience.sleep(start - now)

    def _wait(self, state: RetryCallState) -> float:
        patience = self.patience
        wait = patience.first_wait * 2 ** (state.attempt_number - 1)
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, _BusyError):
            wait = max(wait, _retry_after(error.response))
        return float(min(wait, patience.longest_wait))


def langfuse_from_settings(settings: Settings) -> LangfuseClient | None:
    """Return a client for the configured server; None when none is configured.

    ``LANGFUSE_BASE_URL``, else ``LANGFUSE_HOST``, says where it is; there is no default, so that
    nothing is sent to a public server unasked. ``DEBRIEF_LANGFUSE=off`` leaves it alone wherever
    it is; ``DEBRIEF_LANGFUSE_REQUESTS_A_MINUTE`` keeps to a plan's limit.

    Raises:
        ConfigurationError: only a part of the three settings is there, or the host is no URL.
    """
    if not settings.langfuse:
        return None
    host = settings.langfuse_host
    public_key, secret_key = settings.langfuse_public_key, settings.langfuse_secret_key
    given = {
        "LANGFUSE_HOST": host,
        "LANGFUSE_PUBLIC_KEY": public_key,
        "LANGFUSE_SECRET_KEY": secret_key,
    }
    if not any(given.values()):
        return None
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise ConfigurationError(
            "Langfuse",
            f"is configured without {' and '.join(missing)}",
            "Set all of LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, or none.",
        )
    if not host.startswith(("https://", "http://")):
        raise ConfigurationError("LANGFUSE_HOST", f"{host!r} is no URL", "Write https://….")
    patience = Patience(requests_a_minute=settings.langfuse_requests_a_minute)
    return LangfuseClient(host, public_key, secret_key, patience)


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates that are trusted: loading them takes longer than a request does."""
    import httpx

    return httpx.create_ssl_context()


class _BusyError(Exception):
    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def _retry_after(response: httpx.Response) -> float:
    told = response.headers.get("retry-after", "")
    try:
        return max(0.0, float(told))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def _json(response: httpx.Response) -> Any:
    import orjson

    if not response.content:
        return None
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError:
        where = f"{response.request.method} {response.request.url.path}"
        host = str(response.request.url.copy_with(path="/", query=None)).rstrip("/")
        reason = f"{where} answered with something else than JSON"
        raise RequestRefusedError(host, reason, "Check LANGFUSE_HOST.", 200) from None


def _reason(response: httpx.Response) -> str:
    text = response.text[:300]
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        parts = [str(body[key])[:300] for key in ("message", "error") if body.get(key)]
        text = " ".join(parts) or text
    return f"{response.status_code} {' '.join(text.split())}".strip()


def _refusal(host: str, method: str, path: str, response: httpx.Response) -> RequestRefusedError:
    move = ""
    if response.status_code in (401, 403):
        move = "Check LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_HOST."
    reason = f"refused {method} {path}: {_reason(response)}"
    return RequestRefusedError(host, reason, move, response.status_code)
