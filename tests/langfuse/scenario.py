"""Servers filled as agents leave them, scored sessions, and a client that does not wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from debrief.langfuse.client import RETRIES, LangfuseClient
from debrief.langfuse.fetcher import SessionFetcher
from debrief.scoring.dimensions import BY_NAME, dimension_score
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Evidence, Session, ToolCall, Turn
from tests.langfuse.server import Json, LangfuseServer
from tests.waiting import LONG

START = datetime(2026, 10, 5, 12, tzinfo=UTC)


class Clock:
    """Waits in no time, and remembers how long it should have taken."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def client_of(
    server: LangfuseServer, clock: Clock | None = None, attempts: int = 4, secret: str = "sk-test"
) -> LangfuseClient:
    retries = replace(RETRIES, attempts=attempts, sleep=(clock or Clock()).sleep)
    return LangfuseClient(server.host, server.public_key, secret, retries=retries, timeout=LONG)


_SAID: dict[str, str | float] = {
    "task_completion": "complete",
    "execution_quality": 0.8,
    "tool_mastery": 0.7,
    "resource_efficiency": 0.6,
    "security_compliance": "adequate",
    "user_satisfaction": "good",
}


def scored(identity: str = "s1", model: str = "some-model") -> SessionScores:
    """A review that says something of every dimension."""
    return SessionScores(
        session_id=identity,
        session_digest="d1",
        started=START,
        ended=START + timedelta(minutes=20),
        task="shop",
        tool="claude-code",
        model=model,
        scoring_fingerprint="5c0e1d2a",
        status="ok",
        dimension_scores=tuple(
            dimension_score(BY_NAME[name].name, score, f"seen in turn 1, {name}", (Evidence(1),))
            for name, score in _SAID.items()
        ),
        overall_quality=0.698,
        verdict=SessionVerdict(
            verdict="complete_verified", basis="review", source=model, evidence=(Evidence(1),)
        ),
    )


def failed(identity: str = "s9") -> SessionScores:
    row = scored(identity)
    return replace(
        row, status="failed", failure="no answer", dimension_scores=(), overall_quality=None
    )


def iso(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


class Recorder:
    """Fills a server with traces as an instrumented agent leaves them."""

    def __init__(self, server: LangfuseServer, session: str = "s1") -> None:
        self.server = server
        self.session = session
        self.clock = 0.0

    def observe(self, trace: str, kind: str, name: str, **fields: Any) -> str:
        self.clock += 1
        identity = f"{trace}-{name}-{self.clock:.0f}"
        row = {
            "id": identity,
            "traceId": trace,
            "projectId": "p1",
            "sessionId": self.session,
            "type": kind,
            "name": name,
            "level": "DEFAULT",
            "statusMessage": "",
            "startTime": iso(self.clock),
            "endTime": iso(self.clock + 0.5),
            "updatedAt": iso(self.clock + 2),
            "parentObservationId": None,
            "isRootObservation": False,
            "input": None,
            "output": None,
            "model": "",
            "usageDetails": {},
            "tags": [],
            "traceName": "turn",
            **fields,
        }
        self.server.observations.append(row)
        return identity

    def generation(self, trace: str, given: object, output: object = None, **fields: Any) -> str:
        return self.observe(trace, "GENERATION", "llm", input=given, output=output, **fields)

    def ran(self, trace: str, name: str, given: object, output: object = None, **more: Any) -> str:
        return self.observe(trace, "TOOL", name, input=given, output=output, **more)

    def root(self, trace: str, given: object, output: object = None, **more: Any) -> str:
        more = {"input": given, "output": output, "isRootObservation": True, **more}
        return self.observe(trace, "SPAN", more.pop("name", "turn"), **more)

    def keep(self, trace: str, given: object, output: object) -> None:
        record = {"id": trace, "sessionId": self.session, "timestamp": iso(self.clock + 1)}
        told = {"name": "turn", "input": given, "output": output, "tags": []}
        self.server.traces.append(record | told)

    def trace(self, trace: str, prompt: object, answer: object) -> None:
        self.keep(trace, prompt, answer)
        inside = {"parentObservationId": self.root(trace, prompt, answer)}
        usage = {"input": 10, "output": 5, "cache_read_input_tokens": 90, "total": 105}
        self.generation(trace, "hi", "Let me look.", model="gpt-4o", usageDetails=usage, **inside)
        failed = {"level": "ERROR", "statusMessage": "boom", **inside}
        self.ran(trace, "search", '{"q":"cart"}', **failed)


def function(name: str, description: str, **parameters: str) -> Json:
    """A tool as OpenAI's client declares it; the first parameter is required."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": [next(iter(parameters))]}
    told = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": told}


READ = function("read_file", "Reads a file of the shop.", path="string", lines="integer")
TEST = function("run_tests", "Runs the tests of a folder.", folder="string")


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def tool(call_id: str, content: object) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def call(call_id: str, name: str, **arguments: object) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def calls(*made: Json, text: str | None = None) -> Json:
    return {"role": "assistant", "content": text, "tool_calls": list(made)}


def says(text: str) -> Json:
    return {"role": "assistant", "content": text}


class DropIn(Recorder):
    """An agent whose models are traced and nothing else: every request a trace of its own.

    So the drop-in for OpenAI's client writes it, and a proxy that traces what passes through it.
    """

    def __init__(
        self,
        server: LangfuseServer,
        session: str = "s1",
        tools: Sequence[Json] = (READ, TEST),
        system: str = "You mend a web shop.",
    ) -> None:
        super().__init__(server, session)
        self.tools = list(tools)
        self.before: list[Json] = [{"role": "system", "content": system}] if system else []
        """The conversation so far, which every request repeats."""
        self.requests = 0

    def asks(self, *new: Json, answers: object, trace: str = "", **fields: Any) -> str:
        """Record a request that adds ``new`` to the conversation, and the model's answer."""
        self.requests += 1
        self.before += new
        trace = trace or f"t{self.requests}"
        if all(one["id"] != trace for one in self.server.traces):
            self.keep(trace, None, None)
        given = {"messages": self.before, "tools": self.tools} if self.tools else self.before
        output = answers if isinstance(answers, str) else json.dumps(answers)
        told = {"model": "gpt-4o", "usageDetails": {"input": 100, "output": 10}, **fields}
        made = self.generation(
            trace, json.dumps(given), output, **{"isRootObservation": True, **told}
        )
        if isinstance(answers, dict):
            self.before.append(answers)
        return made


def fetched(server: LangfuseServer) -> Session:
    """The server's only session, fetched and made into one of ours."""
    return SessionFetcher(client_of(server)).fetch_session("s1")


def calls_of(turn: Turn) -> list[ToolCall]:
    return [call for message in turn.messages for call in message.calls]


def told(turn: Turn) -> list[tuple[str, str, str | None, str]]:
    """Of each call its tool, arguments, result and status."""
    return [(call.name, call.input, call.result, call.status) for call in calls_of(turn)]
