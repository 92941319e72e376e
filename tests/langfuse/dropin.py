"""An agent whose models are traced and nothing else: every request to a model a trace of its own.

So the drop-in for OpenAI's client writes it, and a proxy that traces what passes through it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from debrief.langfuse.fetcher import SessionFetcher
from debrief.sessions.model import Session, ToolCall, Turn
from tests.langfuse.scenario import client_of
from tests.langfuse.server import LangfuseServer
from tests.langfuse.test_fetcher import Recorder, iso

Json = dict[str, Any]

READ: Json = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file of the shop.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
            "required": ["path"],
        },
    },
}
TEST: Json = {
    "type": "function",
    "function": {
        "name": "run_tests",
        "description": "Runs the tests of a folder.",
        "parameters": {
            "type": "object",
            "properties": {"folder": {"type": "string"}},
            "required": ["folder"],
        },
    },
}


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
    """Fills a server with one generation a trace."""

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
        given = {"messages": list(self.before), "tools": self.tools}
        trace = trace or f"t{self.requests}"
        at = iso(self.clock + 1)
        record = {"id": trace, "sessionId": self.session, "timestamp": at, "name": "request"}
        if all(one["id"] != trace for one in self.server.traces):
            self.server.traces.append({**record, "input": None, "output": None, "tags": []})
        made = self.observe(
            trace,
            "GENERATION",
            "OpenAI-generation",
            **{
                "input": json.dumps(given if self.tools else self.before),
                "output": answers if isinstance(answers, str) else json.dumps(answers),
                "model": "gpt-4o",
                "usageDetails": {"input": 100, "output": 10},
                "isRootObservation": True,
                **fields,
            },
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
