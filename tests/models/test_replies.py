"""What comes back over the wire, in all the forms that providers give it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import ModelError
from debrief.models.language_model import LanguageModel
from debrief.models.rate_limits import seconds_until
from tests.models.odd_answers import TEXTS, VALUES, spoiled
from tests.models.openai_server import OpenAIServer, Reply
from tests.models.test_language_model import in_turn
from tests.waiting import LONG

KEY = "sk-or-v1-0123456789abcdef"
Make = Callable[..., LanguageModel]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda call: Reply("Fine.")) as running:
        yield running


@pytest.fixture
def make(server: OpenAIServer) -> Make:
    def model(**options: Any) -> LanguageModel:
        chosen = {"timeout": LONG, "pause": 0.01, "attempts": 4, **options}
        return LanguageModel("openai/tiny", api_key=KEY, base_url=server.url, **chosen)

    return model


def spoken(text: str = "Fine.", **more: object) -> bytes:
    """A reply in the protocol's form, with further fields."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    said = {"id": "c", "object": "chat.completion", "created": 1, "model": "tiny"}
    return json.dumps({**said, "choices": [choice], **more}, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": "1000", "completion_tokens": "50"}, (1000, 50)),
        ({"prompt_tokens": 1000.0, "completion_tokens": 50.5}, (1000, 50)),
        ({"prompt_tokens": None, "completion_tokens": 50, "prompt_tokens_details": None}, (0, 50)),
        ({"prompt_tokens": "many", "completion_tokens": -1}, (0, 0)),
        ({"prompt_tokens": 10**30, "completion_tokens": True}, (0, 0)),
        ({"prompt_tokens": 7, "prompt_tokens_details": ["x"], "total_tokens": []}, (7, 0)),
        ("none", (0, 0)),
        (None, (0, 0)),
    ],
)
def test_what_can_be_read_of_a_usage_is_counted_and_the_rest_costs_no_answer(
    server: OpenAIServer, make: Make, usage: object, counted: tuple[int, int]
) -> None:
    server.reply = lambda call: Reply(raw=spoken(usage=usage))
    answer = make().ask("x")
    assert answer.text == "Fine."
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == counted


@pytest.mark.parametrize(
    ("raw", "kind", "text"),
    [
        (spoken("Où? Là."), "application/json", "Où? Là."),
        (spoken("Où? Là.").decode().encode("latin-1"), "application/json; charset=latin-1", "Où?"),
        (spoken("Où? Là.").decode().encode("latin-1"), "application/json", "O\ufffd? L\ufffd."),
        (spoken("Où? Là.").decode().encode("utf-16"), "application/json", "Où? Là."),
        (json.dumps(json.loads(spoken("€"))).encode(), "text/plain; charset=none", "€"),
        (spoken("x").replace(b'"x"', rb'"a \ud83d b"'), "application/json", "a \ufffd b"),
        (spoken("x").replace(b'"x"', rb'"\ud83d\ude00"'), "application/json", "\U0001f600"),
    ],
)
def test_an_answer_in_another_encoding_is_asked_for_once_and_can_be_encoded(
    server: OpenAIServer, make: Make, raw: bytes, kind: str, text: str
) -> None:
    server.reply = lambda call: Reply(raw=raw, headers={"content-type": kind})
    assert text in make().ask("x").text
    assert len(server.calls) == 1


STREAM = b'data: {"choices": [{"delta": {"content": "Fine."}}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(raw=STREAM, headers={"content-type": "text/event-stream"}), "a stream, which"),
        (Reply(raw=STREAM), "a stream, which was not asked for"),
        (Reply(raw=b'{"message": 1}\n{"message": 2}\n'), "something else than JSON"),
        (Reply(raw=b"Sure! Here it is."), "something else than JSON"),
        (Reply(raw=b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
        (Reply(raw=b'{"choices": 1' + b"0" * 5_000 + b"}"), "endless number"),
        (Reply(raw=b'["Fine."]'), "not the form of an answer"),
        (Reply(raw=b'{"choices": {"a": "Fine."}}'), "not the form of an answer"),
        (Reply(raw=b'{"choices": [{"message": {"tool_calls": 1}}]}'), "not the form of an answer"),
    ],
)
def test_a_reply_that_is_no_answer_and_stays_so_is_asked_for_twice(
    server: OpenAIServer, make: Make, reply: Reply, said: str
) -> None:
    server.reply = lambda call: reply
    with pytest.raises(ModelError, match=said):
        make(attempts=8).ask("x")
    assert len(server.calls) == 2
    server.reply = in_turn(Reply(), Reply(), reply, Reply("At last."))
    assert make().ask("y").text == "At last."


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_reply_is_an_answer_that_can_be_kept_or_a_named_failure(data: st.DataObject) -> None:
    whole = spoken("Fine.", usage={"prompt_tokens": 5}).decode()
    body = data.draw(spoiled(whole) | st.builds(json.dumps, VALUES) | TEXTS)
    with OpenAIServer(lambda call: Reply(raw=body.encode("utf-8", "surrogatepass"))) as server:
        model = LanguageModel(
            "openai/tiny", api_key=KEY, base_url=server.url, timeout=LONG, pause=0, attempts=2
        )
        said = outcome_of(model)
        assert msgspec.json.decode(msgspec.json.encode(said)) == msgspec.to_builtins(said)
        assert len(server.calls) <= 2


def outcome_of(model: LanguageModel) -> object:
    """What asking comes to: the answer's text and usage, or why there is none."""
    try:
        answer = model.ask("x")
    except ModelError as error:
        return str(error)
    return [answer.text, answer.usage]


def at_epoch(seconds: float, scale: int = 1) -> str:
    return str(round((time.time() + seconds) * scale))


def as_date(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


DAY = 86_400
LIMITS = {
    "OpenAI": lambda: {
        **{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "24h0m0s"},
        **{"x-ratelimit-remaining-tokens": "149984", "x-ratelimit-reset-tokens": "6ms"},
    },
    "Groq": lambda: {
        **{"x-ratelimit-remaining-requests": "12", "x-ratelimit-reset-requests": "7.66s"},
        **{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1440m0.5s"},
    },
    "Anthropic": lambda: {
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": as_date(DAY),
    },
    "OpenRouter": lambda: {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": at_epoch(DAY, 1000)},
    "seconds since 1970": lambda: {"X-RateLimit-Reset": at_epoch(DAY)},
    "Cerebras": lambda: {
        **{"x-ratelimit-remaining-requests-day": "0"},
        **{"x-ratelimit-reset-requests-day": f"{DAY}.382", "x-ratelimit-reset-tokens-minute": "9"},
    },
    "draft": lambda: {"RateLimit-Reset": str(DAY)},
    "Retry-After": lambda: {"Retry-After": str(DAY)},
}


@pytest.mark.parametrize("provider", LIMITS)
def test_a_limit_of_a_day_is_not_waited_for_closes_the_model_and_says_until_when(
    server: OpenAIServer, make: Make, provider: str
) -> None:
    server.reply = lambda call: Reply(status=429, headers=LIMITS[provider]())
    model = make(attempts=8)
    until = datetime.now(UTC) + timedelta(seconds=DAY)
    said = set()
    for question in "abcdef":
        with pytest.raises(ModelError) as caught:
            model.ask(question)
        said |= {str(caught.value)}
    assert len(server.calls) == 1
    named = [datetime.fromisoformat(found + "+00:00") for text in said for found in MOMENT(text)]
    assert named
    assert all(abs(moment - until) < timedelta(minutes=5) for moment in named)


MOMENT = re.compile(r"lasts until ([\d-]+ [\d:]+) UTC\. Run again after that").findall


@pytest.mark.parametrize(
    "error",
    [
        {"code": 429, "metadata": {"headers": {"X-RateLimit-Reset": "MILLISECONDS"}}},
        {"code": 429, "details": [{"@type": "RetryInfo", "retryDelay": "86400s"}]},
    ],
)
def test_a_limit_that_only_the_body_tells_is_read(
    server: OpenAIServer, make: Make, error: dict[str, Any]
) -> None:
    said = {"message": "Rate limit exceeded: free-models-per-day", **error}
    text = json.dumps({"error": said}).replace("MILLISECONDS", at_epoch(DAY, 1000))
    server.reply = lambda call: Reply(status=429, raw=text.encode())
    with pytest.raises(ModelError, match="its limit lasts until"):
        make(attempts=8).ask("x")
    assert len(server.calls) == 1


def test_a_limit_that_resets_soon_is_waited_for(server: OpenAIServer, make: Make) -> None:
    soon = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    server.reply = in_turn(Reply(status=429, headers=soon), Reply("Now."))
    start = time.monotonic()
    assert make().ask("x").text == "Now."
    assert 0.3 <= time.monotonic() - start < LONG


@given(text=st.text(max_size=30) | st.from_regex(r"\d{1,22}(\.\d+)?[a-z]{0,2}", fullmatch=True))
def test_no_header_breaks_the_reading_of_a_limit(text: str) -> None:
    wait = seconds_until(text, datetime.now(UTC))
    assert wait is None or 0 <= wait < 500 * DAY


CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "finish", "said"),
    [
        ({"content": None, "tool_calls": [CALL]}, "tool_calls", "called a tool"),
        ({"content": "", "tool_calls": [CALL]}, "stop", "called a tool"),
        ({"content": None, "function_call": {"name": "look"}}, "function_call", "called a tool"),
        ({"content": None, "reasoning_content": "It is 4."}, "stop", "ended after its thinking"),
        ({"content": "", "reasoning": "It is 4."}, "stop", "ended after its thinking"),
        ({"content": None, "refusal": "I cannot."}, "stop", "refuses to answer"),
        ({"content": "", "reasoning": "So…"}, "length", "thought for all 64,000 tokens"),
        ({"content": "<think>So…"}, "length", "thought for all 64,000 tokens"),
        ({"content": ""}, "content_filter", "content filter"),
    ],
)
def test_each_cause_of_an_answer_without_words_has_its_own_sentence_and_is_paid_for_once(
    server: OpenAIServer, make: Make, message: dict[str, object], finish: str, said: str
) -> None:
    choices = [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]
    server.reply = lambda call: Reply(raw=spoken(choices=choices))
    model = make()
    with pytest.raises(ModelError, match=said):
        model.ask("x")
    assert (len(server.calls), model.meter.spent.calls) == (1, 1)


def test_words_beside_a_call_or_a_thought_are_an_answer(server: OpenAIServer, make: Make) -> None:
    message = {"content": "Four.", "tool_calls": [CALL], "reasoning_content": "2 + 2"}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    server.reply = lambda call: Reply(raw=spoken(choices=choices))
    assert make().ask("x").text == "Four."
