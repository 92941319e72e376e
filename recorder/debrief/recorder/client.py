"""A client of a recorder's API: uploads and downloads, with retries and errors in plain words."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import IO, TYPE_CHECKING, Literal, TypeVar

import msgspec
from msgspec import Struct, structs

from debrief.errors import ConfigurationError, DebriefError, flat
from debrief.recorder.contracts import RECORD_VERSION, Meta, Status
from debrief.recorder.encoding import upload_body
from debrief.recorder.storage.rows import NewTask, SessionFilter, Task
from debrief.retry import TEMPORARY_STATUS, RetryPolicy, retrying
from debrief.settings import Settings

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

URL, TOKEN = "DEBRIEF_RECORDER_URL", "DEBRIEF_RECORDER_TOKEN"
PAGE_SIZE = 200
RETRIES = RetryPolicy(attempts=6, longest_retry_after=30.0)
_ADDRESS = "As https://host[/path]"
MAKE_TASK = "Make it there: debrief record upload --create-task NAME"
"""Next move of who sends the record of a task that is not there."""


_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_CODES = {401: "token-wrong", 403: "token-scope", 404: "not-found", 409: "conflict"}


class RecorderAwayError(DebriefError):
    """The server could not be reached, or stayed busy: the same request may succeed later."""

    code = "api-away"


class RecorderRefusedError(DebriefError):
    """The server refused a request, and would refuse it again.

    Args:
        culprit: the server.
        reasons: what it said, in its words.
        next_move: what to do about it.
        status: of its answer.
    """

    def __init__(
        self, culprit: str, reasons: Sequence[str], next_move: str = "", status: int = 0
    ) -> None:
        self.reasons, self.status = list(reasons), status
        code = "task-missing" if next_move == MAKE_TASK else _CODES.get(status, "api-refused")
        self.known_as(code, reasons=self.reasons)
        text = "\n  ".join(self.reasons if len(self.reasons) < 2 else ["", *self.reasons])
        super().__init__(culprit, f"refused ({status}): {text}" if status else text, next_move)


class _TemporaryError(Exception):
    """An answer after which the same request may succeed; it may ask for time."""

    def __init__(self, reason: str, response: httpx.Response | None = None) -> None:
        self.response = response
        super().__init__(reason)


class _Manifest(Struct, frozen=True):
    """The end of a page of records."""

    sessions: int
    lines: int
    withheld: int
    cursor: str
    reasons: list[dict[str, str]] = []


class _Problem(Struct, frozen=True, rename="camel"):
    """A refusal in the server's words."""

    place: str = ""
    reasons: tuple[str, ...] = ()
    detail: str = ""
    next_move: str = ""


class _Health(Struct, frozen=True, rename="camel"):
    record_version: int = 2
    """Servers that take records of earlier versions alone do not say it."""


class Receipt(Struct, frozen=True, kw_only=True, rename="camel"):
    """The server's answer to a record that it stored."""

    id: str = ""
    sha256: str = ""
    """Of the bytes that were sent."""
    status: str = "draft"
    not_ready: tuple[str, ...] = ()


class RecorderClient(AbstractContextManager["RecorderClient"]):
    """A client of one server. Use it as a context manager.

    Args:
        url: as ``https://records.example.org``.
        token: it is in no error and no log.
        policy: how often and for how long requests are retried.
        timeout: seconds without any progress after which a request has failed.
        report: receives one line for each retry.

    Raises:
        ConfigurationError: the certificates or the proxy of this machine cannot be used.
    """

    def __init__(
        self,
        url: str,
        token: str,
        policy: RetryPolicy = RETRIES,
        timeout: float = 60.0,
        report: Callable[[str], None] = lambda line: None,
    ) -> None:
        import httpx

        self.url = url
        self._policy = policy
        self._report = report
        try:
            self._http = httpx.Client(
                base_url=url,
                headers={"Authorization": f"Bearer {token}"},
                timeout=timeout,
                trust_env=not is_local(httpx.URL(url).host),
                verify=url.startswith("https:"),
            )
        except OSError as error:
            raise ConfigurationError(
                "SSL_CERT_FILE",
                f"names certificates that cannot be used: {error.strerror or flat(error)}",
                "Correct or unset it, and SSL_CERT_DIR.",
            ) from error
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            # The reason stays out: a proxy's address may contain a password.
            raise ConfigurationError(
                "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY",
                "names no proxy that can be used",
                "As http://host:port, or name this server in NO_PROXY.",
            ) from error

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send(self, record: bytes, meta: Meta) -> Receipt:
        """Upload a record's exact bytes; uploading them again changes nothing on the server.

        Raises:
            RecorderAwayError: after the last attempt.
            RecorderRefusedError: the server does not take the record.
        """
        try:
            receipt = self._request("POST", "/sessions", Receipt, upload_body(record, meta))
        except RecorderRefusedError as error:
            if error.status == 422 and (latest := self._latest_version()) < meta.version:
                reason = f"takes records up to version {latest}; this one is of {meta.version}"
                raise RecorderRefusedError(self.url, [reason], "Upgrade the server.") from error
            raise
        if receipt.id != str(meta.session_id):
            raise RecorderRefusedError(self.url, ["answered for another session"], f"Check {URL}.")
        if receipt.sha256 != hashlib.sha256(record).hexdigest():
            raise RecorderRefusedError(self.url, ["stored other bytes than were sent"])
        return _flattened(receipt)

    def _latest_version(self) -> int:
        """Return the latest version of records that the server takes, as far as it says."""
        try:
            return self._request("GET", "/health", _Health).record_version
        except DebriefError:
            return RECORD_VERSION

    def mark(self, session_id: str, status: Status = "ready") -> Receipt:
        """Mark a stored session as ready for training, or a draft; errors as for ``send``."""
        body = msgspec.json.encode({"status": status})
        return _flattened(self._request("PATCH", f"/sessions/{session_id}", Receipt, body))

    def status_of(self, session_id: str) -> Receipt:
        """Return a stored session's status, for a token of scope ``read``; errors as ``send``."""
        return _flattened(self._request("GET", f"/sessions/{session_id}", Receipt))

    def tasks(self) -> list[Task]:
        """Return all tasks, for a token of scope ``read``; errors as for ``send``."""
        answer = self._request("GET", "/tasks", dict[str, list[object]])
        try:
            return [Task.model_validate(each, strict=False) for each in answer["tasks"]]
        except (KeyError, ValueError):
            raise _not_a_recorder(self.url) from None

    def add_task(self, task: NewTask) -> None:
        """Make a task; the same again changes nothing; errors as for ``send``."""
        body = task.model_dump_json(by_alias=True).encode()
        self._request("POST", "/tasks", dict[str, object], body)

    def ensure_task(self, task_id: str, name: str) -> None:
        """Make a task unless it exists; errors as for ``send``."""
        try:
            self.add_task(NewTask(id=task_id, name=name))
        except RecorderRefusedError as error:
            if error.status != 409:
                raise

    def check_task(self, task_id: str) -> None:
        """Make sure that a task exists, for a token of scope ``read``; errors as for ``send``."""
        if self._request("GET", f"/tasks/{task_id}", dict[str, object]).get("id") != task_id:
            raise _not_a_recorder(self.url)

    def lines(self, form: str, filters: SessionFilter, withheld: dict[str, str]) -> Iterator[bytes]:
        """Yield an export's lines, page by page, each with its end, for a token of scope
        ``export``; errors as for ``send``.

        A page is complete, or fetched again.

        Args:
            form: ``record`` or ``messages``.
            filters: which records.
            withheld: receives why the server withheld a record, by its id.
        """
        params = {"format": form, "manifest": "true", "limit": str(PAGE_SIZE)}
        params |= {"status": filters.status or "", "taskId": filters.task_id or ""}
        params["since"] = filters.since.isoformat() if filters.since else ""
        sessions = PAGE_SIZE
        while sessions == PAGE_SIZE:
            with tempfile.TemporaryFile() as file:
                given = {name: value for name, value in params.items() if value}
                page = self._retry(partial(self._download_page, given, file))
                file.seek(0)
                for _ in range(page.lines):
                    yield file.readline()
            withheld |= {reason["id"]: reason["reason"] for reason in page.reasons}
            sessions, params["cursor"] = page.sessions, page.cursor

    def _download_page(self, params: Mapping[str, str], file: IO[bytes]) -> _Manifest:
        """Write a page to an empty file; return the manifest at its end."""
        file.seek(0)
        file.truncate()
        with self._http.stream("GET", "/export.jsonl", params=params) as answer:
            if answer.status_code != 200:
                answer.read()
                raise self._error_of(answer, "export")
            for chunk in answer.iter_bytes():
                file.write(chunk)
        file.seek(0)
        last, count = b"", -1
        for line in file:
            last, count = line, count + 1
        try:
            page = msgspec.json.decode(last, type=dict[str, _Manifest])["manifest"]
        except (msgspec.DecodeError, KeyError):
            reason = "gave no whole page: the count at its end is missing"
            raise _TemporaryError(reason) from None
        if page.lines != count or page.lines + page.withheld != page.sessions:
            reason = f"gave no whole page: it counts {page.lines} records and sent {count}"
            raise _TemporaryError(reason)
        return page

    def _request(self, method: str, path: str, kind: type[T], body: bytes = b"") -> T:
        """Return the JSON of an answer as ``kind``."""

        def attempt() -> T:
            headers = {"Content-Type": "application/json"}
            answer = self._http.request(method, path, content=body, headers=headers)
            if not answer.is_success:
                raise self._error_of(answer, "read" if method == "GET" else "write")
            try:
                return msgspec.json.decode(answer.content, type=kind)
            except _NOT_JSON:
                raise _not_a_recorder(self.url) from None

        return self._retry(attempt)

    def _retry(self, attempt: Callable[[], T]) -> T:
        import httpx

        temporary = (httpx.RequestError, _TemporaryError)
        retry = retrying(
            self._policy,
            lambda error: isinstance(error, temporary),
            name=self.url,
            describe=_describe,
            report=self._report,
        )
        try:
            return retry(attempt)
        except temporary as error:
            raise RecorderAwayError(self.url, _describe(error)) from error

    def _error_of(self, answer: httpx.Response, scope: str) -> Exception:
        status, problem = answer.status_code, _problem_of(answer)
        if status in TEMPORARY_STATUS:
            return _TemporaryError(f"is busy ({status}): {'; '.join(problem.reasons)}", answer)
        moves = {
            401: f"Check {TOKEN}.",
            403: f"Use a token with the scope {scope}: {TOKEN}.",
            404: MAKE_TASK if problem.place.startswith("task ") else f"Check {URL}.",
        }
        otherwise = problem.next_move or ("" if answer.is_client_error else f"Check {URL}.")
        move = moves.get(status, otherwise)
        return RecorderRefusedError(self.url, problem.reasons, move, status)


def client_of(
    settings: Settings,
    scope: Literal["read", "write", "export"],
    policy: RetryPolicy = RETRIES,
    timeout: float = 60.0,
    report: Callable[[str], None] = lambda line: None,
) -> RecorderClient:
    """Return a client of the configured server; nothing is sent to it yet.

    An address of another machine that is not encrypted is reported.

    Args:
        settings: of this machine.
        scope: that the token needs, for the advice to who has none.
        policy: as of ``RecorderClient``, and so are the others.
        timeout: the same.
        report: receives one line for that, and for each retry.

    Raises:
        ConfigurationError: the server's address or its token is missing or wrong.
    """
    import httpx

    url, token = settings.recorder_url, settings.recorder_token
    if not url:
        move = "Set it, or write a file: --local FILE"
        raise ConfigurationError(URL, "is not set", move).known_as("api-not-set")
    try:
        parts = httpx.URL(url)
        parts.raw_host.decode("ascii").encode("idna")
        is_http = parts.scheme in ("http", "https") and not (parts.userinfo or parts.query)
        is_host = parts.host and (parts.port or 0) < 1 << 16 and not any(map(str.isspace, url))
        problem = "" if is_http and is_host else "is no plain address of a server"
    except (httpx.InvalidURL, UnicodeError) as error:
        problem = f"is no address: {flat(error)}"
    if problem:
        raise ConfigurationError(URL, problem, _ADDRESS).known_as("api-wrong")
    if not token:
        move = f"Set it to a token with the scope {scope}: debrief tokens create NAME"
        missing = ConfigurationError(TOKEN, "is not set", f"{move} --scope {scope}")
        raise missing.known_as("token-missing")
    if not token.isascii() or not token.isprintable() or " " in token:
        wrong = ConfigurationError(TOKEN, "is no token: it has characters that none has")
        raise wrong.known_as("token-wrong")
    if parts.scheme == "http" and not is_local(parts.host):
        report(f"{url}: whoever is on the way can read the token and the records. Use https.")
    return RecorderClient(url.rstrip("/"), token, policy, timeout, report)


def is_local(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def _problem_of(answer: httpx.Response) -> _Problem:
    """Return why a request was refused, on lines without control characters."""
    try:
        problem = msgspec.json.decode(answer.content, type=_Problem)
    except _NOT_JSON:
        problem = _Problem()
    place = flat(problem.place)
    reasons = [f"{place}: {flat(reason)}" if place else flat(reason) for reason in problem.reasons]
    said = flat(problem.detail or answer.text) or answer.reason_phrase or "no reason given"
    return _Problem(place, tuple(reasons or [said]), next_move=flat(problem.next_move))


def _flattened(receipt: Receipt) -> Receipt:
    not_ready = tuple(map(flat, receipt.not_ready))
    return structs.replace(receipt, status=flat(receipt.status), not_ready=not_ready)


def _not_a_recorder(url: str) -> RecorderRefusedError:
    return RecorderRefusedError(url, ["gave an answer that is not a recorder's"], f"Check {URL}.")


def _describe(error: BaseException) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException):
        return "cannot be reached: no answer in time"
    if isinstance(error, httpx.RequestError):
        return f"cannot be reached: {flat(error) or type(error).__name__}"
    return flat(error)
