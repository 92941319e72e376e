"""Who may ask, for what and how often: bearer tokens with scopes and a rate."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable
from threading import Lock
from time import monotonic
from typing import Any

from anyio.to_thread import run_sync
from fastapi import Request, Response, Security
from fastapi.security import HTTPBearer
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    AuthenticationError,
    SimpleUser,
)
from starlette.requests import HTTPConnection

from debrief.errors import DebriefError
from debrief.recorder.service.problems import RefusedError, refuse
from debrief.recorder.storage.rows import (
    Scope,
    Token,
)

_SECRET = re.compile(r"[A-Za-z0-9_.~+/=-]{16,256}")


class RateLimit:
    """A bucket of requests for each token, filled at a steady rate.

    Args:
        rate: requests a second, over time.
        burst: requests at once.
        now: a clock.
    """

    def __init__(self, rate: float, burst: int, now: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._now = now
        self._levels: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def take(self, name: str) -> int:
        """Count a request; return 0, or in how many whole seconds it is allowed."""
        with self._lock:
            now = self._now()
            level, then = self._levels.get(name, (self._burst, now))
            level = min(self._burst, level + (now - then) * self._rate)
            allowed = level >= 1
            self._levels[name] = (level - 1 if allowed else level, now)
        return 0 if allowed else max(1, math.ceil((1 - level) / self._rate))


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="Made with `debrief tokens create NAME --scope read --scope write --scope export`.",
)


class BearerTokens(AuthenticationBackend):
    """Refuses a request without a token before anything of its body is read.

    Args:
        open_paths: that anybody may ask for.
    """

    def __init__(self, open_paths: Collection[str]) -> None:
        self._open_paths = open_paths

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        """Return a token's scopes and name; None where none is needed."""
        if conn.url.path in self._open_paths:
            return None
        try:
            token = await run_sync(_token_of, conn)
        except DebriefError as error:
            raise AuthenticationError from error
        return AuthCredentials(token.scopes), SimpleUser(token.name)


def _token_of(conn: HTTPConnection) -> Token:
    service, headers = conn.app.state.service, conn.headers.getlist("authorization")
    kind, _, secret = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    is_secret = kind.lower() == "bearer" and _SECRET.fullmatch(secret.strip())
    token: Token | None = service.store.find_token(secret.strip()) if is_secret else None
    if token is None:
        raise RefusedError(
            401,
            "token",
            "is not one of this service's, or was revoked" if headers else "is missing",
            "Send: Authorization: Bearer TOKEN. Make one with: debrief tokens create NAME",
            {"WWW-Authenticate": 'Bearer realm="debrief"'},
        )
    if seconds := service.rate_limit.take(token.name):
        raise RefusedError(
            429,
            "token",
            "has sent too many requests",
            f"Try again in {seconds} seconds.",
            {"Retry-After": str(seconds)},
        )
    return token


def refuse_token(conn: HTTPConnection, error: AuthenticationError) -> Response:
    """Answer a request whose token does not do."""
    assert isinstance(error.__cause__, DebriefError)
    return refuse(conn, error.__cause__)


def needs(scope: Scope) -> Any:
    """Return what has a route ask for a scope, which ``check_scopes`` sees to."""
    return Security(_bearer, scopes=[scope])


def check_scopes(request: Request, needed: Iterable[str]) -> None:
    """Refuse a request whose token lacks a scope.

    Raises:
        RefusedError: names it.
    """
    for scope in needed:
        if scope not in request.auth.scopes:
            move = f"Make one with: debrief tokens create NAME --scope {scope}"
            raise RefusedError(403, "token", f"has no {scope} scope", move)
