"""What models send for a reading, in the forms in which they really send it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from debrief.errors import ModelError
from debrief.models.answers import Answer, AnswerError
from debrief.scoring.answer_form import answer_example, answer_schema
from debrief.scoring.answer_reading import read_answer
from debrief.scoring.chunking import chunk_by_tokens
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.model import ChunkScores
from debrief.scoring.model_scorer import ModelChunkScorer
from debrief.scoring.traces import traces_of
from debrief.sessions.model import Evidence, Session
from tests.scoring.scenario import answer, session, turn

SAID = "Round the amounts to cents."
DONE = "The amounts are rounded and all 12 tests pass."
WRONG = "No, the total is still wrong."


def shop() -> Session:
    """Two turns: a request with a check, and a correction."""
    return session(
        turns=(turn(1, prompt=SAID, text=DONE), turn(2, prompt=WRONG, text="Fixed now."))
    )


def good() -> dict[str, Any]:
    """A reading of it with a quotation in every place that takes one."""
    done = {"turn": 1, "quote": DONE}
    six = {
        name: {"rationale": "As turn 1 shows.", "evidence": [done], "score": score}
        for name, score in {
            "task_completion": "partial",
            "execution_quality": 0.5,
            "tool_mastery": 0.75,
            "resource_efficiency": 0.5,
            "security_compliance": None,
            "user_satisfaction": "partial",
        }.items()
    }
    return {
        "requests": [
            {"turn": 1, "asked": "round to cents", "state": "done_seen", "proof": done},
            {"turn": 2, "asked": "mend the total", "state": "partial", "proof": None},
        ],
        "claims": [{**done, "state": "contradicted", "proof": {"turn": 2, "quote": WRONG}}],
        "verdict": "partial",
        "confidence": "medium",
        "quality": 0.5,
        "effort": 0.5,
        "incidents": [],
        "person": [{"turn": 2, "quote": WRONG, "says": "correction"}],
        "troubles": [{"turn": 1, "quote": DONE, "kind": "false_claim", "what": "It was not so.",
                      "rule": "Run the totals test before saying that it is done."}],
        "train": {"what": "parts", "turns": [[2, 2]]},
        "dimensions": six,
    }  # fmt: skip


def scored(text: str, given: Session | None = None) -> ChunkScores:
    given = given or shop()
    (chunk,) = chunk_by_tokens(traces_of(given))
    return ModelChunkScorer("m", lambda _: Answer(text=text), attempts=1).score_chunk(given, chunk)


PLAIN = scored(json.dumps(good()))

Change = Callable[[dict[str, Any]], Any]


def each_turn(change: Callable[[Any], Any]) -> Change:
    """Change every turn of every quotation."""

    def changed(said: Any) -> Any:
        if isinstance(said, list):
            return [changed(each) for each in said]
        if isinstance(said, dict):
            inner = {name: changed(each) for name, each in said.items()}
            return inner | ({"turn": change(said["turn"])} if "turn" in said else {})
        return said

    return changed


def each_number(change: Callable[[Any], Any]) -> Change:
    def changed(said: dict[str, Any]) -> dict[str, Any]:
        for name in ("quality", "effort"):
            said[name] = change(said[name])
        for each in said["dimensions"].values():
            if isinstance(each["score"], float):
                each["score"] = change(each["score"])
        return said

    return changed


def put(**changed: Any) -> Change:
    return lambda said: said | changed


def on(name: str, **changed: Any) -> Change:
    def change(said: dict[str, Any]) -> dict[str, Any]:
        said["dimensions"][name] |= changed
        return said

    return change


def bare(name: str, value: Any) -> Change:
    def change(said: dict[str, Any]) -> dict[str, Any]:
        said["dimensions"][name] = value
        return said

    return change


def evidence(form: Callable[[str], Any]) -> Change:
    def change(said: dict[str, Any]) -> dict[str, Any]:
        for each in said["dimensions"].values():
            each["evidence"] = form(each["evidence"][0]["quote"])
        return said

    return change


def cased(said: Any) -> Any:
    if isinstance(said, list):
        return [cased(each) for each in said]
    if isinstance(said, dict):
        return {name.replace("_", " ").title(): cased(each) for name, each in said.items()}
    return said


def flat(said: dict[str, Any]) -> dict[str, Any]:
    return {**without(said, "dimensions"), **said["dimensions"]}


def without(said: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: each for name, each in said.items() if name not in names}


FORMS: dict[str, Change] = {
    "numbers in strings": each_number(str),
    "numbers in strings with a full stop": each_number("{}.".format),
    "numbers in bold": each_number("**{}**".format),
    "numbers in full width": each_number(lambda n: str(n).replace("0", "０").replace("5", "５")),
    "null as text": on("security_compliance", score="null"),
    "null as N/A": on("security_compliance", score="N/A"),
    "null as none": on("security_compliance", score="None."),
    "null as an empty text": on("security_compliance", score=""),
    "null as a dash": on("security_compliance", score="–"),
    "a dimension that is null": bare("security_compliance", None),
    "a dimension that is a word for null": bare("security_compliance", "n/a"),
    "a dimension that is its score": bare("execution_quality", 0.5),
    "a category with a capital and a full stop": on("task_completion", score="Partial."),
    "a category in capitals": on("task_completion", score="PARTIAL"),
    "a category in quotes": on("task_completion", score="'partial'"),
    "a category with a line end": on("task_completion", score=" partial\n"),
    "a verdict with a capital": put(verdict="Partly."),
    "a confidence with a capital": put(confidence="Medium"),
    "turns in strings": each_turn(str),
    "turns with their word": each_turn("turn {}".format),
    "turns with a capital and a sign": each_turn("Turn #{}".format),
    "turns with a point": each_turn(float),
    "turns in lists": each_turn(lambda n: [n]),
    "evidence as one object": evidence(lambda quote: {"turn": 1, "quote": quote}),
    "evidence as text": evidence(lambda quote: f'turn 1: "{quote}"'),
    "evidence as texts": evidence(lambda quote: [f"Turn 1: “{quote}”"]),
    "evidence without a turn": evidence(lambda quote: [{"quote": quote}]),
    "evidence with a turn that is null": evidence(lambda quote: [{"turn": None, "quote": quote}]),
    "evidence in another turn": evidence(lambda quote: [{"turn": 2, "quote": quote}]),
    "evidence in a turn that is not there": evidence(lambda q: [{"turn": 90, "quote": q}]),
    "evidence with an empty entry": evidence(lambda q: [{"turn": 1, "quote": q}, None, "none"]),
    "a proof as text": lambda said: said | {"requests": [
        said["requests"][0] | {"proof": f"turn 1: {DONE}"}, said["requests"][1]]},
    "a proof as a list": lambda said: said | {"requests": [
        said["requests"][0] | {"proof": [said["requests"][0]["proof"]]}, said["requests"][1]]},
    "a proof as a word for null": lambda said: said | {"requests": [
        said["requests"][0], said["requests"][1] | {"proof": "none"}]},
    "a state in words": lambda said: said | {"requests": [
        said["requests"][0] | {"state": "Done, seen"}, said["requests"][1]]},
    "one claim as an object": lambda said: said | {"claims": said["claims"][0]},
    "no incidents as null": put(incidents=None),
    "no incidents as a word": put(incidents="none"),
    "incidents left out": lambda said: without(said, "incidents"),
    "ranges as text": put(train={"what": "parts", "turns": ["2-2"]}),
    "ranges as turns": put(train={"what": "parts", "turns": [2]}),
    "one range alone": put(train={"what": "parts", "turns": [2, 2]}),
    "ranges as objects": put(train={"what": "parts", "turns": [{"from": 2, "to": 2}]}),
    "keys in capitals": cased,
    "keys besides": put(summary="It went well.", score=0.9),
    "the six at the top": flat,
    "wrapped in an object": lambda said: {"reading": said},
    "wrapped in a list": lambda said: [said],
    "keys in another order": lambda said: dict(reversed(said.items())),
}  # fmt: skip


@pytest.mark.parametrize("change", FORMS.values(), ids=FORMS.keys())
def test_no_session_and_no_true_quotation_is_lost_for_the_form_of_an_answer(change: Change) -> None:
    found = scored(json.dumps(change(copy.deepcopy(good()))))
    values = [(verdict.dimension, verdict.value) for verdict in found.verdicts]
    assert values == [(verdict.dimension, verdict.value) for verdict in PLAIN.verdicts]
    assert found.reading == PLAIN.reading
    for score, plain in zip(found.verdicts, PLAIN.verdicts, strict=True):
        assert score.evidence == plain.evidence or score.rationale == ""


TEXT = json.dumps(good())
WRAPPED = {
    "a fence": f"```json\n{TEXT}\n```",
    "a fence and words around": f"Here is my reading:\n\n```\n{TEXT}\n```\nI hope it helps.",
    "words around": f"I read it twice. {TEXT} That is all.",
    "thinking": f"<think>Hm, {{maybe}} failed.</think>\n{TEXT}",
    "thinking without its first tag": f"Let me see.</think>{TEXT}",
    "a byte order mark and CRLF": "\ufeff" + TEXT.replace(", ", ",\r\n"),
    "a trailing comma": f"{TEXT[:-1]},}}",
    "a comment": TEXT.replace('"verdict"', '// the verdict\n"verdict"'),
    "a line end in a text": TEXT.replace("It was not so.", "It was\nnot so."),
    "the same twice": f"{TEXT}\n{TEXT}",
    "two pieces": "\n".join(
        [
            json.dumps(without(good(), "dimensions")),
            json.dumps({"dimensions": good()["dimensions"]}),
        ]
    ),
    "an end token": f"{TEXT}<|im_end|>",
    "an answer tag": f"<answer>{TEXT}</answer>",
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED.keys())
def test_what_stands_around_an_answer_is_left_aside(text: str) -> None:
    found = scored(text)
    assert found.verdicts == PLAIN.verdicts
    assert found.reading is not None
    assert PLAIN.reading is not None
    assert found.reading.requests == PLAIN.reading.requests


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "empty"),
        ("All was fine.", "no object"),
        (TEXT[:-30], "cut short"),
        (f"{answer()}\n{answer(tool_mastery=0.1)}", "differ"),
        (answer(task_completion="amazing"), "task_completion needs 'failed'"),
        (answer(task_completion=0.9), "task_completion needs 'failed'"),
        (answer(tool_mastery="85%"), "'85%' is not a number from 0 to 1"),
        (answer(tool_mastery="0,85"), "'0,85' is not a number"),
        (answer(tool_mastery="4/5"), "'4/5' is not a number"),
        (answer(tool_mastery=True), "'True' is not a number"),
        (answer(tool_mastery=7), "tool_mastery 7 is not from 0 to 1"),
        (answer(tool_mastery=float("nan")), "not from 0 to 1"),
        (answer(rationale=" "), "no dimension has a rationale"),
        (answer().replace('"tool_mastery"', '"tool"'), "leaves out tool_mastery"),
        (answer().replace('"tool_mastery"', '"execution_quality"'), "twice"),
        (answer().replace('"verdict"', '"result"'), "leaves out verdict"),
        (answer(verdict="mostly done"), "verdict needs 'complete_verified'"),
        (answer(requests=[{"turn": 1, "asked": "x", "state": "maybe"}]), "state needs 'done_seen'"),
        (answer(train={"what": "parts", "turns": ["the end"]}), "no first and last turn"),
        ('{"task_completion": "complete"}', "leaves out execution_quality"),
        ("[" * 100_000, "nested"),
        ("{" * 300_000, "longer"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_an_answer_that_is_not_certain_is_refused_with_the_reason(
    text: str | None, reason: str
) -> None:
    with pytest.raises(AnswerError, match=reason):
        read_answer(text)


def test_a_quotation_is_put_where_it_stands_and_an_invented_one_goes() -> None:
    said = good()
    said["dimensions"]["tool_mastery"]["evidence"] = [
        {"turn": 1, "quote": "MAKE  test"},
        {"turn": 1, "quote": "Fixed now."},
        {"turn": 1, "quote": "The amounts … 12 tests pass"},
        {"turn": 1, "quote": "it exploded"},
        {"turn": 2, "quote": ""},
    ]
    said["claims"].append({"turn": 2, "quote": "never said", "state": "supported", "proof": None})
    said["person"].append({"turn": 1, "quote": DONE, "says": "approval"})
    said["troubles"][0]["quote"] = "never said either"
    found = scored(json.dumps(said))
    assert found.verdicts[2].evidence == (
        Evidence(1, "call-1-0", "MAKE  test"),
        Evidence(2, "", "Fixed now."),
        Evidence(1, "", "The amounts … 12 tests pass"),
        Evidence(2),
    )
    reading = found.reading
    assert reading is not None
    assert [claim.quote for claim in reading.claims] == [DONE]
    assert [words.quote for words in reading.person] == [WRONG]
    assert [(trouble.turn, trouble.quote) for trouble in reading.troubles] == [(1, "")]


def test_an_answer_whose_quotations_all_stand_nowhere_is_refused() -> None:
    text = json.dumps(good()).replace("amounts", "sums").replace("total", "result")
    with pytest.raises(ModelError, match="none of its quotations stands in the recording"):
        scored(text)


def test_nobody_is_content_without_a_word_of_approval() -> None:
    said = good() | {"person": []}
    said["dimensions"]["user_satisfaction"] |= {"score": "good"}
    assert scored(json.dumps(said)).verdicts[-1].value is None
    said["dimensions"]["user_satisfaction"]["evidence"] = [{"turn": 2, "quote": WRONG}]
    assert scored(json.dumps(said)).verdicts[-1].category == "good"


def test_the_schema_takes_the_example_and_demands_every_key() -> None:
    import jsonschema

    for judges in ((), ("code-reuse", "plan-compliance")):
        schema = answer_schema(judges)
        jsonschema.validate(json.loads(answer_example(judges)), schema)
        named = list(schema["properties"])
        assert named[0] == "requests"
        assert named.index("verdict") < named.index("quality") < named.index("dimensions")
        nodes = [schema, *schema["$defs"].values()]
        objects = [node for node in nodes if "properties" in node]
        assert all(node["required"] == list(node["properties"]) for node in objects)
        assert all(node["additionalProperties"] is False for node in objects)
    six = read_answer(answer_example())
    assert all(six.dimension(dimension.name) for dimension in DIMENSIONS)
