"""The API's own document, and the service and its tokens held against it."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from typing import Any
from uuid import uuid4

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from schemathesis import CheckContext, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from debrief.recorder.contracts import Record
from debrief.recorder.service.app import OPEN_PATHS, create_app
from debrief.recorder.storage.rows import SCOPES
from tests.recorder.records import as_json, build
from tests.recorder.service.helpers import NO_TLS, Api, assert_problem, body_of
from tests.waiting import LONG


def rejected(
    context: CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> bool | None:
    """Like the check of that kind; a text too long for its field may be one for the service."""
    if response.status_code == 413:
        return None
    found: bool | None = negative_data_rejection(context, response, case)
    return found


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    rejected,
]


@pytest.fixture(scope="module")
def document(api: Api) -> Any:
    return httpx.get(f"{api.url}/openapi.json", timeout=LONG).json()


OPERATIONS = {
    found.ok().label: found.ok()
    for found in schemathesis.openapi.from_dict(
        create_app(None).openapi()  # type: ignore[arg-type]
    ).get_all_operations()
}


@pytest.mark.parametrize("label", OPERATIONS)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_is_answered_in_a_way_that_the_document_does_not_tell(
    api: Api, label: str, mode: GenerationMode
) -> None:
    headers = {"Authorization": f"Bearer {api.tokens['all']}"}

    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(OPERATIONS[label].as_strategy(generation_mode=mode))
    def answered(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=api.url, headers=headers, checks=CHECKS, timeout=LONG)

    try:
        answered()
    except Unsatisfiable:
        assert label == "GET /health"


def test_every_refusal_is_documented_as_the_one_problem(document: Any) -> None:
    for methods in document["paths"].values():
        for operation in methods.values():
            for status in ("4XX", "5XX"):
                content = operation["responses"][status]["content"]["application/problem+json"]
                assert content["schema"]["$ref"].endswith("/ProblemDetails")


def test_all_but_health_ask_for_a_token(document: Any) -> None:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            [given] = operation.get("security") or [{}]
            assert given.keys() == (set() if path == "/health" else {"token"})
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_the_document_takes_a_real_upload_and_a_real_record(document: Any) -> None:
    import json

    definitions = {"components": document["components"]}
    upload = {"$ref": "#/components/schemas/Upload", **definitions}
    record = {"$ref": "#/components/schemas/Record", **definitions}

    Draft202012Validator(upload).validate(json.loads(body_of(build())))
    Draft202012Validator(record).validate(as_json(build()))
    assert not Draft202012Validator(record).is_valid({"messages": []})
    assert Record.__name__ in document["components"]["schemas"]


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


@pytest.fixture(params=NEEDED, ids=" ".join)
def route(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


def _ask(api: Api, route: tuple[str, str], headers: list[tuple[str, str]]) -> httpx.Response:
    path = re.sub(r"\{\w+\}", str(uuid4()), route[1])
    return httpx.request(
        route[0], api.url + path, headers=headers, content=b"{", timeout=LONG, verify=NO_TLS
    )


def test_every_route_says_which_scope_it_needs(document: Any) -> None:
    found = {(method.upper(), path) for path, of in document["paths"].items() for method in of}
    assert {route for route in found if route[1] not in OPEN_PATHS} == set(NEEDED)


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


def test_a_token_without_the_scope_is_refused_before_a_body_comes(api: Api) -> None:
    connection = HTTPConnection("127.0.0.1", api.port, timeout=LONG)
    connection.putrequest("POST", "/sessions")
    connection.putheader("Authorization", f"Bearer {api.tokens['read']}")
    connection.putheader("Content-Length", "1000")
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
def test_what_is_open_tells_nothing_of_the_data(api: Api, path: str) -> None:
    answer = httpx.get(api.url + path, timeout=LONG)

    assert answer.status_code == 200
    assert "cart" not in answer.text
