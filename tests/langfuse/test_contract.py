"""The contract: every request that we send is one that the server's own document allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from debrief.langfuse.fetcher import SessionFetcher
from debrief.langfuse.listing import list_session, list_sessions
from debrief.langfuse.scores import WriteOptions, write_scores
from tests.langfuse.scenario import client_of, scored
from tests.langfuse.server import LangfuseServer, Mode, Request
from tests.langfuse.test_fetcher import START, Recorder

DOCUMENT = Path(__file__).parents[2].parent / "shared" / "langfuse" / "openapi-4.16.0.yml"

READ_BY_NEWER_SERVERS = {"timestamp"}
"""Fields of a score that the SDK of newer servers sends and version 4.16 passes over."""


def requests_of(mode: Mode) -> list[Request]:
    """Everything that the project asks a server for, once."""
    with LangfuseServer(mode) as server:
        Recorder(server).trace("t1", "go", "Done.")
        client = client_of(server)
        list_sessions(client, START, START)
        list_session(client, "s1")
        SessionFetcher(client).fetch_session("s1", (START, START + timedelta(hours=1)))
        first = write_scores(client_of(server), [scored()])
        trace = WriteOptions(score_target="trace")
        write_scores(client_of(server), [scored(model="another")], first, options=trace)
    return server.requests


def operation_of(document: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
    for template, operations in document["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, request.path) and request.method.lower() in operations:
            found: Mapping[str, Any] = operations[request.method.lower()]
            return found
    raise AssertionError(f"{request.method} {request.path} is not in the document")


def check(document: Mapping[str, Any], request: Request) -> None:
    operation = operation_of(document, request)
    parameters = {p["name"]: p for p in operation.get("parameters", ()) if p["in"] == "query"}
    for name, value in request.query.items():
        kind = parameters[name]["schema"].get("type")
        assert kind != "integer" or value.isdigit(), (request.path, name, value)
    if "requestBody" not in operation:
        assert request.body is None
        return
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    whole = {**schema, "components": document["components"]}
    body = request.body
    Draft202012Validator(whole).validate(body)
    name = schema["$ref"].rsplit("/", 1)[-1]
    known = set(document["components"]["schemas"][name]["properties"])
    assert set(body) <= known | READ_BY_NEWER_SERVERS


@pytest.mark.parametrize("mode", ["events_only", "dual", "old"])
def test_every_request_is_one_that_the_document_allows(mode: Mode) -> None:
    requests = requests_of(mode)
    assert {request.method for request in requests} == {"GET", "POST", "DELETE"}
    document = yaml.load(DOCUMENT.read_text(), yaml.CSafeLoader) if DOCUMENT.is_file() else None
    for request in requests:
        is_question = request.method == "POST" and isinstance(request.body, list)
        if document is not None and not is_question:
            check(document, request)


def test_scores_are_offered_as_a_list_before_they_are_sent_one_by_one() -> None:
    bodies = [r.body for r in requests_of("dual") if r.path.endswith("/public/scores")]
    lists = [body for body in bodies if isinstance(body, list)]
    assert len(lists) == 2
    objects = {body["id"]: body for body in bodies if isinstance(body, dict)}
    assert lists[0] == [objects[body["id"]] for body in lists[0]]
