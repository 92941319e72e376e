"""Two sessions scored and judged, as a run does it, by servers that answer in odd ways."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from debrief.cli.asking import agree, estimate_of
from debrief.evaluation import holds_answer
from debrief.evaluators import make_evaluators
from debrief.judging.evaluation import evaluate_week
from debrief.scoring.scorer import score_week
from debrief.settings import load_settings
from tests.faults.judging import score_of, session_of
from tests.models.openai_server import Call, OpenAIServer, Reply, judged

SESSIONS = [session_of(0), session_of(1)]
ANNOUNCED = len(SESSIONS)
KEY = "sk-loopback-0123456789"
BUSY_DAY = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "24h0m0s"}
TOOL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def good(call: Call) -> Reply:
    """What a good model answers."""
    if '<judge name="' in call.system:
        return score_of(call)
    return Reply(judged(0.9))


def said(call: Call, **more: object) -> dict[str, Any]:
    """A good answer in the protocol's form, with other fields of its own."""
    message = {"role": "assistant", "content": good(call).content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
        **more,
    }


def body(text: str | bytes, kind: str = "application/json", status: int = 200) -> Reply:
    """A reply of these bytes."""
    raw = text.encode() if isinstance(text, str) else text
    return Reply(raw=raw, status=status, headers={"content-type": kind})


def refusal(status: int, message: str, code: str = "", **headers: str) -> Reply:
    """A refusal in the protocol's form."""
    return Reply(status=status, error={"message": message, "code": code}, headers=headers)


def in_form(message: dict[str, object], finish: str = "stop") -> Callable[[Call], Reply]:
    """A reply whose message is another one."""
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish, "index": 0}
    return lambda call: body(json.dumps(said(call, choices=[choice])))


def with_fields(**more: object) -> Callable[[Call], Reply]:
    """A good answer with other fields of its reply."""
    return lambda call: body(json.dumps(said(call, **more)))


def spoken(change: Callable[[str], str]) -> Callable[[Call], Reply]:
    """A good answer with other words."""
    return lambda call: Reply(change(good(call).content or ""))


def once(first: Reply) -> Callable[[Call], Reply]:
    """An odd reply to the first request alone."""
    return lambda call: first if call.number == 1 else good(call)


def most_tokens(call: Call) -> int:
    """How long an answer a request allows."""
    return int(call.body.get("max_completion_tokens") or call.body.get("max_tokens") or 0)


def unless(is_fine: Callable[[Call], bool], reply: Reply) -> Callable[[Call], Reply]:
    """A reply to requests that have something which the server does not take."""
    return lambda call: good(call) if is_fine(call) else reply


class Odd(Struct, frozen=True):
    """How a server behaves, and what comes of it."""

    reply: Callable[[Call], Reply]
    why: str = ""
    """What every failed row says; empty where both sessions are scored."""
    requests: int = 2 * ANNOUNCED
    """At most, those included that fail on the way."""


SENT_AGAIN = 8 * 2 * ANNOUNCED
"""Requests while each question of both stages is sent again, for a failure that may pass."""
USED_UP = "thought for all 64,000 tokens that its answer may have, and gave none"

ODD = {
    "a bad request": Odd(lambda call: refusal(400, "bad parameter"), "HTTP 400: bad parameter"),
    "a key that is wrong": Odd(lambda call: refusal(401, "no"), "HTTP 401: no. Check the key", 1),
    "a key in a refusal": Odd(lambda call: refusal(401, f"wrong key {KEY}"), "wrong key <key>", 1),
    "an empty account": Odd(lambda call: refusal(402, "pay"), "Look at the account", 1),
    "no permission": Odd(lambda call: refusal(403, "not yours"), "HTTP 403: not yours"),
    "an unknown model": Odd(
        lambda call: refusal(404, "The model does not exist", "model_not_found"),
        "Check the name openai/tiny, or the base URL",
        1,
    ),
    "an unknown model by 400": Odd(
        lambda call: refusal(400, "tiny is not a valid model ID"), "Check the name openai/tiny", 1
    ),
    "an unknown model in plain text": Odd(
        lambda call: body("404 page not found", "text/plain", 404), "Check the name openai/tiny", 1
    ),
    "a gone endpoint": Odd(lambda call: refusal(410, "gone"), "HTTP 410: gone"),
    "an unprocessable request": Odd(lambda call: refusal(422, "what?"), "HTTP 422: what?"),
    "a quota that is spent": Odd(
        lambda call: refusal(429, "You exceeded your current quota", "insufficient_quota"),
        "exceeded your current quota",
        1,
    ),
    "a limit of half a day": Odd(
        lambda call: Reply(status=429, headers={"retry-after": "43200"}), "its limit lasts until", 1
    ),
    "a limit of a day in other headers": Odd(
        lambda call: Reply(status=429, headers=BUSY_DAY), "its limit lasts until", 1
    ),
    "a limit that names no end": Odd(
        lambda call: refusal(429, "slow down"), "Run again later, or name another model", 3 * 8
    ),
    "a limit that passes": Odd(once(Reply(status=429, headers={"retry-after": "0"}))),
    "a failure that lasts": Odd(lambda call: refusal(500, "oops"), "HTTP 500: oops", SENT_AGAIN),
    "a failure that passes": Odd(once(refusal(500, "oops"))),
    "an overload that passes": Odd(once(refusal(529, "overloaded"))),
    "a page under 503 that passes": Odd(once(body("<html>Busy</html>", "text/html", 503))),
    "an error under 200 that passes": Odd(once(body('{"error": {"message": "no", "code": 502}}'))),
    "a page under 200 that passes": Odd(once(body("<html>Busy</html>", "text/html"))),
    "nothing that passes": Odd(once(body(b""))),
    "half an answer that passes": Odd(once(Reply(manner="cut"))),
    "a broken connection that passes": Odd(once(Reply(manner="close"))),
    "a page under 200": Odd(
        lambda call: body("<html>Log in</html>", "text/html"), "openai/tiny: ", SENT_AGAIN
    ),
    "a broken connection": Odd(lambda call: Reply(manner="close"), "openai/tiny: ", SENT_AGAIN),
    "a stream": Odd(
        lambda call: body('data: {"choices": []}\n\ndata: [DONE]\n\n', "text/event-stream"),
        "a stream, which was not asked for",
    ),
    "lines of JSON": Odd(lambda call: body('{"a": 1}\n{"a": 2}\n'), "something else than JSON"),
    "plain words": Odd(lambda call: body("Sure! Here it is.", "text/plain"), "else than JSON"),
    "a list": Odd(lambda call: body('["Fine."]'), "not the form of an answer"),
    "depth": Odd(lambda call: body("[" * 50_000 + "]" * 50_000), "nested too deeply"),
    "an endless number": Odd(lambda call: body('{"created": 1' + "0" * 5_000 + "}"), "endless"),
    "no choices": Odd(with_fields(choices=None), "openai/tiny: "),
    "an empty list of choices": Odd(with_fields(choices=[]), "openai/tiny: "),
    "no message": Odd(with_fields(choices=[{"index": 0, "message": None}]), "openai/tiny: "),
    "no words": Odd(in_form({"content": None}), "in 2 calls: it is empty"),
    "blanks": Odd(in_form({"content": " \n"}), "in 2 calls: it is empty"),
    "all its length in thought": Odd(in_form({"content": ""}, "length"), USED_UP, 2),
    "all its length in marked thought": Odd(
        in_form({"content": "<think>So…"}, "length"), USED_UP, 2
    ),
    "a refusal": Odd(in_form({"content": None, "refusal": "No."}), "it refuses to answer", 2),
    "a content filter": Odd(in_form({"content": ""}, "content_filter"), "content filter", 2),
    "a tool": Odd(in_form({"content": None, "tool_calls": [TOOL]}, "tool_calls"), "a tool, and", 2),
    "thought alone": Odd(
        in_form({"content": "", "reasoning_content": "So."}), "ended after its thinking", 2
    ),
    "an answer cut at its length": Odd(
        lambda call: Reply((good(call).content or "")[:80], finish="length"), "in 2 calls: "
    ),
    "words of no form": Odd(lambda call: Reply("It is sunny."), "in 2 calls: it holds no object"),
    "an error page as the answer": Odd(lambda call: Reply("<html>no</html>"), "an error page"),
    "an answer without end": Odd(lambda call: Reply("x" * 300_000), "longer than 200000"),
    "words of no form, once": Odd(once(Reply("It is sunny."))),
    "an answer in parts": Odd(
        lambda call: in_form({"content": [{"type": "text", "text": good(call).content}]})(call)
    ),
    "an unknown end": Odd(lambda call: in_form({"content": good(call).content}, "eos")(call)),
    "half a surrogate pair": Odd(
        spoken(lambda text: text.replace("seen in", "seen \\ud83d in").replace(" of ", " \\ude00 "))
    ),
    "control characters": Odd(spoken(lambda text: text.replace("seen in", "seen\x1b[2J\x00 in"))),
    "escaped control characters": Odd(
        spoken(lambda text: text.replace("seen in", "seen\\u001b[2J\\u0000 in"))
    ),
    "a fence and a byte order mark": Odd(spoken(lambda text: f"\ufeff```json\r\n{text}\r\n```")),
    "thought before the answer": Odd(spoken(lambda text: f"<think>So.</think>{text}")),
    "latin-1": Odd(
        lambda call: body(json.dumps(said(call, note="é"), ensure_ascii=False).encode("latin-1"))
    ),
    "another type of content": Odd(lambda call: body(json.dumps(said(call)), "text/html")),
    "counts as text": Odd(with_fields(usage={"prompt_tokens": "9", "completion_tokens": "many"})),
    "counts in a list": Odd(with_fields(usage=[1, 2])),
    "no counts": Odd(with_fields(usage=None)),
    "a lower limit of the answer": Odd(
        unless(
            lambda call: most_tokens(call) <= 8_192,
            refusal(400, "max_tokens: 64000 > 8192, the maximum for tiny"),
        )
    ),
    "a lower limit that is not named": Odd(
        unless(lambda call: most_tokens(call) <= 9_000, refusal(400, "max_tokens is too large")),
        requests=3 + ANNOUNCED,
    ),
    "a small window": Odd(
        unless(
            lambda call: most_tokens(call) <= 6_000,
            refusal(
                400,
                "max_tokens is too large: 64000. This model's maximum context length is 16384 "
                "tokens and your request has 10384 input tokens",
            ),
        ),
    ),
    "a window that the prompt fills": Odd(
        lambda call: refusal(
            400, "This model's maximum context length is 900 tokens", "context_length_exceeded"
        ),
        "maximum context length is 900",
        requests=40,
    ),
    "no temperature": Odd(
        unless(
            lambda call: "temperature" not in call.body,
            refusal(400, "temperature is not supported with this model"),
        )
    ),
    "no form of answers": Odd(
        unless(
            lambda call: "response_format" not in call.body,
            refusal(400, "response_format json_schema is not supported"),
        )
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_two_sessions_are_scored_or_fail_with_the_cause_in_twice_the_announced_calls(
    tmp_path: Path, name: str
) -> None:
    odd = ODD[name]
    with OpenAIServer(odd.reply) as server:
        settings = load_settings(
            {
                "DEBRIEF_HOME": str(tmp_path),
                "DEBRIEF_MODEL": "openai/tiny",
                "DEBRIEF_MODEL_BASE_URL": server.url,
                "DEBRIEF_CONCURRENCY": "1",
                "DEBRIEF_RETRY_PAUSE": "0.001",
                "OPENAI_API_KEY": KEY,
            }
        )
        counting = make_evaluators(settings, offline=False, dry_run=True)
        list(score_week(SESSIONS, counting.chunk_scorer))
        assert counting.spent.calls == ANNOUNCED
        limited = agree(estimate_of("openai/tiny", counting.spent), settings, yes=True)
        by = make_evaluators(limited, offline=False)
        scored = list(score_week(SESSIONS, by.chunk_scorer))
        judged_rows = list(
            evaluate_week(SESSIONS, by.judges, by.session_judge, by.eval_fingerprint)
        )
    rows: list[Any] = [*scored, *judged_rows]
    assert by.spent.calls <= 2 * ANNOUNCED
    assert len(server.calls) <= odd.requests
    for row in rows:
        assert b"\\u00" not in msgspec.json.encode(row), "a control character"
        assert (row.status == "failed") == bool(row.failure)
        assert not row.failure.startswith(("TypeError", "ValueError", "KeyError", "Attribute"))
    if odd.why:
        assert {row.status for row in scored} == {"failed"}
        assert all(odd.why in row.failure for row in scored), scored[0].failure
        assert not any(map(holds_answer, judged_rows))
    else:
        assert [row.failure for row in rows if row.status == "failed"] == []
        assert len(server.calls) > 0
    assert KEY not in "".join(row.failure for row in rows)
