"""Text as models send it, made ready for a strict parser."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.models.answers import (
    LONGEST,
    AnswerError,
    answer_text,
    fold,
    is_cut_short,
    json_values,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<think>a</think> b", "b"),
        ("<Thinking>a</THINKING>\n<think>b</think>c", "c"),
        ("a <think>b</think>", "a <think>b</think>"),
        ("<|channel|>analysis<|message|>x<|end|><|channel|>final<|message|>y<|return|>", "y"),
        ("a\r\nb\u2028c", "a\nb\nc"),
        ("yes</s>\n", "yes"),
    ],
)
def test_only_thinking_at_the_very_beginning_is_taken_away(raw: str, text: str) -> None:
    assert answer_text(raw) == text


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "",
        " \n",
        "<think>never closed",
        "<think>a</think>",
        "<!DOCTYPE html><p>502",
        "<|channel|>analysis<|message|>no final",
        "<|channel|>final<|message|>a<|channel|>final<|message|>b",
        "x" * (LONGEST + 1),
    ],
)
def test_nothing_to_read_is_refused(raw: str | None) -> None:
    with pytest.raises(AnswerError):
        answer_text(raw)


@given(JSON.filter(lambda value: isinstance(value, list | dict)))
def test_json_is_found_between_prose_as_it_was_sent(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    try:
        found = json_values(f"Here it is:\n{text}\nDone.")
    except AnswerError as error:
        assert "twice" in error.reason
        return
    assert [item.value for item in found] == [value]


@given(st.text(max_size=400))
def test_no_text_breaks_the_search_for_json(text: str) -> None:
    try:
        for found in json_values(text):
            assert text[found.start] in "[{"
        is_cut_short(text)
    except AnswerError as error:
        assert error.reason


@pytest.mark.parametrize("unit", ["[", '{"a":', '"', "\\", "[]", "// ", ",]", "{'"])
def test_a_flood_of_brackets_or_quotes_is_over_within_a_second(unit: str) -> None:
    text = (unit * LONGEST)[:LONGEST]
    started = time.perf_counter()
    for attempt in (json_values, is_cut_short):
        try:
            attempt(text)
        except AnswerError as error:
            assert "nested" in error.reason or "more than" in error.reason
    assert time.perf_counter() - started < 1


@given(st.text(max_size=100))
def test_folding_twice_is_folding_once_and_leaves_nothing_invisible(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert not {"\u200b", "\u202e", "\x1b", "\ufeff"} & set(folded)
