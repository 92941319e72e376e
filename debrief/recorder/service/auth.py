"""Who may do what: bearer tokens, each with scopes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, NoReturn

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from debrief.recorder.service.problems import RefusedError
from debrief.recorder.service.state import Service, service_of
from debrief.recorder.service.values import check_names
from debrief.recorder.storage.tokens import digest_of

if TYPE_CHECKING:
    from debrief.recorder.storage.rows import Scope, Token

OPEN_PATHS = frozenset({"/health", "/openapi.json"})
"""What is answered without a token."""
_SECRET = re.compile(r"[A-Za-z0-9_.~+/=-]{16,256}")
_MAKE = "Send: Authorization: Bearer TOKEN. Make one with: debrief tokens create NAME"

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="Made with `debrief tokens create NAME --scope read --scope write --scope export`.",
)


def needs(scope: Scope) -> Callable[..., Awaitable[Token]]:
    """Return a dependency that lets a request pass only with a token of a scope.

    It comes before anything else is read of the request, so that a stranger learns nothing from
    what a body or a query value is answered with.
    """

    async def token_of(
        request: Request,
        _documented: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    ) -> Token:
        service = service_of(request)
        token = await service.work.do(service.store.find_token, _secret_of(request))
        if token is None:
            raise not_known()
        _check(request, token, scope)
        return token

    return token_of


async def admit(request: Request, scope: Scope) -> str:
    """Return the secret of a request whose token had a scope a moment ago.

    Whoever takes the request further looks the token up once more, together with what it does
    with the database, and calls ``refuse`` where it is not good any more.

    Raises:
        RefusedError: as of ``needs``.
    """
    service = service_of(request)
    secret = _secret_of(request)
    digest = digest_of(secret)
    token = service.admitted.find(digest)
    if token is None:
        token = await service.work.do(service.store.find_token, secret)
        if token is None:
            raise not_known()
        service.admitted.keep(digest, token)
    _check(request, token, scope)
    return secret


def refuse(service: Service, secret: str) -> NoReturn:
    """Forget a token that is not good any more.

    Raises:
        RefusedError: 401.
    """
    service.admitted.forget(digest_of(secret))
    raise not_known()


def _check(request: Request, token: Token, scope: Scope) -> None:
    """Let a token pass that has a scope and is not over its rate, and only with known names."""
    request.state.token_name = token.name
    if scope not in token.scopes:
        raise RefusedError(
            403,
            "token",
            f"has no {scope} scope",
            f"Make one with: debrief tokens create NAME --scope {scope}",
        )
    allowance = service_of(request).buckets.take(token.name)
    if not allowance.granted:
        raise RefusedError(
            429,
            "token",
            "has sent too many requests",
            f"Try again in {allowance.retry_after} seconds.",
            {"Retry-After": str(allowance.retry_after)},
        )
    check_names(request)


def not_known() -> RefusedError:
    """Return what is told of a token that is none, or not any more."""
    return _unknown("is not one of this service's, or was revoked")


def _secret_of(request: Request) -> str:
    values = request.headers.getlist("authorization")
    if not values:
        raise _unknown("is missing")
    kind, _, secret = values[0].partition(" ")
    secret = secret.strip()
    if len(values) > 1 or kind.lower() != "bearer" or not _SECRET.fullmatch(secret):
        raise not_known()
    return secret


def _unknown(reason: str) -> RefusedError:
    return RefusedError(401, "token", reason, _MAKE, {"WWW-Authenticate": 'Bearer realm="debrief"'})
