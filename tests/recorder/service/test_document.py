"""The API's own document, and the service held against it."""

from __future__ import annotations

from typing import Any

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
from debrief.recorder.service.app import create_app
from tests.recorder.records import as_json, build
from tests.recorder.service.helpers import Api, body_of
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
    return httpx.get(f"{api.url}/openapi.json").json()


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
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            statuses = set(operation["responses"])
            expected = {"503"} if path == "/health" else {"401", "403", "422", "429", "503"}
            assert expected <= statuses, (path, method)
            if "requestBody" in operation:
                assert {"400", "413", "415"} <= statuses, (path, method)
            for status, answer in operation["responses"].items():
                if status >= "400":
                    content = answer["content"]["application/problem+json"]
                    assert content["schema"]["$ref"].endswith("/ProblemDetails")


def test_all_but_health_ask_for_a_token(document: Any) -> None:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation.get("security", []) == ([] if path == "/health" else [{"token": []}])
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
