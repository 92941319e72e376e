"""The scoring prompt, its answer, and the model that is asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from debrief.judging.answers import read_judgement
from debrief.judging.model import Judge
from debrief.models.answers import Answer, AnswerError, Question
from debrief.models.citing import cited_turns
from debrief.models.usage import ModelUsage
from debrief.scoring.answer_form import answer_example
from debrief.scoring.answer_reading import read_answer
from debrief.scoring.chunking import chunk_by_tokens
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.model_scorer import ModelChunkScorer, scoring_prompt, scoring_question
from debrief.scoring.traces import traces_of
from tests.scoring.scenario import answer, changing, session, turn, verdicts


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


def test_the_prompt_carries_task_facts_part_traces_and_every_anchor() -> None:
    given = session(turns=tuple(turn(n, prompt=f"prompt number {n}") for n in range(1, 13)))
    chunks = chunk_by_tokens(traces_of(given), target=300)
    prompt = scoring_prompt(given, chunks[2])
    assert f"Part 3 of {len(chunks)} of the session." in prompt
    assert "prompt number 1\n" in prompt
    assert "Human turns: 12" in prompt
    assert "- Last test (make test), turn 12: `make test`: passed; exit code 0" in prompt
    assert all(part.text.strip() in prompt for t in chunks[2].traces for part in t.observations)
    assert all(anchor.text in prompt for d in DIMENSIONS for anchor in d.anchors)
    headings = ["What the task is", "Facts", "Repeated for context", "To be scored"]
    places = [prompt.index(f"### {name}\n") for name in headings]
    assert places == sorted(places)
    assert prompt.index("## What counts") < prompt.index("<<<data") < places[0]
    assert prompt.endswith("and nothing else.\n")


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


def test_the_end_of_a_long_session_is_said_once_more_and_that_of_a_short_one_is_not() -> None:
    short, long = session(), session(turns=80)
    for given, times in ((short, 0), (long, 1)):
        (chunk,) = chunk_by_tokens(traces_of(given))
        assert scoring_prompt(given, chunk).count("### The end once more") == times


def test_every_part_shows_what_the_person_said_in_all_of_them() -> None:
    prompts = ("add a tax", "no, that is wrong", "thanks")
    given = session(turns=tuple(turn(n, prompt=said) for n, said in enumerate(prompts, 1)))
    parts = chunk_by_tokens(traces_of(given), target=80)
    assert len(parts) > 1
    for part in parts:
        shown = scoring_prompt(given, part).partition("### What the person said")[2]
        said = shown.partition("### Facts")[0]
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
    assert [v.value for v in said.verdicts] == [v.value for v in verdicts()]
    assert (said.input_tokens, said.output_tokens, said.cost_usd) == (200, 40, None)
    assert "could not be used: it holds no object" in ask.prompts[1]
    assert ask.prompts[1].startswith(ask.prompts[0])


def test_a_citation_of_a_turn_that_the_session_does_not_have_is_refused() -> None:
    given = session(turns=12)
    chunk = chunk_by_tokens(traces_of(given), target=80)[-1]
    ask = Scripted(reply(answer("see turn 13")), reply(answer("see turns 1 and 12")))
    ModelChunkScorer("some-model", ask).score_chunk(given, chunk)
    assert "cites turn 13, which is not there" in ask.prompts[1]


def test_what_is_the_same_for_all_sessions_comes_first_and_the_example_is_an_answer() -> None:
    one, other = session("one", turns=2), session("two", turns=5)
    questions = [
        scoring_question(each, chunk_by_tokens(traces_of(each))[0]) for each in (one, other)
    ]
    assert questions[0].constant == questions[1].constant
    assert questions[0].text != questions[1].text
    example = questions[0].constant.rpartition("values made up:")[2]
    assert read_answer(example) == read_answer(answer_example())


def test_judges_ride_with_a_whole_session_that_changed_something_and_not_with_a_part() -> None:
    judges = [Judge(name="short", weight=1.0, model="m", body="# Short\n\nIs it short?")]
    given = changing()
    (whole,) = chunk_by_tokens(traces_of(given))
    question = scoring_question(given, whole, judges=judges)
    assert '<judge name="short">\n# Short' in question.constant
    assert "short" in (question.form or {})["$defs"]["Judges"]["properties"]
    part = chunk_by_tokens(traces_of(given), target=80)[0]
    assert part.count > 1
    assert "<judge" not in scoring_question(given, part, judges=judges).whole
    unchanged = session()
    (chunk,) = chunk_by_tokens(traces_of(unchanged))
    assert "<judge" not in scoring_question(unchanged, chunk, judges=judges).whole
