"""What to make of an object store's failures: wait for those that pass, name those that stay."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay
from tenacity.wait import wait_random_exponential

from debrief.errors import ConfigurationError, DebriefError, LakeError

T = TypeVar("T")

PATIENCE = 180.0
"""Seconds that a store may be away without costing a run anything."""
LONGEST_PAUSE = 10.0
"""Seconds between two attempts, at most."""
_PASSING_CODES = frozenset(
    {"InternalError", "OperationAborted", "RequestTimeout", "ServiceUnavailable", "SlowDown"}
)
_PASSING_ERRNOS = frozenset(
    {
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.EREMOTEIO,
        errno.ETIMEDOUT,
    }
)
_TOO_MANY_REQUESTS = 429
_ANY_SERVER_ERROR = 500
_NO_CREDENTIALS = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "NoAuthTokenError", "DefaultCredentialsError"}
)
_OUT_OF_REACH = frozenset(
    {"ConnectionError", "HTTPClientError", "ClientConnectionError", "ClientPayloadError"}
)
"""Of botocore and aiohttp, whose errors are not derived from Python's, by name."""

_log = logging.getLogger("debrief.progress")


class Patience:
    """Carries out requests, however long the store is away, up to a limit.

    Args:
        url: of the store, for messages.
        seconds: how long a request is tried again.
    """

    def __init__(self, url: str, seconds: float = PATIENCE) -> None:
        self._url = url
        self._seconds = seconds

    def __call__(self, request: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return what a request returns.

        Raises:
            FileNotFoundError: the object is not there.
            ConfigurationError: the bucket, the credentials or the rights are missing.
            LakeError: the store is still away, or refuses.
        """
        try:
            return self.tries()(request, *arguments, **named)
        except DebriefError:
            raise
        except Exception as error:
            told = self._told(error)
            if told is None:
                raise
            raise told from error

    def tries(self) -> Retrying:
        """Return how often a request is tried, and with which pauses."""
        return Retrying(
            retry=retry_if_exception(is_passing),
            stop=stop_after_delay(self._seconds),
            wait=wait_random_exponential(multiplier=0.2, max=LONGEST_PAUSE),
            before_sleep=self._tell,
            reraise=True,
        )

    def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        pause = state.next_action.sleep if state.next_action is not None else 0.0
        _log.warning(
            "%s does not answer (%s): tried again in %.1f s, for %.0f s more",
            self._url,
            _reason(error) if error is not None else "no reason",
            pause,
            max(0.0, self._seconds - (state.seconds_since_start or 0.0)),
        )

    def _told(self, error: Exception) -> DebriefError | None:
        """Return an error in people's words; None for that of an object that is not there."""
        code, status = _code(error)
        if code == "NoSuchBucket":
            return ConfigurationError(
                self._url, "the bucket is not there", "Create it, or name another one."
            )
        if isinstance(error, FileNotFoundError):
            return None
        if _NO_CREDENTIALS & _kinds(error):
            return ConfigurationError(
                self._url,
                "no credentials for it were found",
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role.",
            )
        if isinstance(error, PermissionError) or status in (401, 403):
            return ConfigurationError(
                self._url,
                f"access was denied ({_reason(error)})",
                "Check the key, and its rights to list, read, write and delete there.",
            )
        if _replaced(error):
            return LakeError(
                self._url, "an object was written anew while it was read", "Run the same again."
            )
        if is_passing(error):
            return LakeError(
                self._url,
                f"was away for {self._seconds:.0f} s ({_reason(error)})",
                "What was finished stays; run the same again once it is back.",
            )
        return LakeError(self._url, _reason(error), "The store's own log tells more.")


def is_passing(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, DebriefError | PermissionError | FileNotFoundError) or _replaced(error):
        return False
    code, status = _code(error)
    if code in _PASSING_CODES or status >= _ANY_SERVER_ERROR or status == _TOO_MANY_REQUESTS:
        return True
    if status:
        return False
    if isinstance(error, TimeoutError | ConnectionError) or _OUT_OF_REACH & _kinds(error):
        return True
    return isinstance(error, OSError) and error.errno in _PASSING_ERRNOS


def _replaced(error: BaseException) -> bool:
    """Return whether the version that was being read is no longer there."""
    return "FileExpired" in _kinds(error) or _code(error)[0] == "PreconditionFailed"


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _code(error: BaseException) -> tuple[str, int]:
    """Return what a store said: its code, and the status of the response; else ("", 0)."""
    for each in (error, error.__cause__):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return str(response.get("Error", {}).get("Code", "")), int(status)
    return "", 0


def _reason(error: BaseException) -> str:
    code, _ = _code(error)
    text = " ".join(str(error).split()).rstrip(".")
    return ": ".join(part for part in (code, text) if part) or type(error).__name__
