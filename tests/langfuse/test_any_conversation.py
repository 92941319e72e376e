"""What holds for every conversation and for every JSON that a server may hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from debrief.langfuse.fetcher import session_of
from debrief.langfuse.traces import answer_in, request_in
from debrief.sessions.model import Message, Session
from debrief.sessions.rendering import render_session
from tests.langfuse.scenario import iso

Json = dict[str, Any]

WORDS = st.text("abc é{}[]\"'\n", min_size=1, max_size=12).filter(str.strip)
NAMES = st.sampled_from(["read", "run_tests", "mcp__web__search"])


@dataclass(frozen=True)
class Step:
    """An answer of the model: words, and calls with what came back from each."""

    text: str
    calls: tuple[tuple[str, str, str | None], ...]
    """Name, argument, and result; None where none ever comes."""


@dataclass(frozen=True)
class Talk:
    """What a person asks, and what the model does on it."""

    prompt: str
    steps: tuple[Step, ...]
    answer: str


def talks_with(results: st.SearchStrategy[str | None]) -> st.SearchStrategy[list[Talk]]:
    """Return what makes conversations whose calls come to ``results``."""
    calls = st.lists(st.tuples(NAMES, WORDS, results), min_size=1, max_size=3).map(tuple)
    steps = st.lists(st.builds(Step, st.just("") | WORDS, calls), max_size=3).map(tuple)
    return st.lists(st.builds(Talk, WORDS, steps, WORDS), min_size=1, max_size=4)


ANSWERED = talks_with(WORDS)


@dataclass(frozen=True)
class Dialect:
    """How a vendor writes the parts of a message; OpenAI has calls and results beside them."""

    contents: str
    text: Callable[[str], object]
    call: Callable[[str, str, str], Json]
    """Of id, name and argument."""
    result: Callable[[str, str, str], Json]
    """Of id, name and text."""
    model: str = "assistant"
    calls: str = ""
    """Where calls stand, if beside the content."""
    thoughts: tuple[Json, ...] = ()
    results_from: str = "user"

    def request(self, text: str) -> list[Json]:
        return [{"role": "user", self.contents: self.text(text)}]

    def answer(self, text: str, calls: Sequence[tuple[str, str, str]]) -> Json:
        made = [self.call(*call) for call in calls]
        if self.calls:
            beside = {self.calls: made} if made else {}
            return {"role": self.model, self.contents: text or None, **beside}
        words = self.text(text) if text else []
        parts = words if isinstance(words, list) else [words]
        return {"role": self.model, self.contents: [*self.thoughts, *parts, *made]}

    def results(self, results: Sequence[tuple[str, str, str]]) -> list[Json]:
        made = [self.result(*result) for result in results]
        if self.calls:
            return made
        together = [made] if self.results_from == "user" else [[one] for one in made]
        return [{"role": self.results_from, self.contents: parts} for parts in together]


OPENAI = Dialect(
    "content",
    lambda text: text,
    lambda identity, name, x: {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps({"x": x})},
    },
    lambda identity, _, text: {"role": "tool", "tool_call_id": identity, "content": text},
    calls="tool_calls",
)
ANTHROPIC = Dialect(
    "content",
    lambda text: [{"type": "text", "text": text}],
    lambda identity, name, x: {"type": "tool_use", "id": identity, "name": name, "input": {"x": x}},
    lambda identity, _, text: {
        "type": "tool_result",
        "tool_use_id": identity,
        "content": [{"type": "text", "text": text}],
    },
    thoughts=({"type": "thinking", "thinking": "Hm."},),
)
OPENTELEMETRY = Dialect(
    "parts",
    lambda text: [{"type": "text", "content": text}],
    lambda identity, name, x: {
        "type": "tool_call",
        "id": identity,
        "name": name,
        "arguments": {"x": x},
    },
    lambda identity, _, text: {"type": "tool_call_response", "id": identity, "response": text},
    results_from="tool",
)
GEMINI = Dialect(
    "parts",
    lambda text: [{"text": text}],
    lambda _, name, x: {"functionCall": {"name": name, "args": {"x": x}}},
    lambda _, name, text: {"functionResponse": {"name": name, "response": {"result": text}}},
    model="model",
)
DIALECTS = st.sampled_from([OPENAI, ANTHROPIC, OPENTELEMETRY])


def rows_of(
    talks: Sequence[Talk], dialect: Dialect, trace_of: Callable[[int, int], str], whole: bool
) -> list[Json]:
    """Trace a conversation request by request.

    Args:
        talks: what is said in it.
        dialect: how.
        trace_of: the trace of a request, by the number of its talk and its own.
        whole: whether each request repeats the conversation; else it has what is new alone.
    """
    rows: list[Json] = []
    history: list[Json] = [{"role": "system", "content": "Be kind."}]
    new: list[Json] = []

    def request(talk: int, answer: Json) -> None:
        number = len(rows)
        told = {"input": json.dumps(history if whole else new), "output": json.dumps(answer)}
        times = {"startTime": iso(number), "endTime": iso(number + 0.5)}
        kind = {"type": "GENERATION", "name": "llm", "model": "some-model"}
        place = {"id": f"g{number}", "traceId": trace_of(talk, number)}
        rows.append({**place, **kind, **times, **told})
        history.append(answer)
        new.clear()

    def add(messages: list[Json]) -> None:
        history.extend(messages)
        new.extend(messages)

    made = 0
    for number, talk in enumerate(talks):
        add(dialect.request(talk.prompt))
        for step in talk.steps:
            calls = [(f"call_{made + n}", name, x) for n, (name, x, _) in enumerate(step.calls)]
            made += len(calls)
            request(number, dialect.answer(step.text, calls))
            results = [
                (identity, name, result)
                for (identity, name, _), (_, _, result) in zip(calls, step.calls, strict=True)
                if result is not None
            ]
            add(dialect.results(results))
        request(number, dialect.answer(talk.answer, []))
    return rows


def talks_of(session: Session) -> list[Talk]:
    """Return what a session holds as it was said."""

    def step(message: Message) -> Step:
        made = ((c.name, json.loads(c.input)["x"], c.result) for c in message.calls)
        return Step(message.text, tuple(made))

    return [
        Talk(turn.prompt, tuple(map(step, turn.messages[:-1])), turn.messages[-1].text)
        for turn in session.turns
    ]


CUTS: dict[str, Callable[[int, int], str]] = {
    "a trace a request": lambda _, request: f"t{request}",
    "a trace a prompt": lambda talk, _: f"t{talk}",
    "a trace a session": lambda _, __: "t",
}


@given(talks=ANSWERED, cut=st.sampled_from(sorted(CUTS)))
@settings(max_examples=20, deadline=None)
def test_what_was_said_comes_back_from_calls_that_have_no_ids(talks: list[Talk], cut: str) -> None:
    assert talks_of(session_of("s1", rows_of(talks, GEMINI, CUTS[cut], whole=True))) == talks


@given(talks=talks_with(st.none() | WORDS), dialect=DIALECTS, cut=st.sampled_from(sorted(CUTS)))
@settings(max_examples=20, deadline=None)
def test_what_was_said_comes_back_whatever_vendor_and_however_it_was_cut_into_traces(
    talks: list[Talk], dialect: Dialect, cut: str
) -> None:
    assert talks_of(session_of("s1", rows_of(talks, dialect, CUTS[cut], whole=True))) == talks


@given(talks=ANSWERED, dialect=DIALECTS)
@settings(max_examples=20, deadline=None)
def test_what_was_said_comes_back_from_requests_that_repeat_nothing(
    talks: list[Talk], dialect: Dialect
) -> None:
    rows = rows_of(talks, dialect, CUTS["a trace a request"], whole=False)
    assert talks_of(session_of("s1", rows)) == talks


@st.composite
def observed_rows(draw: st.DrawFn) -> tuple[list[Talk], list[Json]]:
    """Make a conversation with observations of its tools, as integrations write them."""
    talks = draw(ANSWERED)
    rows: list[Json] = []
    for row in rows_of(talks, OPENAI, CUTS["a trace a prompt"], whole=True):
        rows.append(row)
        began = len(rows)
        made = json.loads(row["output"]).get("tool_calls", [])
        for number, call in enumerate(made):
            alike = sum(one["function"] == call["function"] for one in made) > 1
            if not draw(st.booleans()):
                continue
            name = draw(st.sampled_from(["{}", "execute_tool {}", "running tool: {}", "tool.{}"]))
            facts = {"tool_call_id": call["id"]} if alike or draw(st.booleans()) else {}
            rows.append(
                {
                    "id": f"o{began}-{number}",
                    "traceId": row["traceId"],
                    "type": draw(st.sampled_from(["TOOL", "SPAN"])),
                    "name": name.format(call["function"]["name"]),
                    "startTime": row["endTime"],
                    "input": call["function"]["arguments"],
                    "output": f"observed {call['id']}",
                    "metadata": facts,
                }
            )
    return talks, rows


@given(made=observed_rows())
@settings(max_examples=20, deadline=None)
def test_observations_of_tools_add_no_calls_and_tell_what_came_back(
    made: tuple[list[Talk], list[Json]],
) -> None:
    talks, rows = made
    session = session_of("s1", rows)
    calls = [call for turn in session.turns for m in turn.messages for call in m.calls]
    said = [call for talk in talks for step in talk.steps for call in step.calls]
    assert [(call.name, json.loads(call.input)["x"]) for call in calls] == [c[:2] for c in said]
    observed = {row["output"] for row in rows if row["id"].startswith("o")}
    for call, (_, _, told) in zip(calls, said, strict=True):
        seen = f"observed {call.id}"
        assert call.result in ((told,) if told is not None else (seen, None))
        assert told is not None or (call.result == seen) == (seen in observed)


KEYS = st.sampled_from(
    [
        *("role", "content", "parts", "type", "text", "messages", "tool_calls", "toolCalls"),
        *("function", "function_call", "functionCall", "name", "arguments", "args", "input"),
        *("output", "id", "call_id", "tool_call_id", "toolCallId", "toolName", "choices"),
        *("candidates", "message", "lc", "kwargs", "additional_kwargs", "tools", "functions"),
        *("response", "result", "status", "attributes", "config", "system", "prompt"),
        *("gen_ai.event.content", "gen_ai.tool.definitions", "llm.tools.0.tool.json_schema"),
    ]
)
TEXTS = st.sampled_from(
    [
        *("user", "assistant", "tool", "system", "model", "human", "ai", "function", "text"),
        *("tool_use", "tool_result", "tool-call", "tool_call", "function_call", "mcp_call"),
        *("function_call_output", "image_url", "blob", "thinking", "None", "", "c1", "{", "[1"),
        *('{"role":"user"}', '[{"tool_calls":[]}]', "data:image/png;base64,AAAA", '"x"'),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.text(max_size=5)
ANY_JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)
KINDS = st.sampled_from(["GENERATION", "SPAN", "TOOL", "AGENT", "EMBEDDING", "EVENT", "odd"])


@st.composite
def any_rows(draw: st.DrawFn) -> list[Json]:
    count = draw(st.integers(1, 5))
    return [
        {
            "id": f"o{number}",
            "traceId": f"t{draw(st.integers(0, 2))}",
            "parentObservationId": draw(st.none() | st.sampled_from(["o0", "o1", "o2", "o3"])),
            "isRootObservation": draw(st.booleans()),
            "type": draw(KINDS),
            "name": draw(st.none() | NAMES),
            "startTime": iso(number),
            "level": draw(st.sampled_from(["DEFAULT", "ERROR"])),
            "statusMessage": draw(st.none() | st.just("why")),
            "input": draw(ANY_JSON | ANY_JSON.map(json.dumps)),
            "output": draw(ANY_JSON | ANY_JSON.map(json.dumps)),
            "metadata": draw(st.none() | st.dictionaries(KEYS, ANY_JSON, max_size=3)),
            "modelParameters": draw(ANY_JSON),
            "toolDefinitions": draw(ANY_JSON),
            "usageDetails": draw(ANY_JSON),
            "model": draw(st.none() | st.just("m")),
        }
        for number in range(count)
    ]


@given(rows=any_rows())
@settings(max_examples=20, deadline=None)
@example(
    rows=[
        {
            "id": "o0",
            "traceId": "t",
            "type": "GENERATION",
            "input": "[" * 2_000 + "]" * 2_000,
            "output": {"role": "assistant", "content": None, "tool_calls": [{"function": {}}]},
        }
    ]
)
def test_any_json_becomes_a_session_that_can_be_stored_and_shown(rows: list[Json]) -> None:
    session = session_of("s1", rows)
    assert session == session_of("s1", rows)
    stored = msgspec.json.decode(msgspec.json.encode(session), type=Session)
    assert stored.turns == session.turns
    assert render_session(session)
    for turn in session.turns:
        for message in turn.messages:
            assert "base64,AAAA" not in message.text
            for call in message.calls:
                assert call.name
                assert not call.input or isinstance(json.loads(call.input), dict)
                assert (call.status == "unanswered") <= (call.result is None)


@given(value=ANY_JSON)
@settings(max_examples=20, deadline=None)
def test_no_binary_data_is_ever_words(value: object) -> None:
    assert "base64," not in request_in(value).text
    assert "base64," not in answer_in(value)
