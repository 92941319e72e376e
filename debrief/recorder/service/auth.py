"""Who may do what: bearer tokens with scopes, and how many requests a second each may send."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from debrief.recorder.service.problems import RefusedError

if TYPE_CHECKING:
    from debrief.recorder.storage.rows import Scope

_SECRET = re.compile(r"[A-Za-z0-9_.~+/=-]{16,256}")
_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="Made with `debrief tokens create NAME --scope read --scope write --scope export`.",
)


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


def needs(scope: Scope) -> Any:
    """Return a dependency that refuses a request without a token of a scope.

    It comes before anything else of the request is read, so that a stranger learns nothing from
    how a body or a query value is answered.
    """

    def check_token(
        request: Request,
        _documented: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> None:
        service = request.app.state.service
        token = service.store.find_token(_secret_of(request))
        if token is None:
            raise _unknown("is not one of this service's, or was revoked")
        request.state.token_name = token.name
        if scope not in token.scopes:
            move = f"Make one with: debrief tokens create NAME --scope {scope}"
            raise RefusedError(403, "token", f"has no {scope} scope", move)
        seconds = service.rate_limit.take(token.name)
        if seconds:
            raise RefusedError(
                429,
                "token",
                "has sent too many requests",
                f"Try again in {seconds} seconds.",
                {"Retry-After": str(seconds)},
            )
        _check_query(request)

    return Depends(check_token)


def _secret_of(request: Request) -> str:
    values = request.headers.getlist("authorization")
    if not values:
        raise _unknown("is missing")
    kind, _, secret = values[0].partition(" ")
    if len(values) > 1 or kind.lower() != "bearer" or not _SECRET.fullmatch(secret.strip()):
        raise _unknown("is not one of this service's, or was revoked")
    return secret.strip()


def _unknown(reason: str) -> RefusedError:
    move = "Send: Authorization: Bearer TOKEN. Make one with: debrief tokens create NAME"
    return RefusedError(401, "token", reason, move, {"WWW-Authenticate": 'Bearer realm="debrief"'})


def _check_query(request: Request) -> None:
    """Refuse a query that could be read in two ways."""
    try:
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise RefusedError(422, "query", "is not UTF-8", "Escape its values as UTF-8.") from None
    names = [name for name, _ in request.query_params.multi_items()]
    repeated = [f"{name}: is given twice" for name in set(names) if names.count(name) > 1]
    if repeated:
        raise RefusedError(422, "query", sorted(repeated), "Give each once.")
