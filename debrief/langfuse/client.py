"""An HTTP client for a Langfuse server: retries when it is busy, reports when it refuses.

The SDK is not used. Its version 5 loses scores silently when it queues them, writes lists alone,
which servers up to 4.16 refuse, and no longer reads sessions; version 4 cannot read newer servers.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

from debrief.errors import ConfigurationError, LangfuseError
from debrief.retry import TEMPORARY_STATUS, RetryPolicy, retrying
from debrief.sessions.readers.values import mapping
from debrief.settings import Settings

if TYPE_CHECKING:
    import httpx

API = "/api/public"
OBSERVATIONS, TRACES = "/v2/observations", "/traces"
LARGEST_PAGE = 1_000
"""Observations that a server gives at once at most."""

RETRIES = RetryPolicy(attempts=6, seconds=600.0, longest_wait=60.0)
Row = Mapping[str, Any]
"""One of a list, as the server gives it."""
Page = dict[str, str | int]

_LACKING = (404, 501)
_FIRST_WITH_OBSERVATIONS = 4
"""Major version of the first servers whose observations can be asked for by session; some before
have the path, and behind it an error or nothing."""
_TOO_MUCH = frozenset({500, 502, 504})
_SMALLEST_PAGE, _SHRINKING = 10, 10


class LangfuseAwayError(LangfuseError):
    """The server could not be reached, or stayed busy: nothing was wrong with the request."""

    overloaded = False
    """It was reached, and could not answer in time: a smaller question may do."""


class RequestRefusedError(LangfuseError):
    """The server answered, and will answer the same again."""

    def __init__(self, culprit: str, reason: str, next_move: str = "", status: int = 0) -> None:
        super().__init__(culprit, reason, next_move)
        self.status = status


class LangfuseClient:
    """One server and one project of it. Safe to use from several threads.

    Args:
        host: as ``https://langfuse.example.org``.
        public_key: of the project.
        secret_key: of the project; it is in no error and no log.
        retries: how often and how long a busy server is retried.
        timeout: seconds for one request.
        requests_a_minute: kept by spacing requests evenly; None for as fast as they come.
    """

    def __init__(
        self,
        host: str,
        public_key: str,
        secret_key: str,
        *,
        retries: RetryPolicy = RETRIES,
        timeout: float = 30.0,
        requests_a_minute: float | None = None,
    ) -> None:
        import httpx

        self.host, self.public_key = host.rstrip("/"), public_key
        self.sleep = retries.sleep
        self.takes_lists: bool | None = None
        """Whether scores are sent as lists; None until the server was asked."""
        self.rows_at_once = LARGEST_PAGE
        """Observations in one answer; fewer once the server was overloaded by so many."""
        self.spacing = 60 / requests_a_minute if requests_a_minute else 0.0
        """Seconds between two requests."""
        self._next = 0.0
        self._gave_up = False
        """The server stayed away: until it answers, a request is sent once and not waited for."""
        self._lacking: set[str] = set()
        """Paths that the server turned out not to have."""
        self._pacing = threading.Lock()
        self._retry = retrying(
            retries,
            lambda error: isinstance(error, httpx.TransportError | httpx.HTTPStatusError),
            name=self.host,
        )
        self._http = httpx.Client(
            base_url=f"{self.host}{API}",
            auth=httpx.BasicAuth(public_key, secret_key),
            timeout=timeout,
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

    def get(self, path: str, **parameters: str | int) -> Any:
        """Return the resource at ``path``.

        Raises:
            LangfuseAwayError: after the last attempt.
            RequestRefusedError: the server refuses the request.
        """
        return self._call("GET", path, params=parameters)

    def post(self, path: str, body: object) -> Any:
        """Send ``body`` as JSON and return the answer; errors as for ``get``.

        A busy server is sent the same again, so the body must be one that may arrive twice.
        """
        return self._call("POST", path, json=body)

    def patch(self, path: str, body: object) -> Any:
        """Change the resource at ``path``; errors as for ``get``."""
        return self._call("PATCH", path, json=body)

    def delete(self, path: str) -> None:
        """Delete the resource at ``path``; errors as for ``get``."""
        self._call("DELETE", path)

    def pages(self, path: str, **parameters: str | int) -> Iterator[Row]:
        """Yield the items of all pages, by cursor where the server gives one, else by number.

        Errors as for ``get``.
        """
        return self._pages(path, lambda page: self.get(path, **{**parameters, **page}))

    def traces(self, **parameters: str | int) -> Iterator[Row]:
        """Yield traces; none on a server that no longer has them; errors as for ``get``."""
        return self._offered(TRACES, self.pages(TRACES, limit=100, **parameters))

    def observations(self, **parameters: str | int) -> Iterator[Row]:
        """Yield observations, newest first; none on a server too old; errors as for ``get``.

        A thousand of them may hold gigabytes. A server that cannot answer so much in time is
        asked for less at once, from where it had come to.
        """
        path = OBSERVATIONS

        def ask(page: Page) -> Any:
            while True:
                try:
                    return self.get(path, limit=self.rows_at_once, **{**parameters, **page})
                except LangfuseAwayError as away:
                    if not away.overloaded or self.rows_at_once <= _SMALLEST_PAGE:
                        raise
                    self.rows_at_once //= _SHRINKING

        return self._offered(path, self._pages(path, ask))

    def _offered(self, path: str, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows of a path; none where the server does not have it, which is remembered.

        Raises:
            RequestRefusedError: it has no other way to its sessions either.
        """
        if path not in self._lacking and not (path == OBSERVATIONS and self._is_old):
            try:
                yield from rows
            except RequestRefusedError as error:
                if error.status not in _LACKING:
                    raise
                self._lacking.add(path)
        if self._lacking == {OBSERVATIONS, TRACES}:
            reason = "has neither observations nor traces"
            raise RequestRefusedError(self.host, reason, "Check LANGFUSE_HOST.", _LACKING[0])

    @cached_property
    def _is_old(self) -> bool:
        """Whether the server says that it is of a version without observations by session."""
        try:
            version = str(mapping(self.get("/health")).get("version") or "")
        except RequestRefusedError:
            return False
        major = version.removeprefix("v").partition(".")[0]
        is_old = major.isdecimal() and int(major) < _FIRST_WITH_OBSERVATIONS
        if is_old:
            self._lacking.add(OBSERVATIONS)
        return is_old

    def _pages(self, path: str, ask: Callable[[Page], Any]) -> Iterator[Row]:
        page: Page = {}
        while True:
            answer = ask(page)
            if not isinstance(answer, dict) or not isinstance(answer.get("data"), list):
                raise RequestRefusedError(self.host, f"{path} answered without a list of data")
            yield from answer["data"]
            page = self._page_after(page, answer, path)
            if not page:
                return

    def _page_after(self, page: Page, answer: Row, path: str) -> Page:
        """Return the parameters of the next page; none after the last."""
        meta = answer.get("meta") or {}
        if cursor := meta.get("cursor"):
            if cursor == page.get("cursor"):
                raise RequestRefusedError(self.host, f"{path} gives the same cursor for ever")
            return {"cursor": cursor}
        if int(meta.get("page") or 1) < int(meta.get("totalPages") or 0):
            return {"page": int(meta["page"]) + 1}
        return {}

    def _call(self, method: str, path: str, **request: Any) -> Any:
        import httpx

        send = self._once if self._gave_up else partial(self._retry, self._once)
        try:
            response: httpx.Response = send(method, path, **request)
            self._gave_up = False
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
        status = response.status_code
        if not response.is_success:
            move = "Check LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_HOST."
            reason = f"refused {method} {path}: {_reason(response)}"
            move = move if status in (401, 403) else ""
            raise RequestRefusedError(self.host, reason, move, status)
        try:
            return response.json() if response.content else None
        except ValueError:
            reason = f"{method} {API}{path} answered with something else than JSON"
            raise RequestRefusedError(self.host, reason, "Check LANGFUSE_HOST.", status) from None

    def _once(self, method: str, path: str, **request: Any) -> httpx.Response:
        import httpx

        self._keep_pace()
        response = self._http.request(method, path, **request)
        if response.status_code in TEMPORARY_STATUS:
            raise httpx.HTTPStatusError(
                _reason(response), request=response.request, response=response
            )
        return response

    def _keep_pace(self) -> None:
        with self._pacing:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self.spacing
        if start > now:
            self.sleep(start - now)


def timestamp(moment: datetime) -> str:
    """Return a moment as the server's parameters are written."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def langfuse_from_settings(settings: Settings) -> LangfuseClient | None:
    """Return a client for the configured server; None when none is configured.

    ``LANGFUSE_BASE_URL``, else ``LANGFUSE_HOST``, says where it is; there is no default, so that
    nothing is sent to a public server unasked. ``DEBRIEF_LANGFUSE=off`` leaves it alone wherever
    it is; ``DEBRIEF_LANGFUSE_REQUESTS_A_MINUTE`` keeps to a plan's limit.

    Raises:
        ConfigurationError: only a part of the three settings is there, or the host is no URL.
    """
    if not settings.has_langfuse:
        return None
    names = ("LANGFUSE_HOST", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
    host, *keys = settings.langfuse_host, settings.langfuse_public_key, settings.langfuse_secret_key
    missing = [name for name, value in zip(names, (host, *keys), strict=True) if not value]
    if missing:
        raise ConfigurationError(
            "Langfuse",
            f"is configured without {' and '.join(missing)}",
            "Set all of LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY, or none.",
        )
    if not host.startswith(("https://", "http://")):
        raise ConfigurationError("LANGFUSE_HOST", f"{host!r} is no URL", "Write https://….")
    pace = settings.langfuse_requests_a_minute
    return LangfuseClient(host, *keys, requests_a_minute=pace)


def langfuse_for(option: str, settings: Settings) -> LangfuseClient:
    """Return a client for the configured server, which an option or a setting asks for.

    Raises:
        ConfigurationError: none is configured, or only a part of it.
    """
    client = langfuse_from_settings(settings)
    if client is None:
        raise ConfigurationError(
            option,
            "needs a Langfuse server, and none is configured",
            "Set LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.",
        )
    return client


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates that are trusted: loading them takes longer than a request does."""
    import httpx

    return httpx.create_ssl_context()


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
