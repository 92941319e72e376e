"""A Langfuse server: the SDK's client for what it reads and writes as servers do, plain requests
for the rest.

The SDK has no sessions, traces or older scores, writes scores as lists alone, and makes an object
of each observation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from debrief.errors import ConfigurationError
from debrief.langfuse.errors import API, LACKING, LangfuseAwayError, RequestRefusedError
from debrief.retry import RetryPolicy
from debrief.sessions.readers.values import mapping
from debrief.settings import Settings

if TYPE_CHECKING:
    from langfuse.api.client import LangfuseAPI

OBSERVATIONS, TRACES = "/v2/observations", "/traces"
LARGEST_PAGE = 1_000
"""Observations that a server gives at once at most."""

RETRIES = RetryPolicy(attempts=6, seconds=600.0, longest_wait=60.0)
Row = Mapping[str, Any]
"""One of a list, as the server gives it."""
Page = dict[str, str | int]

_FIRST_WITH_OBSERVATIONS = 4
"""Major version of the first servers whose observations can be asked for by session; some before
have the path, and behind it an error or nothing."""
_SMALLEST_PAGE, _SHRINKING = 10, 10


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
        from debrief.langfuse.http_client import RetryingClient

        self.host, self.public_key = host.rstrip("/"), public_key
        self.sleep = retries.sleep
        self.takes_lists: bool | None = None
        """Whether scores are sent as lists; None until the server was asked."""
        self.rows_at_once = LARGEST_PAGE
        """Observations in one answer; fewer once the server was overloaded by so many."""
        self._lacking: set[str] = set()
        """Paths that the server turned out not to have."""
        spacing = 60 / requests_a_minute if requests_a_minute else 0.0
        keys = (public_key, secret_key)
        self._http = RetryingClient(self.host, keys, retries, timeout, spacing)

    def __enter__(self) -> LangfuseClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    @contextmanager
    def sdk(self) -> Iterator[LangfuseAPI]:
        """Give the SDK's client; what goes wrong with it is raised as one of our errors.

        Raises:
            LangfuseAwayError: after the last attempt.
            RequestRefusedError: the server refuses the request, or answers in an unknown form.
        """
        from pydantic import ValidationError

        from langfuse.api.core.api_error import ApiError

        try:
            yield self._sdk
        except ApiError:
            raise self._no_json("it") from None
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(map(str, wrong["loc"]))
            reason = f"answered in a form that is not known: {where}: {wrong['msg']}"
            raise RequestRefusedError(self.host, reason, "Is Debrief up to date?") from None

    @cached_property
    def _sdk(self) -> LangfuseAPI:
        """The SDK's client; importing it takes longer than a run without anything to write."""
        from langfuse.api.client import LangfuseAPI

        return LangfuseAPI(base_url=self.host, httpx_client=self._http)

    def sdk_pages(self, ask: Callable[..., Any]) -> Iterator[Any]:
        """Yield the items of all pages of one of the SDK's lists; errors as for ``sdk``.

        Args:
            ask: is given the SDK's client, and the page as ``cursor`` or ``page``.
        """

        def page_of(page: Page) -> tuple[Iterable[Any], Row]:
            with self.sdk() as sdk:
                answer = ask(sdk, **page)
                return answer.data, answer.meta.dict()

        return self._pages("the list", page_of)

    def get(self, path: str, **parameters: str | int) -> Any:
        """Return the resource at ``path``; errors as for ``sdk``."""
        return self._call("GET", path, params=parameters)

    def post(self, path: str, body: object) -> Any:
        """Send ``body`` as JSON and return the answer; errors as for ``sdk``.

        A busy server is sent the same again, so the body must be one that may arrive twice.
        """
        return self._call("POST", path, json=body)

    def pages(self, path: str, **parameters: str | int) -> Iterator[Row]:
        """Yield the items of all pages, by cursor where the server gives one, else by number.

        Errors as for ``sdk``.
        """
        return self._rows(path, lambda page: self.get(path, **{**parameters, **page}))

    def traces(self, **parameters: str | int) -> Iterator[Row]:
        """Yield traces; none on a server that no longer has them; errors as for ``sdk``."""
        return self._offered(TRACES, self.pages(TRACES, **{"limit": 100, **parameters}))

    def observations(self, **parameters: str | int) -> Iterator[Row]:
        """Yield observations, newest first; none on a server too old; errors as for ``sdk``.

        A thousand of them may hold gigabytes. A server that cannot answer so much in time is
        asked for less at once, from where it had come to.
        """
        path = OBSERVATIONS

        def ask(page: Page) -> Any:
            while True:
                try:
                    limit = {"limit": self.rows_at_once}
                    return self.get(path, **{**limit, **parameters, **page})
                except LangfuseAwayError as away:
                    if not away.overloaded or self.rows_at_once <= _SMALLEST_PAGE:
                        raise
                    self.rows_at_once //= _SHRINKING

        return self._offered(path, self._rows(path, ask))

    def _offered(self, path: str, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows of a path; none where the server does not have it, which is remembered.

        Raises:
            RequestRefusedError: it has no other way to its sessions either.
        """
        if path not in self._lacking and not (path == OBSERVATIONS and self._is_old):
            try:
                yield from rows
            except RequestRefusedError as error:
                if error.status not in LACKING:
                    raise
                self._lacking.add(path)
        if self._lacking == {OBSERVATIONS, TRACES}:
            reason = "has neither observations nor traces"
            raise RequestRefusedError(self.host, reason, "Check LANGFUSE_HOST.", LACKING[0])

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

    def _rows(self, path: str, ask: Callable[[Page], Any]) -> Iterator[Row]:
        def page_of(page: Page) -> tuple[Iterable[Row], Row]:
            answer = ask(page)
            if not isinstance(answer, dict) or not isinstance(answer.get("data"), list):
                raise RequestRefusedError(self.host, f"{path} answered without a list of data")
            return answer["data"], answer.get("meta") or {}

        return self._pages(path, page_of)

    def _pages(
        self, path: str, page_of: Callable[[Page], tuple[Iterable[Any], Row]]
    ) -> Iterator[Any]:
        page: Page = {}
        while True:
            rows, meta = page_of(page)
            yield from rows
            page = self._page_after(page, meta, path)
            if not page:
                return

    def _page_after(self, page: Page, meta: Row, path: str) -> Page:
        """Return the parameters of the next page; none after the last."""
        if cursor := meta.get("cursor"):
            if cursor == page.get("cursor"):
                raise RequestRefusedError(self.host, f"{path} gives the same cursor for ever")
            return {"cursor": cursor}
        if int(meta.get("page") or 1) < int(meta.get("totalPages") or 0):
            return {"page": int(meta["page"]) + 1}
        return {}

    def _call(self, method: str, path: str, **request: Any) -> Any:
        response = self._http.request(method, f"{self.host}{API}{path}", **request)
        try:
            return response.json()
        except ValueError:
            raise self._no_json(f"{method} {API}{path}") from None

    def _no_json(self, asked: str) -> RequestRefusedError:
        reason = f"{asked} answered with something else than JSON"
        return RequestRefusedError(self.host, reason, "Check LANGFUSE_HOST.")


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
