"""Sessions far larger, or nested far deeper, than anybody means to have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from debrief.langfuse.fetcher import session_of
from debrief.sessions.model import ToolCall
from tests.langfuse.scenario import call, calls, iso

Json = dict[str, Any]
MANY = 1_000
ASKED = json.dumps([{"role": "user", "content": "Go."}])


def row(number: int, **more: Any) -> Json:
    times = {"startTime": iso(number), "endTime": iso(number + 0.5)}
    return {"id": f"o{number}", "traceId": "t", "type": "SPAN", "input": ASKED, **times, **more}


def generation(number: int, output: str, parent: str | None = None) -> Json:
    told = {"type": "GENERATION", "model": "m", "output": output}
    return row(number, parentObservationId=parent, **told)


def calling(number: int, *commands: str) -> Json:
    made = (call(f"c{number}.{n}", "run", command=one) for n, one in enumerate(commands))
    return generation(number, json.dumps(calls(*made)))


def ran(number: int, command: str) -> Json:
    given = json.dumps({"command": command})
    return row(number, type="TOOL", name="run", input=given, output=f"result {number}")


def calls_of(rows: list[Json]) -> list[ToolCall]:
    (turn,) = session_of("s", rows).turns
    return [call for message in turn.messages for call in message.calls]


@pytest.mark.parametrize("command", ["wait", "look {}"])
def test_each_of_thousands_of_calls_has_what_came_back_from_it(command: str) -> None:
    """Of the same call, and of calls whose arguments a framework changed."""
    rows = [
        one
        for n in range(0, 2 * MANY, 2)
        for one in (
            calling(n, command.format(n)),
            ran(n + 1, ("cd here && " if "{" in command else "") + command.format(n)),
        )
    ]
    assert [tool_call.result for tool_call in calls_of(rows)] == [
        f"result {n + 1}" for n in range(0, 2 * MANY, 2)
    ]


def test_so_has_each_of_thousands_that_were_made_at_once() -> None:
    rows = [calling(0, *["wait"] * MANY), *(ran(n, "wait") for n in range(1, MANY + 1))]
    assert [tool_call.result for tool_call in calls_of(rows)] == [
        f"result {n}" for n in range(1, MANY + 1)
    ]


def test_generations_that_are_nested_thousands_deep_say_what_the_innermost_says() -> None:
    rows = [generation(n, "Done.", f"o{n - 1}" if n else None) for n in range(MANY)]
    (turn,) = session_of("s", rows).turns
    assert [message.text for message in turn.messages] == ["Done."]
    assert [message.id for message in turn.messages] == [f"o{MANY - 1}"]


def test_observations_that_are_part_of_each_other_in_a_ring_are_survived() -> None:
    rows = [generation(n, f"Done {n}.", f"o{(n + 1) % 3}") for n in range(3)]
    (turn,) = session_of("s", rows).turns
    assert turn.prompt == "Go."
    assert turn.messages
