"""The tools that observations declare, wherever their integrations put them."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from debrief.langfuse.parts import declared_by
from debrief.langfuse.vendors import decoded
from debrief.sessions.model import DeclaredTool
from tests.langfuse.scenario import READ, Recorder, fetched, user
from tests.langfuse.server import LangfuseServer

FUNCTION: dict[str, Any] = READ["function"]
SCHEMA: dict[str, Any] = FUNCTION["parameters"]
FLAT = {"type": "function", **FUNCTION}
NAMED = {"name": FUNCTION["name"], "description": FUNCTION["description"]}
TOLD = DeclaredTool(**NAMED, parameters=orjson.dumps(SCHEMA).decode())
ASKED = [user("Go.")]


def attributes(**told: Any) -> dict[str, Any]:
    return {"metadata": {"attributes": {key.replace("__", "."): v for key, v in told.items()}}}


PLACES: dict[str, dict[str, Any]] = {
    "request": {"input": {"messages": ASKED, "tools": [READ]}},
    "request before tools": {"input": {"messages": ASKED, "functions": [FUNCTION]}},
    "request to Responses": {"input": {"input": ASKED, "tools": [FLAT]}},
    "request to Anthropic": {
        "input": {"messages": ASKED, "tools": [{**NAMED, "input_schema": SCHEMA}]}
    },
    "request to Gemini": {
        "input": {"contents": [], "config": {"tools": [{"function_declarations": [FUNCTION]}]}}
    },
    "beside a tool of the model's own": {
        "input": {"messages": ASKED, "tools": [{"type": "web_search"}, READ]}
    },
    "prompt that the server put tools to": {"input": {"prompt": "Go.", "tools": [FLAT]}},
    "entries among messages": {"input": [*ASKED, {"role": "tool", "content": READ}]},
    "entries of another form": {
        "input": [*ASKED, {"role": "tool", "content": {**NAMED, "input_schema": SCHEMA}}]
    },
    "response": {"input": ASKED, "output": {"object": "response", "output": [], "tools": [FLAT]}},
    "parameters of the model": {"modelParameters": {"tools": json.dumps([READ])}},
    "metadata": {"metadata": {"tools": [json.dumps({**NAMED, "inputSchema": SCHEMA})]}},
    "OpenTelemetry": attributes(gen_ai__tool__definitions=json.dumps([READ])),
    "AI SDK": attributes(ai__prompt__tools=[json.dumps({**NAMED, "inputSchema": SCHEMA})]),
    "Pydantic AI": attributes(
        model_request_parameters={"function_tools": [{**NAMED, "parameters_json_schema": SCHEMA}]}
    ),
    "OpenInference": attributes(llm__tools__0__tool__json_schema=json.dumps(READ)),
    "OpenInference, arguments alone": attributes(
        llm__tools__0__tool__name=NAMED["name"],
        llm__tools__0__tool__description=NAMED["description"],
        llm__tools__0__tool__json_schema=json.dumps(SCHEMA),
    ),
    "OpenLLMetry": attributes(
        llm__request__functions__0__name=NAMED["name"],
        llm__request__functions__0__description=NAMED["description"],
        llm__request__functions__0__parameters=json.dumps(SCHEMA),
    ),
    "a field of newer servers": {
        "toolDefinitions": {
            NAMED["name"]: json.dumps(
                {"description": NAMED["description"], "parameters": json.dumps(SCHEMA)}
            )
        }
    },
}


def declared(row: dict[str, Any]) -> tuple[DeclaredTool, ...]:
    return tuple(declared_by(row, decoded(row.get("input")), decoded(row.get("output"))))


@pytest.mark.parametrize("place", PLACES)
def test_a_tool_is_found_wherever_it_is_declared(place: str) -> None:
    row = PLACES[place]
    assert declared(row) == (TOLD,)
    assert declared({key: json.dumps(value) for key, value in row.items()}) == (TOLD,)


@pytest.mark.parametrize(
    "row",
    [
        {"metadata": {"tools": ["hammer", "saw"]}},
        {"metadata": {"tools": [{"id": 1, "type": "hammer"}]}},
        {"metadata": {"tools": [READ, {"id": 1}]}},
        {"metadata": {"attributes": "not JSON, llm.tools"}},
        {"metadata": attributes(llm__tools__x__tool__json_schema="{}")},
        {"input": {"tools": 7, "config": 8, "messages": 9}},
        {"input": [{"role": "tool", "tool_call_id": "c1", "content": READ}]},
        {"modelParameters": [READ]},
    ],
    ids=str,
)
def test_what_only_looks_like_tools_declares_none(row: dict[str, Any]) -> None:
    assert declared(row) == ()


def test_a_sessions_tools_are_those_of_all_its_requests_once(server: LangfuseServer) -> None:
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
    recorder = Recorder(server)
    for number, tools in enumerate(([READ], [READ, other], [other])):
        given = {"messages": [user(f"Part {number}.")], "tools": tools}
        recorder.generation(f"t{number}", json.dumps(given), "Ok.")
    session = fetched(server)
    names = [tool.name for tool in session.declared_tools or ()]
    assert names == ["read_file", "other"]


def test_metadata_that_holds_tools_is_asked_for_whole(server: LangfuseServer) -> None:
    told = json.dumps({"gen_ai.tool.definitions": json.dumps([READ])})
    Recorder(server).generation("t1", "Go.", "Ok.", metadata={"attributes": told})
    session = fetched(server)
    assert [tool.name for tool in session.declared_tools or ()] == ["read_file"]
