"""Records to a server: patient with a busy one, plain about a refusal."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from debrief.errors import ConfigurationError
from debrief.recorder.contracts import Meta, NewTask
from debrief.recorder.remote import (
    BUSY,
    TOKEN,
    URL,
    Patience,
    Remote,
    ServerAwayError,
    ServerRefusedError,
    flat,
    object_of,
    remote_of,
    words_of,
)
from debrief.settings import Settings

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

_LARGEST_ANSWER = 1_000_000
_PIECE = 65_536
_MOVES: Mapping[int, str] = {
    401: f"Check {TOKEN}.",
    403: f"Use a token with the scope write: {TOKEN}.",
    404: f"Check {URL}.",
}
_NO_TASK = "Make it there: debrief record upload --create-task NAME"


class Receipt(Struct, frozen=True, kw_only=True):
    """What the server said of a record that it stored."""

    status: str
    not_ready: tuple[str, ...] = ()


class RecorderServer:
    """A server that records are sent to.

    Args:
        url: as ``https://records.example.org``.
        token: with the scope ``write``; it is in no error and no log.
        patience: how long it is waited for.
        tell: is told in words what another attempt is waited for with.
    """

    def __init__(
        self,
        url: str,
        token: str,
        patience: Patience | None = None,
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        remote = Remote(url.rstrip("/"), token)
        self.url, self.is_exposed = remote.url, remote.is_exposed
        self._patience = patience or Patience()
        self._tell = tell
        self._http = remote.client(self._patience.timeout)

    def __enter__(self) -> RecorderServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def send(self, record: bytes, meta: Meta) -> Receipt:
        """Send a record's exact bytes; sending them again changes nothing on the server.

        Raises:
            ServerAwayError: after the last attempt.
            ServerRefusedError: it does not take the record.
        """
        answer = self._call("POST", "/sessions", upload_body(record, meta))
        if answer.get("id") != str(meta.session_id):
            raise ServerRefusedError(self.url, ["answered for another session"], f"Check {URL}.")
        if answer.get("sha256") != hashlib.sha256(record).hexdigest():
            raise ServerRefusedError(self.url, ["stored other bytes than were sent"])
        return _receipt(answer)

    def mark_ready(self, session_id: str) -> Receipt:
        """Mark a stored session ready for training; errors as for ``send``."""
        return _receipt(self._call("PATCH", f"/sessions/{session_id}", b'{"status":"ready"}'))

    def ensure_task(self, task_id: str, name: str) -> None:
        """Make a task unless it is there; errors as for ``send``."""
        body = NewTask(id=task_id, name=name).model_dump_json(by_alias=True).encode()
        try:
            self._call("POST", "/tasks", body)
        except ServerRefusedError as error:
            if error.status != 409:
                raise

    def has_task(self, task_id: str) -> bool:
        """Return whether a task is there; the token needs the scope ``read``. Errors as for
        ``send``."""
        try:
            found = self._call("GET", f"/tasks/{task_id}", b"").get("id")
        except ServerRefusedError as error:
            if error.next_move != _NO_TASK:
                raise
            return False
        if found != task_id:
            raise _not_its_own(self.url)
        return True

    def _call(self, method: str, path: str, body: bytes) -> Mapping[str, Any]:
        import httpx
        from tenacity import (
            Retrying,
            retry_if_exception_type,
            stop_after_attempt,
            stop_after_delay,
        )

        patience = self._patience
        retrying = Retrying(
            retry=retry_if_exception_type((httpx.RequestError, _BusyError)),
            stop=stop_after_attempt(patience.attempts) | stop_after_delay(patience.in_all),
            wait=self._wait,
            sleep=patience.sleep,
            before_sleep=self._tell_of_wait,
            reraise=True,
        )
        try:
            return retrying(self._once, method, path, body)
        except (_BusyError, httpx.RequestError) as error:
            raise ServerAwayError(self.url, _in_words(error)) from error

    def _once(self, method: str, path: str, body: bytes) -> Mapping[str, Any]:
        answer = self._asked(method, path, body)
        if answer.status_code in BUSY:
            asked = _seconds(answer.headers.get("Retry-After", ""))
            if asked is not None and asked > self._patience.longest_wait:
                raise ServerAwayError(
                    self.url, f"asks to be left alone for {asked:,.0f} s", "Try again after that."
                )
            said = "; ".join(words_of(answer))
            raise _BusyError(f"is busy ({answer.status_code}): {said}", asked)
        if not answer.is_success:
            raise ServerRefusedError(self.url, words_of(answer), _move(answer), answer.status_code)
        told = object_of(answer)
        if not told:
            raise _not_its_own(self.url)
        return told

    def _asked(self, method: str, path: str, body: bytes) -> httpx.Response:
        """Return an answer that came within the time limit, however slowly it came."""
        import httpx

        until = time.monotonic() + self._patience.timeout
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        pieces = _in_time(_pieces(body), until)
        with self._http.stream(method, path, content=pieces, headers=headers) as answer:
            data = b""
            for piece in _in_time(answer.iter_bytes(), until):
                data += piece
                if len(data) > _LARGEST_ANSWER:
                    raise ServerRefusedError(self.url, ["its answer has no end"], f"Check {URL}.")
        told = {"Retry-After": answer.headers.get("Retry-After", "")}
        return httpx.Response(answer.status_code, headers=told, content=data)

    def _tell_of_wait(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        if error is not None:
            self._tell(f"{self.url}: {_in_words(error)}; again in {state.upcoming_sleep:.0f} s")

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, _BusyError) and error.asked is not None:
            return error.asked
        wait = self._patience.first_wait * 2.0 ** (state.attempt_number - 1)
        return min(wait, self._patience.longest_wait)


def _pieces(body: bytes) -> Iterator[bytes]:
    return (body[start : start + _PIECE] for start in range(0, len(body), _PIECE))


def _in_time(pieces: Iterable[bytes], until: float) -> Iterator[bytes]:
    import httpx

    for piece in pieces:
        if time.monotonic() > until:
            raise httpx.TimeoutException("took too long")
        yield piece


class _BusyError(Exception):
    def __init__(self, said: str, asked: float | None) -> None:
        super().__init__(said)
        self.said, self.asked = said, asked


def upload_body(record: bytes, meta: Meta) -> bytes:
    """Return the body of ``POST /sessions``, in which a record's bytes stand as they are."""
    told = {
        "id": str(meta.session_id),
        "taskId": meta.task_id,
        "repoName": meta.repo_name,
        "repoRemote": meta.repo_remote,
        "branch": meta.branch,
        "baseRef": meta.base_ref,
        "createdAt": meta.stopped_at.isoformat(),
    }
    return b'%s,"record":%s}' % (msgspec.json.encode(told)[:-1], record)


def server_of(
    settings: Settings,
    patience: Patience | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> RecorderServer:
    """Return the configured server; nothing is sent to it yet.

    Args:
        settings: of this machine.
        patience: how long it is waited for.
        tell: as of ``RecorderServer``.

    Raises:
        ConfigurationError: its address or its token is missing or wrong.
    """
    remote = remote_of(settings, "write")
    if remote is None:
        raise ConfigurationError(URL, "is not set", "Set it, or write a file: --local FILE")
    return RecorderServer(remote.url, remote.token, patience, tell)


def _move(answer: httpx.Response) -> str:
    told = flat(object_of(answer).get("nextMove") or "")
    if answer.status_code == 404 and str(object_of(answer).get("place")).startswith("task "):
        return _NO_TASK
    if answer.status_code in _MOVES:
        return _MOVES[answer.status_code]
    return told or ("" if answer.is_client_error else f"Check {URL}.")


def _receipt(answer: Mapping[str, Any]) -> Receipt:
    reasons = answer.get("notReady")
    return Receipt(
        status=flat(answer.get("status", "draft")),
        not_ready=tuple(map(flat, reasons)) if isinstance(reasons, list) else (),
    )


def _not_its_own(url: str) -> ServerRefusedError:
    return ServerRefusedError(url, ["gave an answer that is not its own"], f"Check {URL}.")


def _in_words(error: BaseException) -> str:
    import httpx

    if isinstance(error, _BusyError):
        return error.said
    if isinstance(error, httpx.TimeoutException):
        return "cannot be reached: no answer in time"
    return f"cannot be reached: {flat(error) or type(error).__name__}"


def _seconds(text: str) -> float | None:
    if not text:
        return None
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
