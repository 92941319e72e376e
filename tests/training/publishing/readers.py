"""What the readers of each form ask of a line, written down without the code that makes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from debrief.training.formats import validate_line


def problems(form: str, line: bytes) -> list[str]:
    """Return what the reader of a form would stumble over in a line."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return list(_RULES[form](json.loads(line)))


def _messages(line: dict[str, Any]) -> Iterator[str]:
    yield from validate_line(json.dumps(line))


def _openai(line: dict[str, Any]) -> Iterator[str]:
    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
    from pydantic import TypeAdapter

    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(line["messages"])
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(line["tools"])
    if set(line) != {"messages", "tools"}:
        yield f"columns {set(line)}"
    yield from (
        f"a description of {len(tool['function']['description'])} characters"
        for tool in line["tools"]
        if len(tool["function"]["description"]) > 1_024
    )


def _template(messages: list[dict[str, Any]], tools: str) -> Iterator[str]:
    declared = {tool["function"]["name"] for tool in json.loads(tools)}
    if messages[-1]["role"] != "assistant":
        yield "does not end on an assistant message"
    open_calls: list[str] = []
    for message in messages:
        if "weight" in message or not isinstance(message["content"], str):
            yield f"a weight, or no text: {message}"
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            yield f"calls without a result: {open_calls}"
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
        for call in message.get("tool_calls", ()):
            function = call["function"]
            if function["name"] not in declared or not isinstance(function["arguments"], dict):
                yield f"not declared, or no object: {function}"


def _trl(line: dict[str, Any]) -> Iterator[str]:
    yield from _template(line["prompt"] + line["completion"], line["tools"])
    if line["completion"][0]["role"] != "assistant" or line["prompt"][-1]["role"] == "assistant":
        yield "the completion begins with no answer"


def _flagged(flag: str) -> Callable[[dict[str, Any]], Iterator[str]]:
    def problems(line: dict[str, Any]) -> Iterator[str]:
        declared = {tool["function"]["name"] for tool in json.loads(line["tools"])}
        for message in line["messages"]:
            if "weight" in message or (message["role"] == "assistant") != (flag in message):
                yield f"a weight, or no flag: {message}"
            for call in message.get("tool_calls", ()):
                arguments = json.loads(call["function"]["arguments"])
                if call["function"]["name"] not in declared or not isinstance(arguments, dict):
                    yield f"not declared, or no object: {call}"

    return problems


def _mistral(line: dict[str, Any]) -> Iterator[str]:
    if set(line) != {"messages", "tools"}:
        yield f"columns {set(line)}"
    for message in line["messages"]:
        if unknown := set(message) - {"role", "content", "tool_calls", "tool_call_id", "weight"}:
            yield f"keys {unknown}"


def _sharegpt(line: dict[str, Any]) -> Iterator[str]:
    declared = {tool["name"] for tool in json.loads(line["tools"])}
    turns = line["conversations"]
    if len(turns) % 2 or not turns:
        yield f"{len(turns)} turns"
    for number, turn in enumerate(turns):
        expected = ("gpt", "function_call") if number % 2 else ("human", "observation")
        if turn["from"] not in expected:
            yield f"turn {number}: {turn['from']}"
        if turn["from"] == "function_call":
            words, tag, tagged = turn["value"].partition("<tool_call>")
            call = json.loads(tagged.removesuffix("</tool_call>") if tag else words)
            if call["name"] not in declared or not isinstance(call["arguments"], dict):
                yield f"turn {number}: {call}"


def _preference(line: dict[str, Any]) -> Iterator[str]:
    for side in ("chosen", "rejected"):
        yield from _template(line["prompt"] + line[side], line["tools"])
        if line[side][0]["role"] != "assistant":
            yield f"{side} begins with no answer"
    if line["prompt"][-1]["role"] != "user":
        yield "the prompt does not end on a request"
    if line["kind"] not in ("refused", "corrected", "rewound", "verdict"):
        yield f"kind {line['kind']}"
    if not line["reasons"] or line["chosen"] == line["rejected"]:
        yield "neither is better"


def _kto(line: dict[str, Any]) -> Iterator[str]:
    yield from _template(line["prompt"] + line["completion"], line["tools"])
    if line["prompt"][-1]["role"] == "assistant" or not isinstance(line["label"], bool):
        yield "no request, or no label"


def _rl(line: dict[str, Any]) -> Iterator[str]:
    yield from _template(line["prompt"] + line["trajectory"], line["tools"])
    answers = [one for one in line["trajectory"] if one["role"] == "assistant"]
    if len(line["corrected"]) != len(answers):
        yield f"{len(line['corrected'])} marks of correction for {len(answers)} answers"


_RULES: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "messages": _messages,
    "openai": _openai,
    "trl": _trl,
    "sharegpt": _sharegpt,
    "preference": _preference,
    "axolotl": _flagged("train"),
    "swift": _flagged("loss"),
    "mistral": _mistral,
    "kto": _kto,
    "rl": _rl,
}
