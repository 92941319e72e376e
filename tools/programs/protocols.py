"""The wire protocols of model providers, as far as coding agents use them.

``read`` takes a request's body apart, whatever the protocol; ``write`` puts an answer into one, as
a stream of events: all programs ask for streams, but for some requests to Gemini.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from debrief.sessions.model import DeclaredTool, Usage

Body = dict[str, Any]
_BILLING = "x-anthropic-billing-header:"
"""What Claude Code puts before its system prompt for the provider alone."""


_PICTURES = ("image", "image_url", "input_image")
_PICTURE = "[image]"


class Said(NamedTuple):
    """One message of a conversation; one of the role ``tool`` is the result of a call."""

    role: str
    text: str


class Request(Struct, kw_only=True):
    """What a model was asked."""

    model: str
    stream: bool = True
    system: list[str] = []
    """The system prompt in its parts; a first message with its authority where there is none."""
    said: list[Said] = []
    tools: list[DeclaredTool] = []
    results: dict[str, str] = {}
    """What calls brought, by call id."""
    namespaces: list[str] = []
    """Of tools, whose names begin with one: Responses send it apart."""

    def say(self, role: str, text: str) -> None:
        """Add a message; consecutive ones of the model are one answer."""
        if role in ("system", "developer") and not (self.system or self.said):
            self.system.append(text)
        elif role == "assistant" and self.said and self.said[-1].role == role:
            self.said[-1] = Said(role, "\n".join(filter(None, [self.said[-1].text, text])))
        else:
            self.said.append(Said(role, text))

    def bring(self, call_id: str, result: str) -> None:
        """Add the result of a call."""
        self.results[call_id] = result
        self.said.append(Said("tool", result))


class SentCall(Struct, frozen=True):
    """A call that the model made."""

    id: str
    name: str
    input: Any
    """An object, or a text where the tool takes free text."""


class Answer(Struct, frozen=True, kw_only=True):
    """What the model said; ``reasoning`` tokens are part of the output."""

    id: str
    text: str
    calls: tuple[SentCall, ...]
    usage: Usage
    reasoning: int


def _text(content: Any) -> str:
    """Return the text of a content that is a text, or parts, or nothing."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = [part for part in content if not part.get("thought")]
    return "\n".join(
        _PICTURE if part.get("type") in _PICTURES else part["text"]
        for part in parts
        if part.get("type") in _PICTURES or part.get("text")
    )


def _tool(body: Body, *keys: str) -> DeclaredTool:
    schema = next((body[key] for key in keys if body.get(key)), None)
    parameters = msgspec.json.encode(schema).decode() if schema else ""
    return DeclaredTool(
        name=body["name"], description=body.get("description", ""), parameters=parameters
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _read_anthropic(body: Body, _: str) -> Request:
    request = Request(model=body["model"])
    system = body.get("system") or []
    texts = [system] if isinstance(system, str) else [part["text"] for part in system]
    request.system += [text for text in texts if not text.startswith(_BILLING)]
    for message in body["messages"]:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        results = [part for part in parts if part["type"] == "tool_result"]
        for part in results:
            request.bring(part["tool_use_id"], _text(part.get("content")))
        text = _text(parts)
        if text or not results:
            request.say(message["role"], text)
    request.tools = [_tool(one, "input_schema") for one in body.get("tools", []) if "name" in one]
    return request


def _write_anthropic(answer: Answer, request: Request) -> Iterator[Body]:
    usage = {
        "input_tokens": answer.usage.input,
        "output_tokens": answer.usage.output,
        "cache_creation_input_tokens": answer.usage.cache_write,
        "cache_read_input_tokens": answer.usage.cache_read,
    }
    blocks: list[Body] = [{"type": "text", "text": answer.text}] if answer.text else []
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        for call in answer.calls
    ]
    reason = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    message = {"id": answer.id, "type": "message", "role": "assistant", "model": request.model}
    opening: Body = {"content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": {**message, **opening}}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": _json(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": reason, "usage": usage}
    yield {"type": "message_stop"}


def _read_chat(body: Body, _: str) -> Request:
    request = Request(model=body["model"])
    for message in body["messages"]:
        text = _text(message.get("content"))
        if message["role"] == "tool":
            request.bring(message["tool_call_id"], text)
        else:
            request.say(message["role"], text)
    tools = body.get("tools") or []
    request.tools = [_tool(tool["function"], "parameters") for tool in tools if "function" in tool]
    return request


def _write_chat(answer: Answer, request: Request) -> Iterator[Body]:
    prompt = answer.usage.input + answer.usage.cache_read
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": answer.usage.output,
        "total_tokens": prompt + answer.usage.output,
        "prompt_tokens_details": {"cached_tokens": answer.usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
    }
    calls = [
        {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _json(call.input)},
        }
        for index, call in enumerate(answer.calls)
    ]
    message: Body = {"role": "assistant", "content": answer.text or None}
    message |= {"tool_calls": calls} if calls else {}
    head = {
        "id": answer.id,
        "object": "chat.completion.chunk",
        "created": 0,
        "model": request.model,
    }
    end = {"index": 0, "finish_reason": "tool_calls" if calls else "stop"}
    yield {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield {**head, "choices": [{**end, "delta": {}}]}
    yield {**head, "choices": [], "usage": usage}


def _read_responses(body: Body, _: str) -> Request:
    request = Request(model=body["model"])
    request.system += [body["instructions"]] if body.get("instructions") else []
    items, found = body["input"], list(body.get("tools") or [])
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind == "message":
            request.say(item["role"], _text(item.get("content")))
        elif kind.endswith("_call_output"):
            output = item.get("output")
            request.bring(item["call_id"], output if isinstance(output, str) else _text(output))
        elif kind == "tool_search_output":
            request.bring(item["call_id"], "\n".join(map(_json, item["tools"])))
            found += item["tools"]
        elif kind.endswith("_call"):
            request.say("assistant", "")
    for one in found:
        if one["type"] in ("function", "custom"):
            request.tools.append(_tool(one, "parameters", "format"))
        elif one["type"] == "namespace":
            request.namespaces.append(one["name"])
            inner = [{**each, "name": f"{one['name']}__{each['name']}"} for each in one["tools"]]
            request.tools += [_tool(each, "parameters", "format") for each in inner]
        elif one["type"] == _SEARCH:
            request.tools.append(DeclaredTool(name=_SEARCH))
    return request


_SEARCH = "tool_search"
"""A tool of Codex's that the protocol knows by its type, as it does calls of it."""


def _write_responses(answer: Answer, request: Request) -> Iterator[Body]:
    sent = answer.usage
    total = sent.input + sent.cache_write + sent.cache_read
    usage = {
        "input_tokens": total,
        "input_tokens_details": {
            "cached_tokens": sent.cache_read,
            "cache_write_tokens": sent.cache_write,
        },
        "output_tokens": sent.output,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning},
        "total_tokens": total + sent.output,
    }
    items: list[Body] = []
    part = {"type": "output_text", "text": answer.text, "annotations": []}
    if answer.text:
        items.append({"type": "message", "role": "assistant", "content": [part]})
    for call in answer.calls:
        if call.name == _SEARCH:
            search = {"execution": "client", "arguments": call.input}
            items.append({"type": "tool_search_call", "call_id": call.id, **search})
            continue
        free = isinstance(call.input, str)
        given = {"input": call.input} if free else {"arguments": _json(call.input)}
        kind = "custom_tool_call" if free else "function_call"
        space = next(
            (
                namespace
                for namespace in request.namespaces
                if call.name.startswith(f"{namespace}__")
            ),
            "",
        )
        given |= {
            "name": call.name.removeprefix(f"{space}__"),
            **({"namespace": space} if space else {}),
        }
        items.append({"type": kind, "call_id": call.id, **given})
    for index, item in enumerate(items):
        item.update(id=f"item_{answer.id}_{index}", status="completed")
    whole = {"id": answer.id, "object": "response", "created_at": 0, "model": request.model}
    done = {**whole, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    for index, item in enumerate(items):
        at = {"output_index": index}
        begun = {**item, "content": []} if item["type"] == "message" else item
        yield {"type": "response.output_item.added", **at, "item": begun}
        if item["type"] == "message":
            at_part = {**at, "content_index": 0, "item_id": item["id"]}
            empty = {**part, "text": ""}
            yield {"type": "response.content_part.added", **at_part, "part": empty}
            yield {"type": "response.output_text.delta", **at_part, "delta": answer.text}
            yield {"type": "response.output_text.done", **at_part, "text": answer.text}
            yield {"type": "response.content_part.done", **at_part, "part": part}
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": "response.completed", "response": done}


def _read_gemini(body: Body, path: str) -> Request:
    model = re.search(r"models/([^:]+):", path)
    request = Request(model=model[1] if model else "", stream="stream" in path)
    system = _text((body.get("systemInstruction") or {}).get("parts"))
    request.system += [system] if system else []
    for content in body["contents"]:
        parts = content.get("parts") or []
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for result in results:
            output = result["response"]
            told = output.get("output", output.get("error")) if isinstance(output, dict) else output
            request.bring(result["id"], told if isinstance(told, str) else _json(output))
        text = _text(parts)
        if text or not results:
            request.say("assistant" if content.get("role") == "model" else "user", text)
    for group in body.get("tools") or []:
        for one in group.get("functionDeclarations", []):
            request.tools.append(_tool(one, "parametersJsonSchema", "parameters"))
    return request


def _write_gemini(answer: Answer, request: Request) -> Iterator[Body]:
    prompt = answer.usage.input + answer.usage.cache_read
    usage = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": answer.usage.cache_read,
        "candidatesTokenCount": answer.usage.output - answer.reasoning,
        "thoughtsTokenCount": answer.reasoning,
        "totalTokenCount": prompt + answer.usage.output,
    }
    parts: list[Body] = [{"text": answer.text}] if answer.text or not answer.calls else []
    for call in answer.calls:
        function = {"id": call.id, "name": call.name, "args": call.input}
        parts.append({"functionCall": function, "thoughtSignature": "c2ln"})
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    head = {"modelVersion": request.model, "responseId": answer.id}
    yield {**head, "candidates": [candidate], "usageMetadata": usage}


class Protocol(NamedTuple):
    """One wire protocol."""

    path: re.Pattern[str]
    """The end of the address that it is spoken at."""
    read: Callable[[Body, str], Request]
    write: Callable[[Answer, Request], Iterator[Body]]
    caches_writes: bool
    """It tells tokens written to the cache."""
    end: str = ""
    """What stands behind the last event."""


PROTOCOLS = (
    Protocol(re.compile(r"/messages\Z"), _read_anthropic, _write_anthropic, True),
    Protocol(
        re.compile(r"/chat/completions\Z"), _read_chat, _write_chat, False, "data: [DONE]\n\n"
    ),
    Protocol(re.compile(r"/responses\Z"), _read_responses, _write_responses, True),
    Protocol(re.compile(r":(streamG|g)enerateContent\Z"), _read_gemini, _write_gemini, False),
)


def encoded(protocol: Protocol, answer: Answer, request: Request) -> tuple[str, bytes]:
    """Return an answer's content type and body."""
    bodies = list(protocol.write(answer, request))
    if not request.stream:
        return "application/json", msgspec.json.encode(bodies[0])
    events = []
    for number, body in enumerate(bodies):
        if kind := body.get("type"):
            events.append(f"event: {kind}\n")
            body = {**body, "sequence_number": number}
        events.append(f"data: {_json(body)}\n\n")
    return "text/event-stream", "".join([*events, protocol.end]).encode()
