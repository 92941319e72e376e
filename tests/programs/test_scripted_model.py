"""The scripted model over plain HTTP: a client of each protocol goes through the whole script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from debrief.sessions.model import Usage
from tests.waiting import LONG
from tools.programs.definitions import load
from tools.programs.running import NOTES
from tools.programs.server import Exchange, ModelServer, ScriptedModel

Body = dict[str, Any]
KNOWN = load()
PROMPT = KNOWN.scripts["fix"].prompt
CALLS_OF_FIX = [len(step.calls) for step in KNOWN.scripts["fix"].steps]


class Reply(NamedTuple):
    """What a client makes of an answer."""

    text: str
    calls: list[tuple[str, str, Any]]
    """Id, name and arguments."""
    usage: Usage
    message: list[Body]
    """As it stands in the next request."""


class Client(NamedTuple):
    """How one protocol asks, understands an answer, and tells results."""

    program: str
    path: str
    ask: Callable[[list[Body], list[str]], Body]
    prompt: Callable[[str], Body]
    reply: Callable[[list[Body]], Reply]
    results: Callable[[list[str]], list[Body]]


def _events(response: httpx.Response) -> list[Body]:
    lines = [line.removeprefix("data: ") for line in response.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def _anthropic_reply(events: list[Body]) -> Reply:
    blocks: list[Body] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta":
            blocks[-1]["text"] += event["delta"]["text"]
        elif event["type"] == "content_block_delta":
            blocks[-1]["input"] = json.loads(event["delta"]["partial_json"])
    usage = events[-2]["usage"]
    return Reply(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        calls=[(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"],
        usage=Usage(
            usage["input_tokens"],
            usage["output_tokens"],
            usage["cache_creation_input_tokens"],
            usage["cache_read_input_tokens"],
        ),
        message=[{"role": "assistant", "content": blocks}],
    )


def _chat_reply(events: list[Body]) -> Reply:
    message, usage = events[0]["choices"][0]["delta"], events[-1]["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    functions = [(call["id"], call["function"]) for call in message.get("tool_calls", [])]
    return Reply(
        text=message["content"] or "",
        calls=[(one, call["name"], json.loads(call["arguments"])) for one, call in functions],
        usage=Usage(usage["prompt_tokens"] - cached, usage["completion_tokens"], 0, cached),
        message=[message],
    )


def _responses_reply(events: list[Body]) -> Reply:
    done = events[-1]["response"]
    usage, details = done["usage"], done["usage"]["input_tokens_details"]
    cached, written = details["cached_tokens"], details["cache_write_tokens"]
    items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert items == done["output"]
    calls = [item for item in items if item["type"] != "message"]
    return Reply(
        text="".join(i["content"][0]["text"] for i in items if i["type"] == "message"),
        calls=[
            (c["call_id"], c["name"], c["input"] if "input" in c else json.loads(c["arguments"]))
            for c in calls
        ],
        usage=Usage(
            usage["input_tokens"] - cached - written, usage["output_tokens"], written, cached
        ),
        message=items,
    )


def _gemini_reply(events: list[Body]) -> Reply:
    parts, usage = events[0]["candidates"][0]["content"]["parts"], events[0]["usageMetadata"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    cached = usage["cachedContentTokenCount"]
    output = usage["candidatesTokenCount"] + usage["thoughtsTokenCount"]
    return Reply(
        text="".join(part.get("text", "") for part in parts),
        calls=[(call["id"], call["name"], call["args"]) for call in calls],
        usage=Usage(usage["promptTokenCount"] - cached, output, 0, cached),
        message=[{"role": "model", "parts": parts}],
    )


CLIENTS = [
    Client(
        "claude",
        "/v1/messages",
        lambda said, tools: {
            "model": "m",
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": said,
            "tools": [{"name": name, "input_schema": {"type": "object"}} for name in tools],
        },
        lambda text: {"role": "user", "content": text},
        _anthropic_reply,
        lambda ids: [
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": one, "content": f"of {one}"}
                    for one in ids
                ],
            }
        ],
    ),
    Client(
        "opencode",
        "/v1/chat/completions",
        lambda said, tools: {
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, *said],
            "tools": [{"type": "function", "function": {"name": name}} for name in tools],
        },
        lambda text: {"role": "user", "content": text},
        _chat_reply,
        lambda ids: [{"role": "tool", "tool_call_id": one, "content": f"of {one}"} for one in ids],
    ),
    Client(
        "codex",
        "/v1/responses",
        lambda said, tools: {
            "model": "m",
            "instructions": "Be brief.",
            "input": said,
            "tools": [{"type": "function", "name": name} for name in tools],
        },
        lambda text: {"role": "user", "content": [{"type": "input_text", "text": text}]},
        _responses_reply,
        lambda ids: [
            {"type": "function_call_output", "call_id": one, "output": f"of {one}"} for one in ids
        ],
    ),
    Client(
        "gemini",
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        lambda said, tools: {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": said,
            "tools": [{"functionDeclarations": [{"name": name} for name in tools]}],
        },
        lambda text: {"role": "user", "parts": [{"text": text}]},
        _gemini_reply,
        lambda ids: [
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": one, "response": {"output": f"of {one}"}}}
                    for one in ids
                ],
            }
        ],
    ),
]


def _played(client: Client, script: str, repository: Path) -> tuple[list[Reply], list[Exchange]]:
    """Go through a script as a program would."""
    program = KNOWN.programs[client.program]
    model = ScriptedModel(program, KNOWN.scripts, repository)
    offered = sorted({tool.tool for tool in program.tools.values()})
    said = [client.prompt(KNOWN.scripts[script].prompt)]
    replies: list[Reply] = []
    with ModelServer(model) as server:
        while len(replies) < 20 and (not replies or replies[-1].calls):
            response = httpx.post(
                server.url + client.path, json=client.ask(said, offered), timeout=LONG
            )
            replies.append(client.reply(_events(response)))
            said += replies[-1].message
            said += client.results([call[0] for call in replies[-1].calls])
    return replies, model.exchanges


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.program)
def test_a_script_goes_through_each_protocol_to_its_end(client: Client, tmp_path: Path) -> None:
    replies, exchanges = _played(client, "fix", tmp_path)
    assert [reply.text for reply in replies] == [step.text for step in KNOWN.scripts["fix"].steps]
    assert [len(reply.calls) for reply in replies] == CALLS_OF_FIX
    assert len({reply.usage for reply in replies}) == len(replies)
    for reply, exchange in zip(replies, exchanges, strict=True):
        assert reply.usage == exchange.usage
        assert reply.calls == [(call.id, call.name, call.input) for call in exchange.calls]
        assert exchange.system == ("Be brief.",)
        assert exchange.unoffered == ()
    ids = [call[0] for reply in replies for call in reply.calls]
    assert exchanges[-1].results == {one: f"of {one}" for one in ids}


@pytest.mark.parametrize(
    ("words", "tools"),
    [
        (f"Title: {PROMPT}", []),
        (f"Generate a concise, single-line task title.\n\nUser prompt:\n{PROMPT}", ["bash"]),
    ],
)
def test_a_request_for_a_title_is_no_part_of_a_script(
    words: str, tools: list[str], tmp_path: Path
) -> None:
    model = ScriptedModel(KNOWN.programs["opencode"], KNOWN.scripts, tmp_path)
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    with ModelServer(model) as server:
        asked = {"model": "m", "messages": [{"role": "user", "content": words}], "tools": offered}
        answer = httpx.post(server.url + "/v1/chat/completions", json=asked, timeout=LONG)
    assert _chat_reply(_events(answer))[:2] == ("Mending add()", [])
    assert model.exchanges[0].script == "title"


def test_a_tool_that_a_program_no_longer_offers_is_told(tmp_path: Path) -> None:
    model = ScriptedModel(KNOWN.programs["opencode"], KNOWN.scripts, tmp_path)
    client = CLIENTS[1]
    with ModelServer(model) as server:
        body = client.ask([client.prompt(PROMPT)], ["cat"])
        httpx.post(server.url + client.path, json=body, timeout=LONG)
    assert model.exchanges[0].unoffered == ("read",)


def test_what_the_model_does_not_understand_is_refused_and_told(tmp_path: Path) -> None:
    model = ScriptedModel(KNOWN.programs["opencode"], KNOWN.scripts, tmp_path)
    with ModelServer(model) as server:
        url = server.url
        assert (
            httpx.post(f"{url}/v1/chat/completions", json={"model": "m"}, timeout=LONG).status_code
            == 400
        )
        assert httpx.post(f"{url}/v1/embeddings", json={}, timeout=LONG).status_code == 404
        assert httpx.get(f"{url}/v1/models", timeout=LONG).status_code == 404
        assert server.errors == ["/v1/chat/completions: KeyError: 'messages'"]


def test_a_script_has_others_edit_files_and_the_provider_refuse(tmp_path: Path) -> None:
    model = ScriptedModel(KNOWN.programs["claude"], KNOWN.scripts, tmp_path)

    def ask(client: httpx.Client, script: str, answers: int) -> int:
        said: list[Body] = [{"role": "user", "content": KNOWN.scripts[script].prompt}]
        for number in range(answers):
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "done"}
            said += [{"role": "assistant", "content": f"Step {number}."}]
            said += [{"role": "user", "content": [result]}]
        tools = [{"name": "Read", "input_schema": {}}]
        body = {"model": "m", "messages": said, "tools": tools}
        return client.post("/v1/messages", json=body).status_code

    with ModelServer(model) as server, httpx.Client(base_url=server.url, timeout=LONG) as client:
        assert [ask(client, "counter", number) for number in (0, 1)] == [200, 400]
        ask(client, "edited", 0)
        assert not (tmp_path / "calc.py").exists()
        ask(client, "edited", 2)
    assert "both numbers" in (tmp_path / "calc.py").read_text()
    assert [exchange.script for exchange in model.exchanges] == ["counter", "edited", "edited"]


def test_a_stream_breaks_off_once_and_a_server_of_tools_answers(tmp_path: Path) -> None:
    model = ScriptedModel(KNOWN.programs["claude"], KNOWN.scripts, tmp_path)
    said = [{"role": "user", "content": KNOWN.scripts["cut"].prompt}]
    body = {"model": "m", "messages": said, "tools": [{"name": "Bash", "input_schema": {}}]}
    with ModelServer(model) as server, httpx.Client(base_url=server.url, timeout=LONG) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("/v1/messages", json=body)
        assert "message_stop" in client.post("/v1/messages", json=body).text
    assert [exchange.is_broken_off for exchange in model.exchanges] == [True, False]

    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "server/discover"},
        *(
            {"id": name, "method": "tools/call", "params": {"arguments": {"name": name}}}
            for name in ("add", "subtract")
        ),
    ]
    done = subprocess.run(
        [sys.executable, str(NOTES)],
        input="".join(f"{json.dumps(each)}\n" for each in asked),
        capture_output=True,
        text=True,
        check=True,
    )
    begun, unknown, found, missing = map(json.loads, done.stdout.splitlines())
    assert (begun["result"]["serverInfo"]["name"], unknown["error"]["code"]) == ("notes", -32601)
    assert [each["result"]["isError"] for each in (found, missing)] == [False, True]
