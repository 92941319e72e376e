"""The scoring prompt, its answer, and the model that is asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from debrief.judging.dspy_judge import parse_fraction
from debrief.models.answers import Answer, AnswerError
from debrief.models.citing import cited_turns
from debrief.models.usage import ModelUsage
from debrief.scoring.chunking import chunk_by_tokens
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.model_scorer import (
    ModelChunkScorer,
    parse_verdicts,
    scoring_prompt,
)
from debrief.scoring.traces import traces_of
from debrief.sessions.model import Evidence
from tests.scoring.scenario import answer, session, turn, verdicts


def reply(text: str, cost_usd: float | None = 0.5) -> Answer:
    usage = ModelUsage(input_tokens=100, output_tokens=20, cost_usd=cost_usd)
    return Answer(text=text, usage=usage)


class Scripted:
    """Gives its replies one after the other, and keeps the prompts."""

    def __init__(self, *replies: Answer) -> None:
        self.prompts: list[str] = []
        self._replies: Iterator[Answer] = iter(replies)

    def __call__(self, prompt: str) -> Answer:
        self.prompts.append(prompt)
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
    assert places[-1] < prompt.index("<<<end of data") < prompt.index("## How to score")


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


def test_a_plain_answer_gives_six_verdicts_in_the_tables_order() -> None:
    found = parse_verdicts(answer())
    assert [v.dimension for v in found] == [d.name for d in DIMENSIONS]
    assert [v.value for v in found] == [v.value for v in verdicts()]


@pytest.mark.parametrize(
    "text",
    [
        f"Here is my verdict:\n```json\n{answer()}\n```\nI hope it helps.",
        f"<think>Hm, {{maybe}} failed.</think>\n{answer()}",
        answer().replace("}}", "},}"),
        answer(task_completion=" Complete "),
        answer(charisma=1.0),
        f'{{"scores": {answer()}}}',
        f"{answer()}\n{answer()}",
        answer(security_compliance="good"),
    ],
    ids=["fence", "thinking", "comma", "case", "extra", "wrapped", "doubled", "same height"],
)
def test_what_models_really_send_is_understood(text: str) -> None:
    assert [v.value for v in parse_verdicts(text)] == [v.value for v in verdicts()]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (None, "empty"),
        ("All was fine.", "no object"),
        (answer()[:-30], "cut short"),
        (f"{answer()}\n{answer(tool_mastery=0.1)}", "differ"),
        (answer(task_completion="amazing"), "no category"),
        (answer(task_completion=0.9), "needs a category"),
        (answer(tool_mastery="0.9"), "needs a number"),
        (answer(tool_mastery=True), "needs a number"),
        (answer(tool_mastery=7), "not from 0 to 1"),
        (answer(tool_mastery=float("nan")), "not from 0 to 1"),
        (answer(rationale=" "), "no rationale"),
        (answer().replace('"tool_mastery"', '"tool"'), "leaves out tool_mastery"),
        (answer().replace('"tool_mastery"', '"execution_quality"'), "twice"),
        ('{"task_completion": "complete"}', "no object"),
        ("[" * 100_000, "nested"),
        ("{" * 300_000, "longer"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_answer_that_is_not_certain_is_refused_with_the_reason(
    text: str | None, reason: str
) -> None:
    with pytest.raises(AnswerError, match=reason):
        parse_verdicts(text)


def test_reason_may_stand_before_or_after_the_number_and_null_is_no_evidence() -> None:
    before = {n: dict(reversed(said.items())) for n, said in json.loads(answer()).items()}
    assert [*before["tool_mastery"]] == ["rationale", "score"]
    assert parse_verdicts(json.dumps(before)) == parse_verdicts(answer())
    mastery = parse_verdicts(answer(tool_mastery=None))[2]
    assert (mastery.value, mastery.rationale) == (None, "seen in turn 1")
    given = session()
    form = scoring_prompt(given, chunk_by_tokens(traces_of(given))[0]).partition("## Answer")[2]
    assert form.index('"rationale"') < form.index('"evidence"') < form.index('"score"')


def quoting(*quotes: tuple[object, object]) -> str:
    said = json.loads(answer())
    said["tool_mastery"]["evidence"] = [{"turn": t, "quote": q} for t, q in quotes]
    return json.dumps(said)


def test_evidence_names_turn_call_and_words_and_what_does_not_stand_there_is_dropped() -> None:
    given = session()
    (chunk,) = chunk_by_tokens(traces_of(given))
    ask = Scripted(
        reply(quoting((2, "the tests were never run"))),
        reply(quoting((2, "MAKE  test"), (3, "I did."), (1, "it exploded"), ("x", 1), (1, None))),
    )
    verdict = ModelChunkScorer("m", ask).score_chunk(given, chunk).verdicts[2]
    assert "tool_mastery quotes words that do not stand in the recording" in ask.prompts[1]
    assert verdict.evidence == (Evidence(2, "call-2-0", "MAKE  test"), Evidence(3, "", "I did."))
    plain = ModelChunkScorer("m", Scripted(reply(answer()))).score_chunk(given, chunk)
    assert plain.verdicts[2].evidence == (Evidence(1),)


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
    ("text", "value"),
    [
        ("0.85", 0.85),
        (" 1 ", 1.0),
        ("0", 0.0),
        ("**0.5**", 0.5),
        ("score: .25", 0.25),
        ('{"score": 0.75, "feedback": "ok"}', 0.75),
        ("[[ ## score ## ]]\n0.3\n\n[[ ## feedback ## ]]\nwas 0.9 before", 0.3),
        ("Score: 0.4\nScore: 0.40", 0.4),
    ],
)
def test_a_plain_number_from_nothing_to_one_is_a_score(text: str, value: float) -> None:
    assert parse_fraction(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "85%", "0,85", "4/5", "1.5", "-0.1", "-0", "nan", "inf", "1e999", "0.9.1", "high"),
        *("score: 0.2\nscore: 0.9", '{"score": true}', '{"score": null}', "1_0", "0.8 or 0.9"),
    ],
)
def test_anything_else_is_no_score(text: str) -> None:
    with pytest.raises(AnswerError):
        parse_fraction(text)


def test_a_refused_answer_is_asked_for_again_with_the_reason() -> None:
    ask = Scripted(reply("no idea"), reply(answer(), cost_usd=None))
    given = session()
    (chunk,) = chunk_by_tokens(traces_of(given))
    said = ModelChunkScorer("some-model", ask).score_chunk(given, chunk)
    assert [v.value for v in said.verdicts] == [v.value for v in verdicts()]
    assert (said.input_tokens, said.output_tokens, said.cost_usd) == (200, 40, None)
    assert "could not be used: it holds no object" in ask.prompts[1]
    assert ask.prompts[1].startswith(ask.prompts[0])


def test_a_citation_of_a_turn_that_the_part_does_not_show_is_refused() -> None:
    given = session(turns=12)
    chunk = chunk_by_tokens(traces_of(given), target=80)[-1]
    ask = Scripted(reply(answer("see turn 5")), reply(answer("see turns 1 and 12")))
    ModelChunkScorer("some-model", ask).score_chunk(given, chunk)
    assert "cites turn 5, which is not there" in ask.prompts[1]
