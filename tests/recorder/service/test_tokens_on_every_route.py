"""Wrong, missing, revoked and too narrow tokens, on every route that there is."""

from __future__ import annotations

import re
from uuid import uuid4

import httpx
import pytest
from starlette.routing import Route

from debrief.recorder.service.app import create_app
from debrief.recorder.storage.rows import SCOPES
from tests.recorder.service.helpers import NO_TLS, Api, assert_problem
from tests.waiting import LONG

OPEN_PATHS = frozenset({"/health", "/openapi.json"})
"""What is answered without a token."""
NEEDED = {
    ("GET", "/tasks"): "read",
    ("POST", "/tasks"): "write",
    ("POST", "/sessions"): "write",
    ("GET", "/sessions"): "read",
    ("GET", "/tasks/{id}"): "read",
    ("GET", "/sessions/{id}"): "read",
    ("GET", "/sessions/{id}/record"): "export",
    ("PATCH", "/sessions/{id}"): "write",
    ("GET", "/export.jsonl"): "export",
    ("POST", "/benchmarks"): "write",
    ("GET", "/benchmarks"): "read",
}


def _routes() -> list[tuple[str, str]]:
    app = create_app(None)  # type: ignore[arg-type]
    found = []
    for route in app.routes:
        assert isinstance(route, Route), f"what is {route}?"
        if route.path not in OPEN_PATHS:
            found += [(method, route.path) for method in sorted(route.methods or ())]
    return found


ROUTES = _routes()


@pytest.fixture(params=ROUTES, ids=[" ".join(route) for route in ROUTES])
def route(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


def _ask(api: Api, route: tuple[str, str], headers: list[tuple[str, str]]) -> httpx.Response:
    path = re.sub(r"\{\w+\}", str(uuid4()), route[1])
    return httpx.request(
        route[0], api.url + path, headers=headers, content=b"{", timeout=LONG, verify=NO_TLS
    )


def test_every_route_says_which_scope_it_needs() -> None:
    assert set(ROUTES) == set(NEEDED)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer debrief_{'A' * 43}",
        f"Bearer {'A' * 5_000}",
        "Bearer debrief_' OR 1=1 --",
        "Basic ZGVicmllZjpkZWJyaWVm",
    ],
    ids=["missing", "empty", "bare", "short", "unknown", "long", "sql", "basic"],
)
def test_no_route_answers_without_a_token_it_knows(
    api: Api, route: tuple[str, str], header: str | None
) -> None:
    headers = [] if header is None else [("Authorization", header)]

    answer = _ask(api, route, headers)

    assert_problem(answer, 401, "debrief tokens create")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_no_route_answers_a_revoked_token_or_two_of_them(api: Api, route: tuple[str, str]) -> None:
    token, secret = api.store.add_token(f"gone-{uuid4().hex[:8]}", list(SCOPES))
    headers = [("Authorization", f"Bearer {secret}"), ("Content-Type", "application/json")]
    assert _ask(api, route, headers).status_code != 401
    assert_problem(_ask(api, route, [headers[0], headers[0]]), 401)

    api.store.revoke_token(token.name)

    assert_problem(_ask(api, route, headers), 401, "revoked")


def test_every_route_needs_its_scope_and_no_other(api: Api, route: tuple[str, str]) -> None:
    for scope in SCOPES:
        answer = _ask(api, route, [("Authorization", f"Bearer {api.tokens[scope]}")])

        if scope == NEEDED[route]:
            assert answer.status_code not in (401, 403), answer.text
        else:
            assert_problem(answer, 403, f"--scope {NEEDED[route]}")


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
def test_what_is_open_tells_nothing_of_the_data(api: Api, path: str) -> None:
    answer = httpx.get(api.url + path)

    assert answer.status_code == 200
    assert "cart" not in answer.text
