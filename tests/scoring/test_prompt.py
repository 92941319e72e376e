"""The scoring prompt, its answer, and the model that is asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_args

import pytest
from msgspec.structs import replace

from debrief.content import folder
from debrief.judging.answers import read_judgement
from debrief.judging.model import Judge, load_judges
from debrief.models.answers import READ_ATTEMPTS, Answer, AnswerError, NoAnswerError, Question
from debrief.models.citing import cited_turns
from debrief.models.usage import ModelUsage
from debrief.scoring.answer_form import answer_example
from debrief.scoring.answer_reading import read_answer
from debrief.scoring.chunking import chunk_by_tokens
from debrief.scoring.llm_review import ClaimState, RequestState
from debrief.scoring.model_scorer import (
    ModelChunkScorer,
    asked_judges,
    scoring_prompt,
    scoring_question,
)
from debrief.scoring.traces import traces_of
from debrief.scoring.verdict import VERDICT_NAMES
from debrief.sessions.model import Session
from debrief.sessions.readers.patches import replaced
from debrief.tokens import count_tokens
from tests.scoring.scenario import answer, changing, session, turn


def reply(text: str, cost_usd: float | None = 0.5) -> Answer:
    usage = ModelUsage(input_tokens=100, output_tokens=20, cost_usd=cost_usd)
    return Answer(text=text, usage=usage)


class Scripted:
    """Gives its replies one after the other, and keeps the prompts."""

    def __init__(self, *replies: Answer) -> None:
        self.prompts: list[str] = []
        self._replies: Iterator[Answer] = iter(replies)

    def __call__(self, question: Question) -> Answer:
        self.prompts.append(question.whole)
        return next(self._replies)


def test_the_prompt_carries_task_part_traces_and_signals_in_order() -> None:
    given = session(turns=tuple(turn(n, prompt=f"prompt number {n}") for n in range(1, 13)))
    chunks = chunk_by_tokens(traces_of(given), target=300)
    prompt = scoring_prompt(given, chunks[2])
    assert f"Part 3 of {len(chunks)} of the session." in prompt
    assert "prompt number 1\n" in prompt
    assert "Human turns: 12" in prompt
    assert all(part.text.strip() in prompt for t in chunks[2].traces for part in t.observations)
    headings = ["What the task is", "Repeated for context", "To be scored", "Signals"]
    places = [prompt.index(f"### {name}\n") for name in headings]
    assert places == sorted(places)
    assert prompt.index("## What counts") < prompt.index("<<<data") < places[0]
    assert prompt.endswith("and nothing else.\n")


def test_the_constant_text_is_small_with_and_without_the_shipped_judges() -> None:
    (chunk,) = chunk_by_tokens(traces_of(changing()))
    bare = scoring_question(changing(), chunk)
    both = scoring_question(changing(), chunk, judges=load_judges(folder("judges")))
    assert count_tokens(bare.constant) <= 2_000
    assert count_tokens(both.constant) <= 3_500


def test_every_word_of_the_form_is_explained_in_the_prompt() -> None:
    (chunk,) = chunk_by_tokens(traces_of(session()))
    constant = scoring_question(session(), chunk).constant
    for words in (VERDICT_NAMES, get_args(RequestState), get_args(ClaimState)):
        assert [word for word in words if word not in constant] == []


def test_the_first_part_says_that_more_follows_and_the_only_one_that_it_is_whole() -> None:
    given = session(turns=12)
    assert "It begins here" in scoring_prompt(given, chunk_by_tokens(traces_of(given), 80)[0])
    assert "It ends here" in scoring_prompt(given, chunk_by_tokens(traces_of(given), 80)[-1])
    assert "The whole session." in scoring_prompt(given, chunk_by_tokens(traces_of(given))[0])


def test_a_part_that_begins_inside_a_turn_names_the_turn() -> None:
    given = session(turns=(turn(7, calls=40),))
    later = chunk_by_tokens(traces_of(given), target=120)[2]
    assert "--- Turn 7, continued ---" in scoring_prompt(given, later)


def test_braces_and_variables_in_a_session_stay_what_they_are() -> None:
    given = session(turns=(turn(1, prompt="use {criteria} and {0} and {{form}}"),))
    prompt = scoring_prompt(given, chunk_by_tokens(traces_of(given))[0])
    assert prompt.count("use {criteria} and {0} and {{form}}") == 1


def test_every_part_shows_what_the_person_said_in_all_of_them() -> None:
    prompts = ("add a tax", "no, that is wrong", "thanks")
    given = session(turns=tuple(turn(n, prompt=said) for n, said in enumerate(prompts, 1)))
    parts = chunk_by_tokens(traces_of(given), target=80)
    assert len(parts) > 1
    for part in parts:
        shown = scoring_prompt(given, part).partition("### What the person said")[2]
        said = shown.partition("### ")[0]
        assert all(
            f"[USER] prompt of turn {n}\n{text}\n" in said for n, text in enumerate(prompts, 1)
        )
    (whole,) = chunk_by_tokens(traces_of(given))
    assert "### What the person said" not in scoring_prompt(given, whole)


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("turn 3", [3]),
        ("Turns 1, 2 and 5 show it", [1, 2, 5]),
        ("turns 4-6", [4, 6]),
        ("turn #7; in turn 8", [7, 8]),
        ("it turned 3 times; 14 tests", []),
    ],
)
def test_citations_are_read_in_all_their_forms(text: str, turns: list[int]) -> None:
    assert list(cited_turns(text)) == turns


@pytest.mark.parametrize(
    ("score", "value"),
    [
        *((0.85, 0.85), ("0.85", 0.85), (" 1 ", 1.0), (0, 0.0), ("**0.5**", 0.5), (".25", 0.25)),
        *((None, None), ("N/A", None), ("cannot be seen", None)),
    ],
)
def test_a_plain_number_from_nothing_to_one_is_a_score(score: object, value: float | None) -> None:
    assert read_judgement(json.dumps({"score": score, "feedback": "ok"})) == (value, "ok")


@pytest.mark.parametrize(
    "score",
    [
        *("85%", "0,85", "4/5", "1.5", 1.5, "-0.1", "nan", "inf", "1e999", "0.9.1", "high", True),
        *("1_0", "0.8 or 0.9", [0.8], {"value": 0.8}),
    ],
)
def test_anything_else_is_no_score(score: object) -> None:
    with pytest.raises(AnswerError):
        read_judgement(json.dumps({"score": score, "feedback": "ok"}))


def test_a_refused_answer_is_asked_for_again_with_the_reason() -> None:
    ask = Scripted(reply("no idea"), reply(answer(), cost_usd=None))
    given = session()
    (chunk,) = chunk_by_tokens(traces_of(given))
    said = ModelChunkScorer("some-model", ask).score_chunk(given, chunk)
    assert said.review is not None
    assert said.review.quality == 0.8
    assert (said.input_tokens, said.output_tokens, said.cost_usd) == (200, 40, None)
    assert "could not be used: it holds no object" in ask.prompts[1]
    assert ask.prompts[1].startswith(ask.prompts[0])


def test_an_answer_that_is_refused_is_asked_for_once_more_and_no_further() -> None:
    ask = Scripted(*(reply("no idea") for _ in range(9)))
    given = session()
    (chunk,) = chunk_by_tokens(traces_of(given))
    with pytest.raises(NoAnswerError):
        ModelChunkScorer("some-model", ask).score_chunk(given, chunk)
    assert len(ask.prompts) == READ_ATTEMPTS


def test_what_is_the_same_for_all_sessions_comes_first_and_the_example_is_an_answer() -> None:
    one, other = session("one", turns=2), session("two", turns=5)
    questions = [
        scoring_question(each, chunk_by_tokens(traces_of(each))[0]) for each in (one, other)
    ]
    assert questions[0].constant == questions[1].constant
    assert questions[0].text != questions[1].text
    example = questions[0].constant.rpartition("values made up:")[2]
    assert read_answer(example) == read_answer(answer_example())


def adding(path: str, old: str, new: str) -> Session:
    """A session that edits one file."""
    edit = replaced(path, old, new)
    given = changing()
    (message,) = given.turns[0].messages
    call = replace(message.calls[0], path=path, patch=edit.patch)
    return replace(
        given, turns=(replace(given.turns[0], messages=(replace(message, calls=(call,)),)),)
    )


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (adding("cart.py", "a\n", "b\n"), ["any", "code"]),
        (adding("cart.py", "a\nb\n", "a\n"), ["any"]),
        (adding("README.md", "a\n", "b\n"), ["any"]),
        (session(), []),
    ],
    ids=["code", "code that only goes", "text", "nothing"],
)
def test_a_judge_is_asked_where_it_has_something_to_judge(given: Session, asked: list[str]) -> None:
    judges = [
        Judge(name="any", weight=1.0, model="m", body="# Any\n\nIs it short?"),
        Judge(name="code", weight=1.0, model="m", body="# Code\n\nIs it short?", needs="code"),
    ]
    (whole,) = chunk_by_tokens(traces_of(given))
    found = asked_judges(judges, given, whole)
    assert [judge.name for judge in found] == asked
    question = scoring_question(given, whole, judges=found)
    assert question.constant.count("<judge name=") == len(asked)
    part = chunk_by_tokens(traces_of(session()), target=80)[0]
    assert asked_judges(judges, given, part) == ()
