"""Sessions far larger, or nested far deeper, than anybody means to have."""

from __future__ import annotations

import json
from typing import Any

from debrief.langfuse.fetcher import session_of
from debrief.sessions.model import ToolCall
from tests.langfuse.scenario import iso

Json = dict[str, Any]
MANY = 1_000
ASKED = json.dumps([{"role": "user", "content": "Go."}])


def row(number: int, **more: Any) -> Json:
    facts = {"id": f"o{number}", "traceId": "t", "type": "SPAN", "startTime": iso(number)}
    return {**facts, "endTime": iso(number + 0.5), **more}


def calling(number: int, *commands: str) -> Json:
    calls = [
        {
            "id": f"c{number}.{place}",
            "type": "function",
            "function": {"name": "run", "arguments": json.dumps({"command": command})},
        }
        for place, command in enumerate(commands)
    ]
    output = json.dumps({"role": "assistant", "content": None, "tool_calls": calls})
    return row(number, type="GENERATION", model="m", input=ASKED, output=output)


def ran(number: int, command: str) -> Json:
    given = json.dumps({"command": command})
    return row(number, type="TOOL", name="run", input=given, output=f"result {number}")


def calls_of(rows: list[Json]) -> list[ToolCall]:
    (turn,) = session_of("s", rows).turns
    return [call for message in turn.messages for call in message.calls]


def test_each_of_thousands_of_the_same_call_has_what_came_back_from_it() -> None:
    rows = [one for n in range(0, 2 * MANY, 2) for one in (calling(n, "wait"), ran(n + 1, "wait"))]
    calls = calls_of(rows)
    assert [call.result for call in calls] == [f"result {n + 1}" for n in range(0, 2 * MANY, 2)]


def test_so_has_each_of_thousands_that_were_made_at_once() -> None:
    rows = [calling(0, *["wait"] * MANY), *(ran(n, "wait") for n in range(1, MANY + 1))]
    assert [call.result for call in calls_of(rows)] == [f"result {n}" for n in range(1, MANY + 1)]


def test_so_has_each_of_thousands_whose_arguments_a_framework_changed() -> None:
    rows = [
        one
        for n in range(0, 2 * MANY, 2)
        for one in (calling(n, f"look {n}"), ran(n + 1, f"cd here && look {n}"))
    ]
    calls = calls_of(rows)
    assert [call.result for call in calls] == [f"result {n + 1}" for n in range(0, 2 * MANY, 2)]


def test_generations_that_are_nested_thousands_deep_say_what_the_innermost_says() -> None:
    rows = [
        row(
            n,
            type="GENERATION",
            model="m",
            parentObservationId=f"o{n - 1}" if n else None,
            input=ASKED,
            output="Done.",
        )
        for n in range(MANY)
    ]
    (turn,) = session_of("s", rows).turns
    assert [message.text for message in turn.messages] == ["Done."]
    assert [message.id for message in turn.messages] == [f"o{MANY - 1}"]


def test_observations_that_are_part_of_each_other_in_a_ring_are_survived() -> None:
    rows = [
        row(
            n,
            type="GENERATION",
            model="m",
            parentObservationId=f"o{(n + 1) % 3}",
            input=ASKED,
            output=f"Done {n}.",
        )
        for n in range(3)
    ]
    (turn,) = session_of("s", rows).turns
    assert turn.prompt == "Go."
    assert turn.messages
