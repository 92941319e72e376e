"""The contract: every request that we send is one that the server's own document allows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from debrief.langfuse.fetcher import FIELDS, SessionFetcher, fetch_rows
from debrief.langfuse.listing import Listing, list_session
from debrief.langfuse.outgoing import ScoreReceipt, outgoing_scores
from debrief.langfuse.scores import WriteOptions, write_scores
from tests.langfuse.scenario import START, Recorder, client_of, scored
from tests.langfuse.server import LangfuseServer, Mode, Request, Wire

DOCUMENT = Path(__file__).parents[2].parent / "shared" / "langfuse" / "openapi-4.16.0.yml"

READ_BY_NEWER_SERVERS = {"timestamp"}
"""Fields of a score that the SDK of newer servers sends and version 4.16 passes over."""


def requests_of(mode: Mode, wire: Wire = "object") -> list[Request]:
    """Everything that the project asks a server for, once."""
    with LangfuseServer(mode, wire) as server:
        Recorder(server).trace("t1", "go", "Done.")
        client = client_of(server)
        Listing.between(client, START, START + timedelta(hours=1), {})
        list_session(client, "s1")
        SessionFetcher(client).fetch_session("s1", (START, START + timedelta(hours=1)))
        former = ScoreReceipt(
            score_id="by-an-earlier-version",
            session_id="s1",
            name="tool_mastery",
            value="0.5",
            status="written",
            host=server.host,
        )
        (score, *_) = outgoing_scores(scored())
        said = {"s1": [replace(score, id="label", source="ANNOTATION")]}
        first = write_scores(client_of(server), [scored()], [former], annotations=said)
        trace = WriteOptions(score_target="trace")
        write_scores(client_of(server), [scored(model="another")], first, options=trace)
    return server.requests


@cache
def document() -> Mapping[str, Any] | None:
    """The server's own document, where it is at hand."""
    if not DOCUMENT.is_file():
        return None
    loaded: Mapping[str, Any] = yaml.load(DOCUMENT.read_text(), yaml.CSafeLoader)
    return loaded


@cache
def validator(name: str) -> Draft202012Validator:
    document_ = document()
    assert document_ is not None
    components = {"components": document_["components"]}
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", **components})


def operation_of(document: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
    for template, operations in document["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, request.path) and request.method.lower() in operations:
            found: Mapping[str, Any] = operations[request.method.lower()]
            return found
    raise AssertionError(f"{request.method} {request.path} is not in the document")


def check(document: Mapping[str, Any], request: Request) -> None:
    """Hold a request against the document; a list of scores by each of its items."""
    operation = operation_of(document, request)
    parameters = {p["name"]: p for p in operation.get("parameters", ()) if p["in"] == "query"}
    for name, value in request.query.items():
        kind = parameters[name]["schema"].get("type")
        assert kind != "integer" or value.isdigit(), (request.path, name, value)
    if "requestBody" not in operation:
        assert request.body is None
        return
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    name = schema["$ref"].rsplit("/", 1)[-1]
    known = set(document["components"]["schemas"][name]["properties"])
    for body in request.body if isinstance(request.body, list) else [request.body]:
        validator(name).validate(body)
        assert set(body) <= known | READ_BY_NEWER_SERVERS


@pytest.mark.parametrize(
    ("mode", "wire"),
    [("events_only", "object"), ("events_only", "list"), ("dual", "object"), ("old", "object")],
)
def test_every_request_is_one_that_the_document_allows(mode: Mode, wire: Wire) -> None:
    requests = requests_of(mode, wire)
    assert {request.method for request in requests} == {"GET", "POST"}
    known = document()
    for request in requests:
        if known is not None:
            check(known, request)


def test_observations_are_read_as_the_sdk_reads_them() -> None:
    with LangfuseServer("events_only") as server:
        Recorder(server).trace("t1", "go", "Done.")
        rows = fetch_rows(client_of(server), "s1")
        with client_of(server).sdk() as sdk:
            theirs = sdk.observations.get_many(session_id="s1", fields=FIELDS, limit=1_000).data
    assert [row["id"] for row in rows] == [row.id for row in reversed(theirs)]
    assert [row["input"] for row in rows] == [row.input for row in reversed(theirs)]
