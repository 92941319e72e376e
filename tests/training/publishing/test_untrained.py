"""What forms without marks of weight leave out."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import Intervention, Session, Turn
from debrief.training.conversations import NO_PROMPT, TURN_ENDED
from debrief.training.samples import encode_line
from tests.training.publishing.test_forms import as_form
from tests.training.scenario import MONDAY, call, line_of, says, session, turn
from tests.training.strategies import sessions

LS, CAT = call("Bash", {"command": "ls"}, "a.py"), call("Bash", {"command": "cat a.py"}, "x = 1")
UNKNOWN = turn("", says("It is done already.", LS), says("Really."))
KNOWN = turn("Fix it.", says("Fixed."), number=2)
STOP = Intervention(kind="interruption")
BROKEN_OFF = turn("And test it.", says("Both.", LS, CAT), number=3)


def published(form: str, *turns: Turn, single_calls: bool = False, **fields: Any) -> dict[str, Any]:
    line = encode_line(line_of(session("s1", *turns, **fields)))
    (made,) = as_form(form, line, single_calls=single_calls)
    return made


def told(line: dict[str, Any]) -> list[str]:
    if "conversations" in line:
        return [f"{one['from']}: {one['value']}" for one in line["conversations"]]
    return [
        f"{one['role']}: {one['content']}{'+' * len(one.get('tool_calls', ()))}"
        for one in line["messages"]
    ]


def test_answers_to_a_request_that_is_not_known_are_left_out() -> None:
    assert told(published("trl", UNKNOWN, KNOWN)) == [*("user: Fix it.", "assistant: Fixed.")]
    assert told(published("sharegpt", UNKNOWN, KNOWN)) == ["human: Fix it.", "gpt: Fixed."]


def test_what_was_said_on_news_at_the_end_is_left_out() -> None:
    moments = [MONDAY + timedelta(minutes=minute) for minute in range(4)]
    answers = [replace(says(text), at=at) for text, at in zip("abcd", moments, strict=True)]
    line = published("trl", turn("Review it.", *answers), notices=(moments[2], moments[3]))
    assert told(line) == ["user: Review it.", "assistant: a\n\nb"]


def test_a_line_whose_end_is_lacking_ends_on_calls() -> None:
    assert told(published("trl", KNOWN, BROKEN_OFF))[-2:] == [
        *("user: And test it.", "assistant: Both.++")
    ]
    assert told(published("sharegpt", KNOWN, BROKEN_OFF))[-4:] == [
        "human: And test it.",
        'function_call: {"name":"Bash","arguments":{"command":"ls"}}',
        "observation: a.py",
        'function_call: {"name":"Bash","arguments":{"command":"cat a.py"}}',
    ]


def test_so_does_one_whose_calls_are_told_one_after_the_other() -> None:
    assert told(published("trl", KNOWN, BROKEN_OFF, single_calls=True))[-4:] == [
        *("user: And test it.", "assistant: Both.+", "tool: a.py", "assistant: +")
    ]


def test_what_stands_for_an_end_within_a_line_is_left_out() -> None:
    why = turn("Why?", says("Because."), number=4)
    expected = ["tool: x = 1", "user: Why?", "assistant: Because."]
    assert told(published("trl", BROKEN_OFF, why))[-3:] == expected
    stopped = turn("Look.", says("Well, I"), interventions=(STOP,))
    assert told(published("trl", BROKEN_OFF, stopped, why))[-3:] == expected


def test_where_turns_must_alternate_it_stays() -> None:
    lines = told(published("sharegpt", BROKEN_OFF, turn("Why?", says("Because."), number=4)))
    assert lines[-3:] == [f"gpt: {TURN_ENDED}", "human: Why?", "gpt: Because."]


def test_words_that_the_person_broke_off_behind_results_are_left_out() -> None:
    broken = turn("Test it.", says("", LS), says("Well, I"), interventions=(STOP,))
    lines = told(published("trl", broken, turn("Why?", says("Because."), number=2)))
    assert lines == [
        *("user: Test it.", "assistant: +", "tool: a.py", "user: Why?", "assistant: Because.")
    ]


@pytest.mark.parametrize("form", ["messages", "openai"])
def test_forms_with_marks_of_weight_keep_all(form: str) -> None:
    messages = published(form, UNKNOWN, KNOWN, BROKEN_OFF)["messages"]
    assert (messages[0]["content"], messages[-1]["content"]) == (NO_PROMPT, TURN_ENDED)
    assert messages[-1]["weight"] == 0


def by_marks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is left of messages, found the long way."""
    exchanges: list[list[dict[str, Any]]] = [[]]
    for message in messages:
        if message["role"] == "user":
            exchanges.append([])
        exchanges[-1].append(message)
    kept = list(exchanges[0])
    for exchange in exchanges[1:]:
        if any(m["role"] == "assistant" and m.get("weight") != 0 for m in exchange):
            if kept and kept[-1].get("weight") == 0 and kept[-2]["role"] == "tool":
                kept.pop()
            kept += exchange
    if kept[-1].get("weight") == 0:
        while not kept[-1].get("tool_calls"):
            kept.pop()
    return kept


@given(of=sessions())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
def test_nothing_else_is_left_out_of_any_line(of: Session) -> None:
    try:
        line = encode_line(line_of(of))
    except InputError:
        return
    (made,) = as_form("trl", line)
    expected = by_marks(json.loads(line)["messages"])
    for message in expected:
        message.pop("weight", None)
        for one in message.get("tool_calls", ()):
            one["function"]["arguments"] = json.loads(one["function"]["arguments"])
    assert made["messages"] == expected
