"""The door to a model, against a real server that misbehaves as real servers do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from debrief.errors import ConfigurationError, ModelError
from debrief.judging.model import litellm_name
from debrief.models.answers import Question, accepted
from debrief.models.choosing import Models, key_name
from debrief.models.language_model import DryRunError, LanguageModel, TooLongError
from debrief.models.usage import Budget, BudgetSpentError, Price, Rates
from debrief.opening import opened
from debrief.settings import Settings, load_settings
from debrief.state import State
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.waiting import LONG

KEY = "sk-or-v1-0123456789abcdef"
PRICE = Price(rates=Rates(input=1e-6, output=2e-6, cache_read=1e-7, cache_write=1e-6))
Make = Callable[..., LanguageModel]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda call: Reply("Fine.")) as running:
        yield running


@pytest.fixture
def make(server: OpenAIServer) -> Make:
    def model(name: str = "openai/tiny", **options: Any) -> LanguageModel:
        chosen = {"timeout": LONG, "pause": 0.01, "attempts": 4, **options}
        return LanguageModel(name, api_key=KEY, base_url=server.url, **chosen)

    return model


def in_turn(*replies: Reply) -> Callable[[Call], Reply]:
    """Answer the first call with the first reply and so on, the last one for ever."""
    return lambda call: replies[min(call.number, len(replies)) - 1]


def test_an_answer_comes_with_its_tokens(server: OpenAIServer, make: Make) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 600},
    }
    server.reply = lambda call: Reply("Four.", usage=usage)
    answer = make(price=PRICE).ask("2 + 2?")
    assert answer.text == "Four."
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1000, 50)
    assert answer.usage.cache_read_tokens == 600
    assert answer.usage.cost_usd == pytest.approx(400e-6 + 600e-7 + 100e-6)
    assert answer.model == "openai/tiny"
    assert server.calls[0].user == opened("2 + 2?")
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_temperature_is_always_sent_until_a_model_refuses_it(
    server: OpenAIServer, make: Make
) -> None:
    make().ask("x")
    make(temperature=0.7).ask("x")
    assert [call.body["temperature"] for call in server.calls] == [0, 0.7]
    error = {
        "message": "Unsupported value: 'temperature' does not support 0",
        "code": "unsupported",
    }
    server.reply = lambda call: (
        Reply(status=400, error=error) if "temperature" in call.body else Reply("Fine.")
    )
    stubborn = make()
    assert [stubborn.ask(question).text for question in "ab"] == ["Fine.", "Fine."]
    assert ["temperature" in call.body for call in server.calls[2:]] == [True, False, False]
    assert stubborn.meter.spent.sent == 3


FORM = {"type": "object", "properties": {"done": {"type": "integer"}}, "required": ["done"]}
ASKED = Question(constant="Read it.", text="Is it done?", form=FORM)


def test_a_form_is_sent_until_a_provider_refuses_it_and_what_is_constant_comes_first(
    server: OpenAIServer, make: Make
) -> None:
    server.reply = lambda call: Reply('{"done": 1}')
    assert make().ask(ASKED).text == '{"done": 1}'
    (call,) = server.calls
    assert call.body["response_format"]["json_schema"]["schema"] == FORM
    assert call.body["response_format"]["json_schema"]["strict"] is True
    assert (call.system, call.user) == (opened("Read it."), "Is it done?")
    error = {"message": "This response_format type is unavailable now", "code": "invalid"}
    server.reply = lambda call: (
        Reply(status=400, error=error) if "response_format" in call.body else Reply("Fine.")
    )
    stubborn = make()
    assert [stubborn.ask(ASKED, number).text for number in range(2)] == ["Fine.", "Fine."]
    sent = ["response_format" in call.body for call in server.calls[1:]]
    assert sent == [True, False, False]
    assert "temperature" in server.calls[-1].body


def test_a_provider_that_refuses_two_settings_is_asked_without_both(
    server: OpenAIServer, make: Make
) -> None:
    def reply(call: Call) -> Reply:
        for name in ("response_format", "temperature"):
            if name in call.body:
                return Reply(status=400, error={"message": f"Unknown parameter: '{name}'"})
        return Reply("Fine.")

    server.reply = reply
    assert make().ask(ASKED).text == "Fine."
    assert len(server.calls) == 3


def test_an_answer_that_is_asked_for_once_more_is_kept_on_its_own(
    server: OpenAIServer, make: Make, tmp_path: Path
) -> None:
    server.reply = lambda call: Reply(f"answer {call.number}")
    said = [
        [accepted([model.ask("x", sample)]).text for sample in (0, 1, 2)]
        for model in (make(cache=State(tmp_path / "a.sqlite")) for _ in range(2))
    ]
    assert said == [["answer 1", "answer 2", "answer 3"]] * 2
    assert len(server.calls) == 3


def test_an_answer_is_kept_for_the_form_that_was_asked_for(
    server: OpenAIServer, make: Make, tmp_path: Path
) -> None:
    server.reply = lambda call: Reply(f"answer {call.number}")
    model = make(cache=State(tmp_path / "a.sqlite"))
    forms = (None, FORM, {**FORM, "required": []}) * 2
    questions = (Question(text="Is it done?", form=form) for form in forms)
    said = [accepted([model.ask(question)]).text for question in questions]
    assert said == ["answer 1", "answer 2", "answer 3"] * 2
    assert accepted([model.ask("Is it done?")]).text == "answer 1"


def test_an_unknown_price_is_none_and_never_0(make: Make) -> None:
    model = make()
    assert model.ask("x").usage.cost_usd is None
    assert model.meter.spent.usage.cost_usd is None


def test_usage_that_the_server_does_not_tell_has_no_cost(server: OpenAIServer, make: Make) -> None:
    server.reply = lambda call: Reply("Fine.", usage={})
    assert make(price=PRICE).ask("x").usage.cost_usd is None


def test_openrouters_own_bill_wins_over_a_table(server: OpenAIServer, make: Make) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.25}
    server.reply = lambda call: Reply("Fine.", usage=usage)
    assert make("openrouter/acme/tiny", price=PRICE).ask("x").usage.cost_usd == 0.25
    assert server.calls[0].body["model"] == "acme/tiny"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Reply(status=429), id="429"),
        pytest.param(Reply(status=500), id="500"),
        pytest.param(Reply(status=502, raw=b"<html>Bad gateway</html>"), id="502 as a page"),
        pytest.param(Reply(status=529), id="529"),
        pytest.param(Reply(manner="cut"), id="body cut short"),
        pytest.param(Reply(manner="close"), id="closed without a word"),
        pytest.param(Reply(raw=b"<html>Login</html>"), id="a page under 200"),
        pytest.param(Reply(raw=b'{"id": "x", "choi'), id="half a JSON under 200"),
        pytest.param(Reply(raw=b""), id="nothing under 200"),
        pytest.param(Reply(error={"message": "upstream", "code": 502}), id="an error under 200"),
    ],
)
def test_a_failure_that_passes_is_sent_again(
    server: OpenAIServer, make: Make, fault: Reply
) -> None:
    server.reply = in_turn(fault, fault, Reply("At last."))
    model = make()
    assert model.ask("x").text == "At last."
    assert (model.meter.spent.sent, model.meter.spent.calls) == (3, 1)


def test_a_server_that_hangs_is_asked_again_and_given_up_on_with_a_reason(
    server: OpenAIServer, make: Make
) -> None:
    server.reply = in_turn(Reply(manner="hang"), Reply("At last."))
    assert make(timeout=0.3, attempts=40).ask("x").text == "At last."
    server.reply = lambda call: Reply(manner="hang")
    with pytest.raises(ModelError, match=r"openai/tiny: nothing came for 0\.1 s"):
        make(timeout=0.1, attempts=2).ask("x")


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, {"message": f"Incorrect API key provided: {KEY}"}, "HTTP 401.*Check the key"),
        (402, {"message": "no credits"}, "HTTP 402.*Look at the account"),
        (429, {"message": "quota", "code": "insufficient_quota"}, "Look at the account"),
        (404, {"message": "no such model", "code": "model_not_found"}, "no such model"),
        (400, {"message": "bad parameter"}, "bad parameter"),
    ],
)
def test_a_failure_that_stays_is_not_sent_again(
    server: OpenAIServer, make: Make, status: int, error: dict[str, str], said: str
) -> None:
    server.reply = lambda call: Reply(status=status, error=error)
    with pytest.raises(ModelError, match=said) as caught:
        make().ask("x")
    assert len(server.calls) == 1
    assert KEY not in str(caught.value)


def test_the_server_says_how_long_to_wait(server: OpenAIServer, make: Make) -> None:
    server.reply = in_turn(Reply(status=429, headers={"retry-after": "0.4"}), Reply("Now."))
    start = time.monotonic()
    assert make().ask("x").text == "Now."
    assert 0.4 <= time.monotonic() - start < LONG


def test_a_server_that_asks_for_an_hour_is_given_up_on(server: OpenAIServer, make: Make) -> None:
    server.reply = lambda call: Reply(status=429, headers={"retry-after": "3600"})
    with pytest.raises(ModelError, match="HTTP 429"):
        make().ask("x")
    assert len(server.calls) == 1


def test_a_prompt_that_is_too_long_is_a_failure_of_its_own_kind(
    server: OpenAIServer, make: Make
) -> None:
    error = {
        "message": "This model's maximum context length is 8192 tokens.",
        "code": "context_length_exceeded",
    }
    server.reply = lambda call: Reply(status=400, error=error)
    with pytest.raises(TooLongError, match="8192"):
        make().ask("x")


def allowed(call: Call) -> int:
    """Return the tokens that a call allows the answer."""
    return int(call.body.get("max_completion_tokens") or call.body["max_tokens"])


LIMITS = {
    "at most": "max_tokens is too large: 64000. This model supports at most 8192 completion tokens",
    "a range": "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    "exclusive": (
        "a maxOutputTokens value of 64000 but the supported range is from 1 (inclusive) to 8193 "
        "(exclusive)"
    ),
    "more than": "max_tokens: 64000 > 8192, the maximum for claude-3-5-haiku-20241022",
    "thousands": "max_tokens 64,000 is over the limit of 8,192 output tokens.",
    "no number": "Unsupported value: max_tokens is too large",
    "credits": (
        "This request requires more credits, or fewer max_tokens. You requested up to 64000 "
        "tokens, but can only afford 8192."
    ),
}
"""How providers say that they give at most 8,192 tokens."""


@pytest.mark.parametrize("said", LIMITS.values(), ids=LIMITS)
def test_a_limit_of_the_answer_that_a_refusal_names_is_kept_to_from_then_on(
    server: OpenAIServer, make: Make, said: str
) -> None:
    def reply(call: Call) -> Reply:
        if allowed(call) <= 8192:
            return Reply("Fine.")
        return Reply(status=402 if "credits" in said else 400, error={"message": said})

    server.reply = reply
    model = make()
    assert [model.ask(question).text for question in "abc"] == ["Fine."] * 3
    sent = [allowed(call) for call in server.calls]
    assert sent[0] == 64_000
    assert 8_000 <= sent[-1] <= 8_192
    assert sent[-3:] == [sent[-1]] * 3
    assert len(sent) == 4 or said == LIMITS["no number"]


@pytest.mark.parametrize(
    "form",
    [
        (
            "max_tokens is too large: {sent}. This model's maximum context length is {window} "
            "tokens and your request has {prompt} input tokens ({sent} > {window} - {prompt})."
        ),
        (
            "This model's maximum context length is {window} tokens. However, you requested "
            "{whole} tokens ({prompt} in the messages, {sent} in the completion)."
        ),
        "input length and `max_tokens` exceed context limit: {prompt} + {sent} > {window}",
    ],
    ids=["vLLM", "OpenAI", "Anthropic"],
)
def test_an_answer_may_have_what_the_prompt_leaves_of_a_small_window(
    server: OpenAIServer, make: Make, form: str
) -> None:
    window = 16_384

    def reply(call: Call) -> Reply:
        prompt, sent = len(call.user) // 4, allowed(call)
        if prompt + sent <= window:
            return Reply("Fine.")
        numbers = {"window": window, "prompt": prompt, "sent": sent, "whole": prompt + sent}
        return Reply(status=400, error={"message": form.format(**numbers)})

    server.reply = reply
    model = make()
    assert model.ask("word " * 5_000).text == "Fine."
    assert len(server.calls) == 2
    assert allowed(server.calls[1]) == window - len(server.calls[0].user) // 4
    assert model.ask("short").text == "Fine."
    assert len(server.calls) == 3, "the window is known now"
    assert model.ask("word " * 10_000).text == "Fine."
    with pytest.raises(TooLongError):
        model.ask("word " * 20_000)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, {"message": "The model `tiny` does not exist", "code": "model_not_found"}),
        (404, {"message": "Not Found"}),
        (404, {"message": "No endpoints found for tiny."}),
        (400, {"message": "openai/tiny is not a valid model ID"}),
        (400, {"message": "Model Not Exist"}),
    ],
)
def test_a_model_that_the_provider_does_not_know_is_asked_once(
    server: OpenAIServer, make: Make, status: int, error: dict[str, str]
) -> None:
    server.reply = lambda call: Reply(status=status, error=error)
    model = make()
    for question in "abc":
        with pytest.raises(ModelError, match="Check the name openai/tiny, or the base URL"):
            model.ask(question)
    assert len(server.calls) == 1


def test_a_question_that_is_refused_does_not_close_the_model(
    server: OpenAIServer, make: Make
) -> None:
    server.reply = in_turn(Reply(status=400, error={"message": "bad parameter"}), Reply("Fine."))
    model = make()
    with pytest.raises(ModelError, match="bad parameter"):
        model.ask("a")
    assert model.ask("b").text == "Fine."


def test_a_model_that_stays_busy_is_closed_and_one_answer_opens_the_count_again(
    server: OpenAIServer, make: Make
) -> None:
    busy = Reply(status=429)
    server.reply = in_turn(busy, busy, Reply("Fine."), busy)
    model, failures = make(attempts=1), 0
    for question in "abcdefgh":
        try:
            model.ask(question)
        except ModelError:
            failures += 1
    assert failures == 7
    assert len(server.calls) == 6


def test_a_model_is_asked_again_once_the_limit_that_closed_it_is_over(
    server: OpenAIServer, make: Make
) -> None:
    busy = Reply(status=429, headers={"retry-after": "1"})
    server.reply = in_turn(busy, busy, busy, Reply("Fine."))
    model = make(attempts=1)
    for question in "abcd":
        with pytest.raises(ModelError, match="its limit lasts until"):
            model.ask(question)
    assert len(server.calls) == 3
    time.sleep(1)
    assert model.ask("e").text == "Fine."


@pytest.mark.parametrize("status", [404, 405, 409, 410, 413, 418, 422, 451])
def test_no_status_of_400_and_more_is_sent_again_but_what_passes(
    server: OpenAIServer, make: Make, status: int
) -> None:
    server.reply = lambda call: Reply(status=status, error={"message": "no"})
    with pytest.raises(ModelError, match=f"HTTP {status}"):
        make().ask("x")
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        (Reply(status=500), 2),
        (Reply(status=429), 2),
        (Reply(status=429, headers={"retry-after": "1"}), 2),
        (Reply(status=429, headers={"retry-after": "60"}), 1),
        (Reply(manner="close"), 2),
    ],
    ids=["500", "429", "soon", "in a minute", "closed"],
)
def test_where_a_person_waits_a_question_is_sent_twice_at_most_and_within_seconds(
    server: OpenAIServer, make: Make, fault: Reply, sent: int
) -> None:
    server.reply = lambda call: fault
    begun = time.monotonic()
    with pytest.raises(ModelError):
        make(fail_fast=True, attempts=8, pause=0.5).ask("x")
    assert len(server.calls) == sent
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("", finish="length"), "thought for all 64,000 tokens .* DEBRIEF_MAX_TOKENS"),
        (Reply("", finish="content_filter"), "content filter"),
    ],
)
def test_an_empty_answer_that_would_be_empty_again_says_why(
    server: OpenAIServer, make: Make, reply: Reply, said: str
) -> None:
    server.reply = lambda call: reply
    model = make()
    with pytest.raises(ModelError, match=said):
        model.ask("x")
    assert (len(server.calls), model.meter.spent.calls) == (1, 1)


def test_no_more_calls_than_allowed_are_under_way_at_once(server: OpenAIServer, make: Make) -> None:
    server.reply = lambda call: Reply("Fine.", latency=0.02 if server.most_at_once >= 3 else 0.5)
    model = make(concurrency=3)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(model.ask, (str(number) for number in range(24))))
    assert server.most_at_once == 3


def test_only_accepted_answers_are_kept(server: OpenAIServer, make: Make, tmp_path: Path) -> None:
    cache = State(tmp_path / "answers.sqlite")
    model = make(cache=cache)
    model.ask("x")
    assert not model.ask("x").recalled
    accepted([model.ask("x")])
    again = make(cache=State(tmp_path / "answers.sqlite")).ask("x")
    assert again.recalled
    assert again.text == "Fine."
    assert len(server.calls) == 3


def test_an_accepted_answer_after_refusals_is_kept_under_the_first_question(
    server: OpenAIServer, make: Make, tmp_path: Path
) -> None:
    server.reply = in_turn(Reply("Hm?"), Reply("Four."))
    model = make(cache=State(tmp_path / "a.sqlite"), price=PRICE)
    first = model.ask("2 + 2?")
    second = model.ask("2 + 2?\nA number, please.")
    whole = accepted([first, second])
    assert whole.text == "Four."
    assert whole.usage.input_tokens == first.usage.input_tokens + second.usage.input_tokens
    recalled = model.ask("2 + 2?")
    assert (recalled.text, recalled.usage.cost_usd) == ("Four.", whole.usage.cost_usd)
    assert len(server.calls) == 2
    assert model.meter.spent.recalled == 1


@pytest.mark.parametrize("change", ["model", "server", "prompt", "part"])
def test_another_question_is_another_key(make: Make, change: str) -> None:
    model = make()
    key = model.key_of("ask", "ab", "c")
    other = make("openai/other") if change == "model" else model
    if change == "server":
        other = LanguageModel("openai/tiny", api_key=KEY, base_url="http://127.0.0.1:1/v1")
    parts = {"prompt": ("ask", "ab", "d"), "part": ("ask", "a", "bc")}.get(change)
    assert other.key_of(*(parts or ("ask", "ab", "c"))) != key
    assert make().key_of("ask", "ab", "c") == key


def test_a_budget_of_calls_stops_new_ones_and_keeps_the_rest(
    server: OpenAIServer, make: Make
) -> None:
    model = make(budget=Budget(max_calls=3))
    for number in range(3):
        model.ask(str(number))
    with pytest.raises(BudgetSpentError, match="max_calls is reached: 3 of 3"):
        model.ask("one more")
    assert len(server.calls) == 3


def test_a_budget_of_money_holds_for_many_threads(server: OpenAIServer, make: Make) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    server.reply = lambda call: Reply("Fine.", latency=0.02, usage=usage)
    budget = Budget(max_cost_usd=0.02)
    model = make(budget=budget, price=PRICE, concurrency=8)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(model.ask, str(number)) for number in range(40)]
    refused = [future.exception() for future in asked if future.exception()]
    spent = model.meter.spent.usage.cost_usd
    assert spent is not None
    assert 0.018 <= spent <= 0.02 + 8 * (0.002 - 0.0016)
    assert len(server.calls) == 40 - len(refused)
    assert isinstance(refused[0], BudgetSpentError)
    assert "max_cost_usd is reached" in str(refused[0])


def test_a_budget_is_shared_by_processes_of_one_run(make: Make, tmp_path: Path) -> None:
    def model(run: str) -> LanguageModel:
        state = State(tmp_path / "a.sqlite")
        return make(budget=Budget(max_calls=2, run=run, state=state))

    model("monday").ask("a")
    model("monday").ask("b")
    with pytest.raises(BudgetSpentError):
        model("monday").ask("c")
    assert model("tuesday").ask("c").text == "Fine."


def test_money_cannot_be_limited_where_nobody_knows_the_price(make: Make) -> None:
    with pytest.raises(ConfigurationError, match="price is not known"):
        make(budget=Budget(max_cost_usd=1.0))


def test_failed_calls_give_back_what_was_set_aside(server: OpenAIServer, make: Make) -> None:
    server.reply = lambda call: Reply(status=400)
    model = make(budget=Budget(max_cost_usd=0.002), price=PRICE)
    for number in range(5):
        with pytest.raises(ModelError, match="HTTP 400"):
            model.ask(str(number))


def test_a_dry_run_asks_nothing_and_says_what_it_would_cost(
    server: OpenAIServer, make: Make
) -> None:
    model = make(price=PRICE, dry_run=True)
    with pytest.raises(DryRunError):
        model.ask("one two three four")
    spent = model.meter.spent
    assert server.calls == []
    assert (spent.calls, spent.sent, spent.usage.input_tokens) == (1, 0, 12)
    assert spent.usage.cost_usd == pytest.approx(12e-6 + 500 * 2e-6)


def test_a_model_for_dspy_takes_the_same_way_and_adds_up(server: OpenAIServer, make: Make) -> None:
    server.reply = in_turn(Reply(status=500), Reply("One."), Reply("Two."))
    model = make(price=PRICE)
    lm = model.new_lm()
    assert lm("first") == ["One."]
    assert lm("second") == ["Two."]
    assert (model.meter.spent.sent, model.meter.spent.calls) == (3, 2)


def test_a_provider_that_only_litellm_knows_is_asked_through_it(
    server: OpenAIServer, make: Make
) -> None:
    server.reply = in_turn(Reply(status=429), Reply("Through LiteLLM."))
    model = make("hosted_vllm/tiny")
    assert model.ask("x").text == "Through LiteLLM."
    assert server.calls[0].body["model"] == "tiny"


def test_waiting_threads_of_a_closed_model_do_not_ask(server: OpenAIServer, make: Make) -> None:
    server.reply = lambda call: Reply(status=401, latency=0.1)
    model = make(concurrency=1)
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(model.ask, str(number)) for number in range(6)]
    assert all(isinstance(future.exception(), ModelError) for future in asked)
    assert len(server.calls) == 1


def settings(home: Path, **values: str) -> Settings:
    return load_settings({"DEBRIEF_HOME": str(home), **values})


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("openrouter/x-ai/grok-4.1-fast", "OPENROUTER_API_KEY"),
        ("gpt-4o-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("nano-gpt/x", "NANO_GPT_API_KEY"),
        ("together_ai/x/y", "TOGETHERAI_API_KEY"),
    ],
)
def test_the_key_is_the_providers(model: str, key: str) -> None:
    assert key_name(model) == key


def test_a_missing_key_is_named_and_a_server_on_this_machine_needs_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"OPENROUTER_API_KEY is not set.*\.env"):
        Models(settings(tmp_path)).get("openrouter/acme/tiny")
    assert Models(settings(tmp_path)).get("ollama/llama3").name == "ollama/llama3"


@pytest.mark.parametrize(
    ("given", "meant"), [("nosuch/model", ""), ("antropic/claude", " (did you mean anthropic?)")]
)
def test_a_model_of_no_known_provider_is_named_beside_the_key(
    tmp_path: Path, given: str, meant: str
) -> None:
    told = settings(tmp_path, DEBRIEF_MODEL=given)
    with pytest.raises(ConfigurationError) as wrong:
        Models(told).get(litellm_name(given))
    provider = given.partition("/")[0]
    assert wrong.value.culprit == given
    asked = "so OpenRouter is asked, and OPENROUTER_API_KEY is not set"
    assert wrong.value.reason == f"no provider is called {provider}{meant}, {asked}"
    assert Models(told.with_given(model="")).get("ollama/llama3")


def test_one_run_shares_cache_budget_and_count_between_its_models(tmp_path: Path) -> None:
    with OpenAIServer(lambda call: Reply("Fine.")) as server:
        models = Models(
            settings(tmp_path, DEBRIEF_MODEL_BASE_URL=server.url, DEBRIEF_MAX_CALLS="2")
        )
        assert models.get("openai/a") is models.get("openai/a")
        models.get("openai/a").ask("x")
        models.get("openai/b").ask("x")
        with pytest.raises(ModelError, match="max_calls"):
            models.get("openai/b").ask("y")
    assert models.spent.calls == 2
    assert (tmp_path / "cache" / "answers.sqlite").is_file()


def test_a_fallback_is_asked_only_when_it_is_configured(tmp_path: Path) -> None:
    def reply(model: str) -> Reply:
        return Reply(status=400) if model == "a" else Reply("From b.")

    with OpenAIServer(lambda call: reply(call.body["model"])) as server:
        base = {"DEBRIEF_MODEL_BASE_URL": server.url}
        with pytest.raises(ModelError, match="openai/a"):
            Models(settings(tmp_path, **base)).get("openai/a").ask("x")
        models = Models(settings(tmp_path, **base, DEBRIEF_FALLBACK_MODELS="openai/b"))
        assert models.get("openai/a").ask("x").model == "openai/b"
        assert models.spent.calls == 1


def test_the_cache_can_be_turned_off(tmp_path: Path) -> None:
    Models(settings(tmp_path, DEBRIEF_CACHE="off", OPENAI_API_KEY="k")).get("openai/a")
    assert not (tmp_path / "cache").exists()
