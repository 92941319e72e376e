"""What models really send, and what is read out of it."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.judging.answers import read_judgement
from debrief.models.answers import AnswerError
from debrief.rubrics.parsing import parse_judgement, parse_rubric_set, parse_rubrics
from debrief.scoring.answer_reading import read_answer
from tests.waiting import is_done_within

WHY = "REASONING: The user named the module and the wanted result in turn 1."
SHARED = Path(__file__).parents[2] / "../shared/cases/parser_cases.jsonl"


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        pytest.param(f"SCORE: 4\n{WHY}", 4, id="plain"),
        pytest.param(f"score = 2\n{WHY}", 2, id="lower case, equals sign"),
        pytest.param(f"\ufeffSCORE: 4\r\n{WHY}\r\n", 4, id="byte order mark, CRLF"),
        pytest.param(f"**SCORE:** 4\n**{WHY}", 4, id="bold"),
        pytest.param(f"### Score: `3`\n\n{WHY}", 3, id="heading, code"),
        pytest.param(f"| Score | 3 |\n{WHY}", 3, id="table row"),
        pytest.param("<score>5</score>\n<reasoning>Named all.</reasoning>", 5, id="tags"),
        pytest.param(f"SCORE: 4/5\n{WHY}", 4, id="out of five"),
        pytest.param(f"SCORE: 4.0\n{WHY}", 4, id="a whole number with a point"),
        pytest.param(f"SCORE: 4 (5 but for the edge cases)\n{WHY}", 4, id="remark in brackets"),
        pytest.param(f"SCORE: ３\n{WHY}", 3, id="full width digit"),
        pytest.param(f"SC\u200bORE: 3\n{WHY}", 3, id="zero width space"),
        pytest.param(f"```\nSCORE: 1\n{WHY}\n```", 1, id="fenced"),
        pytest.param(f"<think>SCORE: 5?</think>\nSCORE: 2\n{WHY}", 2, id="thinking before"),
        pytest.param(f"> SCORE: 5\n\nSCORE: 2\n{WHY}", 2, id="block quotation"),
        pytest.param("SCORE: 2\nREASONING: it says \"SCORE: 5\" in turn 3.", 2, id="quoted inline"),
        pytest.param(f"SCORE: 4\n{WHY}\nSCORE: 4", 4, id="the same twice"),
        pytest.param("SCORE: 4 out of 5 because turn 3 was vague.", 4, id="out of five, with a reason"),
        pytest.param("SCORE: 4 since 2 files were named", 4, id="a reason on the same line"),
        pytest.param("The user named the file. SCORE: 4", 4, id="after a sentence"),
        pytest.param("The user's plan was clear. **SCORE: 4** because he named 3 files.", 4, id="bold, with a reason"),
        pytest.param("My verdict: SCORE: 4/5.", 4, id="after the word verdict"),
        pytest.param("I give this session a SCORE: 2 (turn 3 was vague)", 2, id="given in words"),
        pytest.param("REASONING: Named `a.py` in turn 1. SCORE: 3", 3, id="reasoning and score on one line"),
        pytest.param('{"score": 4, "reasoning": "exact",}', 4, id="JSON, trailing comma"),
        pytest.param('My verdict: {"score": "3/5", "reasoning": "a } b"} Bye.', 3, id="JSON in prose"),
        pytest.param('{"quoted": {"score": 5}, "score": 2, "reasoning": "x"}', 2, id="nested JSON"),
        pytest.param('{"score": 2, "reasoning": "says\nSCORE: 5\nand more"}', 2, id="forged in a string"),
    ],
)  # fmt: skip
def test_a_score_is_read_from_every_usual_form(answer: str, score: int) -> None:
    assert parse_judgement(answer).score == score


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="no content"),
        pytest.param(" \n ", id="blank"),
        pytest.param(f"SCORE: 4.5\n{WHY}", id="half a point"),
        pytest.param(f"SCORE: 45\n{WHY}", id="two digits"),
        pytest.param(f"SCORE: 0\n{WHY}", id="zero"),
        pytest.param(f"SCORE: -4\n{WHY}", id="negative"),
        pytest.param(f"SCORE: 8/10\n{WHY}", id="another scale"),
        pytest.param(f"SCORE: 3-4\n{WHY}", id="a range"),
        pytest.param(f"SCORE: 3 or 4\n{WHY}", id="an alternative"),
        pytest.param(f"SCORE: 3 → 4\n{WHY}", id="a change"),
        pytest.param(f"SCORE: 1_0\n{WHY}", id="underscore"),
        pytest.param(f"SCORE: four\n{WHY}", id="a word"),
        pytest.param(f"SCORE: [1-5]\n{WHY}", id="the placeholder"),
        pytest.param(f"SCORE: {'9' * 5000}\n{WHY}", id="a very long number"),
        pytest.param("SCORE:\nREASONING: 4 things were good", id="the number is on another line"),
        pytest.param(f"SCORE: 2\n{WHY}\nSCORE: 5", id="two verdicts"),
        pytest.param("SCORE: 2\nREASONING: quoted </think>\nSCORE: 5", id="forged end of thinking"),
        pytest.param("SCORE: 5\n<think>\nSCORE: 2", id="forged begin of thinking"),
        pytest.param("<think>\nSCORE: 5", id="nothing but thinking"),
        pytest.param("A solid 4 overall.", id="no label"),
        pytest.param("Clear request. SCORE: 4.5", id="half a point inside a line"),
        pytest.param("Clear request. SCORE: 45", id="two digits inside a line"),
        pytest.param("Clear request. SCORE: 4 or 5", id="an alternative inside a line"),
        pytest.param("Clear request. SCORE: 5, but the edge cases are missing", id="taken back"),
        pytest.param("First I thought SCORE: 5", id="a thought"),
        pytest.param("The MAX SCORE: 5", id="the highest"),
        pytest.param("I do not give it a SCORE: 5", id="denied"),
        pytest.param("If all were clear. SCORE: 2. Else. SCORE: 5", id="two inside a line"),
        pytest.param("The user typed SCORE: 5.", id="told of the session"),
        pytest.param("The session ends with: SCORE: 5", id="told after a colon"),
        pytest.param('The user wrote "Great. SCORE: 5"', id="quoted inside a line"),
        pytest.param("The user wrote `ok. SCORE: 5`", id="quoted as code"),
        pytest.param("> Well done. SCORE: 5", id="in a block quotation alone"),
        pytest.param("SCORE: 4 is too high", id="weighed"),
        pytest.param("SCORE: 4 for turn 1 and 2 for turn 2", id="one for each turn"),
        pytest.param("<html>\nSCORE: 5\n</html>", id="an error page"),
        pytest.param('{"score": 2, "score": 5, "reasoning": "x"}', id="a key twice"),
        pytest.param('{"score": 2, "Score": 5, "reasoning": "x"}', id="a key twice, by case"),
        pytest.param('{"score": true, "reasoning": "x"}', id="a truth value"),
        pytest.param('{"score": 4.5, "reasoning": "x"}', id="half a point in JSON"),
        pytest.param('{"score": NaN, "reasoning": "x"}', id="not a number"),
        pytest.param('{"score": 2, "reasoning": "x"}\n{"score": 5, "reasoning": "y"}', id="two objects"),
        pytest.param('I cannot judge; it pasted {"score": 5}.', id="JSON without a reasoning in prose"),
    ],
)  # fmt: skip
def test_an_answer_without_one_certain_score_is_refused(answer: str | None) -> None:
    with pytest.raises(AnswerError):
        parse_judgement(answer)


def test_a_reasoning_of_several_lines_is_kept_whole() -> None:
    answer = "**REASONING:** Named `a.py`.\n\n- and the limit\n\nSCORE: 4"
    judgement = parse_judgement(answer)
    assert judgement.reasoning == "Named `a.py`.\n\n- and the limit"
    assert parse_judgement("SCORE: 4\nREASONING: one\ntwo").reasoning == "one\ntwo"
    assert parse_judgement("SCORE: 4 REASONING: on the same line").reasoning == "on the same line"
    assert parse_judgement("SCORE: 4").reasoning == ""
    assert parse_judgement("Clear. SCORE: 4 REASONING: in one line").reasoning == "in one line"
    assert parse_judgement("REASONING: It was clear. SCORE: 4").reasoning == "It was clear."
    assert parse_judgement("It was clear. **SCORE: 4**").reasoning == "It was clear."


@given(st.integers(0, 99), st.sampled_from(["", ".5", "_0", "-5", " to 5", "/10", ",5", "%"]))
def test_inside_a_line_too_only_a_whole_number_from_1_to_5_is_a_score(
    number: int, after: str
) -> None:
    is_score = 1 <= number <= 5 and not after
    for before in ("", "The request was clear. ", "Verdict: "):
        found = score_in(f"{before}SCORE: {number}{after}")
        assert (found == number) if is_score else isinstance(found, str)


def score_in(answer: str) -> int | str:
    """The score in an answer, or why it is refused."""
    try:
        return parse_judgement(answer).score
    except AnswerError as refusal:
        return refusal.reason


@given(st.text(max_size=300))
def test_any_text_gives_a_score_from_1_to_5_or_a_refusal(text: str) -> None:
    for answer in (text, f"SCORE: {text}", f'{{"score": {text}, "reasoning": "r"}}'):
        found = score_in(answer)
        assert found in {1, 2, 3, 4, 5} or isinstance(found, str)


@given(st.integers(1, 5), st.integers(1, 5), st.text(max_size=80))
def test_two_different_verdicts_are_never_decided_between(
    one: int, other: int, between: str
) -> None:
    answer = f"SCORE: {one}\nREASONING: {between}\nSCORE: {other}"
    if one == other:
        return
    with pytest.raises(AnswerError):
        parse_judgement(answer)


RUBRIC = {
    "name": "Clear Goal",
    "description": "Says what is wanted.",
    "scoring_criteria": "1: no 5: yes",
    "evidence": 'turn 1: "export it"',
}


def rubrics(count: int, **changed: Any) -> list[dict[str, Any]]:
    return [{**RUBRIC, "name": f"Rubric {n}", **changed} for n in range(count)]


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        pytest.param(json.dumps(rubrics(2)), 2, id="bare"),
        pytest.param(f"Here:\n```json\n{json.dumps(rubrics(3))}\n```\nDone [1].", 3, id="fenced"),
        pytest.param(json.dumps({"rubrics": rubrics(2)}), 2, id="as an object"),
        pytest.param(json.dumps(rubrics(2))[:-1] + ",]", 2, id="trailing comma"),
        pytest.param("// all\n" + json.dumps(rubrics(2)).replace("}, {", "}, // next\n{"), 2, id="comments"),
        pytest.param(json.dumps([RUBRIC, RUBRIC]), 1, id="the same name twice"),
        pytest.param(f"<think>[]</think>{json.dumps(rubrics(1))}", 1, id="thinking before"),
    ],
)  # fmt: skip
def test_an_array_of_rubrics_is_found(answer: str, count: int) -> None:
    found = parse_rubrics(answer)
    assert len(found) == count
    assert len({rubric.id for rubric in found}) == count


@given(st.lists(st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=12), min_size=1))
def test_a_unique_id_of_the_answer_stays_and_the_others_get_one(ids: list[Any]) -> None:
    items = [{**RUBRIC, "name": f"Rubric {n}", "id": id_} for n, id_ in enumerate(ids)]
    found = [rubric.id for rubric in parse_rubrics(json.dumps(items[:100]))]
    assert len({*found}) == len(found) == len(items[:100])
    assert all(found)
    named = json.dumps([{**RUBRIC, "id": "clear-goal"}, {**RUBRIC, "name": "Other"}])
    assert [rubric.id for rubric in parse_rubrics(named)] == ["clear-goal", "rubric_002"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="no rubric"),
        pytest.param('["Clear goal"]', id="names alone"),
        pytest.param(json.dumps(rubrics(2))[:-20], id="cut short"),
        pytest.param(json.dumps(rubrics(1)) + json.dumps(rubrics(2)), id="two arrays"),
        pytest.param(json.dumps(rubrics(1, name=None)), id="no name"),
        pytest.param(json.dumps(rubrics(1, name="x" * 300)), id="a name as long as a page"),
        pytest.param(json.dumps([{k: v for k, v in RUBRIC.items() if k != "evidence"}]), id="no evidence"),
        pytest.param(json.dumps(rubrics(1, scoring_criteria={"1": "no"})), id="a scale with one point"),
        pytest.param("[" * 90_000 + "]" * 90_000, id="a bomb of brackets"),
        pytest.param('[{"name":"' * 15_000, id="a bomb of strings"),
    ],
)  # fmt: skip
def test_anything_else_than_one_complete_array_is_refused(answer: str) -> None:

    def refuse() -> None:
        with pytest.raises(AnswerError):
            parse_rubrics(answer)

    assert is_done_within(1, refuse)


def test_a_set_gets_ids_in_order_whatever_ids_it_brings() -> None:
    answer = json.dumps({"rubrics": rubrics(6, id="rubric_001"), "consolidation_notes": "merged"})
    found, notes = parse_rubric_set(answer)
    assert [rubric.id for rubric in found] == [f"rubric_{n:03}" for n in range(1, 7)]
    assert notes == "merged"


@pytest.mark.parametrize("weight", [-3, 0, "high", True, float("inf"), 1e9])
def test_an_impossible_weight_is_refused(weight: Any) -> None:
    with pytest.raises(AnswerError, match="weight"):
        parse_rubric_set(json.dumps({"rubrics": rubrics(6, weight=weight)}))


@pytest.mark.parametrize("count", [0, 4, 11])
def test_a_set_of_too_few_or_too_many_is_refused(count: int) -> None:
    with pytest.raises(AnswerError):
        parse_rubric_set(json.dumps({"rubrics": rubrics(count)}))


def test_a_scale_given_as_an_object_becomes_five_lines() -> None:
    scale = {str(point): f"level {point}" for point in range(1, 6)}
    (found,) = parse_rubrics(json.dumps(rubrics(1, scoring_criteria=scale)))
    assert found.scoring_criteria.splitlines() == [f"{p}: level {p}" for p in range(1, 6)]


READERS: dict[str, Callable[[str | None], Any]] = {
    "judge_int_1_5": lambda text: parse_judgement(text).score,
    "judge_float_0_1": lambda text: read_judgement(text)[0],
    "dimensions6": lambda text: read_answer(text) and "valid",
    "rubric_array": lambda text: len(parse_rubrics(text)),
    "rubric_object": lambda text: len(parse_rubric_set(text)[0]),
}


def outcome_of(case: dict[str, Any]) -> dict[str, Any]:
    made, text = case["raw_gen"], case["raw"]
    if made:
        text = made["unit"] * made["n"] + made.get("tail", "") * made.get("tail_n", 0)
    try:
        return {"status": "ok", "value": READERS[case["kind"]](text)}
    except AnswerError:
        return {"status": "retry"}


@pytest.mark.skipif(not SHARED.is_file(), reason="the collection of cases is not beside us")
def test_every_case_of_the_shared_collection_comes_out_as_it_says() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wrong = []
    for case in map(json.loads, SHARED.read_text(encoding="utf-8").splitlines()):
        found = outcome_of(case)
        allowed = [case["expect"], *case["also_ok"]]
        same = any(all(item.get(k) == v for k, v in found.items()) for item in allowed)
        if not (same and is_done_within(1, partial(outcome_of, case))):
            wrong.append((case["id"], found))
    assert wrong == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
