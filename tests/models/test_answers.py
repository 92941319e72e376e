"""Text as models send it, made ready for a strict parser."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from debrief.judging.answers import read_criteria, read_judgement
from debrief.judging.model import Criterion
from debrief.models.answers import (
    LONGEST,
    Answer,
    AnswerError,
    answer_text,
    fold,
    json_values,
)
from debrief.rubrics.parsing import parse_judgement, parse_rubrics
from debrief.scoring.answer_reading import read_answer
from debrief.scoring.model import SessionScores
from debrief.scoring.model_scorer import ModelChunkScorer
from debrief.scoring.scorer import score_session
from tests.models.odd_answers import TEXTS, VALUES, oddly_worded, spoiled
from tests.models.openai_server import judged
from tests.scoring.scenario import answer, session
from tests.waiting import is_done_within

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
        ("<thinking>a</thinking><answer>SCORE: 4</answer>", "SCORE: 4"),
        ("It may be four.\n</think>\n<answer>SCORE: 4", "SCORE: 4"),
        ("SCORE: 4</answer>", "SCORE: 4"),
        ("SCORE: 2\nIt says </think>\nSCORE: 5", "SCORE: 2\nIt says </think>\nSCORE: 5"),
    ],
)
def test_only_thinking_at_the_very_beginning_is_taken_away(raw: str, text: str) -> None:
    assert answer_text(Answer(text=raw).text) == text


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


def found_in(text: str) -> list[object] | str:
    """The JSON values in a text, or why it is refused."""
    try:
        return [item.value for item in json_values(text)]
    except AnswerError as refusal:
        return refusal.reason


@given(JSON.filter(lambda value: isinstance(value, list | dict)))
def test_json_is_found_between_prose_as_it_was_sent(value: object) -> None:
    found = found_in(f"Here it is:\n{json.dumps(value, ensure_ascii=False)}\nDone.")
    assert found == [seen(value)] or "twice" in found


def seen(value: Any) -> Any:
    """A JSON value without what is no letter in its texts; of line ends there is one kind."""
    if isinstance(value, list):
        return [seen(each) for each in value]
    if isinstance(value, dict):
        return {seen(name): seen(each) for name, each in value.items()}
    if not isinstance(value, str):
        return value
    text = "\n".join(re.split("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]", value))
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc")


@given(st.text(max_size=400))
def test_no_text_breaks_the_search_for_json(text: str) -> None:
    assert isinstance(found_in(text), list | str)


@pytest.mark.parametrize("unit", [" ", "</s>", "<answer>", "e\u0301\u0323", "\n\t"])
def test_any_answer_is_made_ready_within_a_second(unit: str) -> None:
    text = f"a{unit * 40_000}"[: LONGEST - 1] + "b"
    assert answer_text(fold(text))
    assert is_done_within(1, lambda: answer_text(fold(text)))


@pytest.mark.parametrize("unit", ["[", '{"a":', '"', "\\", "[]", "// ", ",]", "{'"])
def test_a_flood_of_brackets_or_quotes_is_over_within_a_second(unit: str) -> None:
    text = (unit * LONGEST)[:LONGEST]
    assert found_in(text) is not None
    assert is_done_within(1, lambda: found_in(text))


@given(st.text(max_size=100))
def test_folding_twice_is_folding_once_and_leaves_nothing_invisible(text: str) -> None:
    folded = fold(text)
    assert fold(folded) == folded
    assert not {"\u200b", "\u202e", "\x1b", "\ufeff"} & set(folded)


SCORED = answer("It was run.", security_compliance=None)
JUDGED = judged(0.5)
CRITERIA = (Criterion(question="Is it tested?"), Criterion(question="Is it short?"))
ANSWERED = json.dumps(
    {"answers": [{"question": n, "reason": "It is.", "answer": "yes"} for n in (1, 2)]}
)
MINED = json.dumps(
    [
        {
            "name": "Names the File",
            "description": "The user names the file.",
            "scoring_criteria": "1: Never\n2: Seldom\n3: At times\n4: Mostly\n5: In each request",
            "evidence": "In turn 1.",
        }
    ]
)
READERS: dict[str, tuple[Callable[[str], object], str]] = {
    "session": (read_answer, SCORED),
    "judge": (read_judgement, JUDGED),
    "criteria": (lambda text: read_criteria(text, CRITERIA), ANSWERED),
    "rubrics": (parse_rubrics, MINED),
    "rubric": (parse_judgement, '{"score": 4, "reasoning": "In turn 1 it is named."}'),
}


def texts_in(value: object) -> str:
    if isinstance(value, BaseModel):
        return texts_in(value.model_dump())
    if isinstance(value, dict):
        return "".join(texts_in(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return "".join(texts_in(each) for each in value)
    if isinstance(value, msgspec.Struct):
        return texts_in(msgspec.structs.asdict(value))
    return str(value)


@pytest.mark.parametrize("reader", READERS)
@given(data=st.data())
def test_any_answer_is_refused_or_read_as_texts_that_can_be_kept(
    reader: str, data: st.DataObject
) -> None:
    read, good = READERS[reader]
    assert texts_in(read(good))
    answer = data.draw(spoiled(good) | oddly_worded(good) | st.builds(json.dumps, VALUES) | TEXTS)
    with suppress(AnswerError):
        text = texts_in(read(Answer(text=answer).text))
        assert text.encode()
        assert {c for c in text if unicodedata.category(c) == "Cc"} <= {"\n", "\t"}


@given(data=st.data())
def test_a_session_with_any_answer_is_scored_or_fails_and_its_row_is_stored_as_it_is(
    data: st.DataObject,
) -> None:
    text = data.draw(spoiled(SCORED) | oddly_worded(SCORED) | st.builds(json.dumps, VALUES))
    row = score_session(session(), ModelChunkScorer("m", lambda _: Answer(text=text)))
    assert row.status == "ok" or "gave no usable answer" in row.failure
    assert "cannot be read" not in row.failure
    assert msgspec.json.decode(msgspec.json.encode(row), type=SessionScores) == row
