"""What models send for a review, in the forms in which they really send it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import ModelError
from debrief.models.answers import Answer, AnswerError
from debrief.scoring.answer_form import answer_example, answer_schema
from debrief.scoring.answer_reading import read_answer
from debrief.scoring.chunking import chunk_by_tokens
from debrief.scoring.dimensions import dimensions_of
from debrief.scoring.llm_review import SessionReview
from debrief.scoring.model_scorer import ModelChunkScorer
from debrief.scoring.quotations import Recording, verified_review
from debrief.scoring.traces import traces_of
from debrief.scoring.verdict import VERDICT_NAMES
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
    """A review of it with a quotation in every place that takes one."""
    done = {"turn": 1, "quote": DONE}
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
        "tools": {"what": "The test was run too early.", "value": 0.5},
        "incidents": [{**done, "what": "A file was lost.", "harm": True}],
        "person": [{"turn": 2, "quote": WRONG, "says": "correction"}],
        "frictions": [{**done, "what": "It was not so.",
                       "instead": "Run the totals test before saying that it is done."}],
        "train": {"what": "parts", "turns": [[2, 2]]},
    }  # fmt: skip


def reviewed(text: str, given: Session | None = None) -> SessionReview:
    given = given or shop()
    (chunk,) = chunk_by_tokens(traces_of(given))
    scorer = ModelChunkScorer("m", lambda _: Answer(text=text), attempts=1)
    found = scorer.score_chunk(given, chunk).review
    assert found is not None
    return found


PLAIN = reviewed(json.dumps(good()))

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
    return lambda said: (
        said
        | {name: change(said[name]) for name in ("quality", "effort")}
        | {"tools": said["tools"] | {"value": change(said["tools"]["value"])}}
    )


def put(**changed: Any) -> Change:
    return lambda said: said | changed


def first_proof(change: Callable[[Any], Any]) -> Change:
    def changed(said: dict[str, Any]) -> dict[str, Any]:
        said["requests"][0]["proof"] = change(said["requests"][0]["proof"])
        return said

    return changed


def first(name: str, **changed: Any) -> Change:
    def change(said: dict[str, Any]) -> dict[str, Any]:
        said[name][0] |= changed
        return said

    return change


def cased(said: Any) -> Any:
    if isinstance(said, list):
        return [cased(each) for each in said]
    if isinstance(said, dict):
        return {name.replace("_", " ").title(): cased(each) for name, each in said.items()}
    return said


def without(said: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: each for name, each in said.items() if name not in names}


FORMS: dict[str, Change] = {
    "numbers in strings": each_number(str),
    "numbers in strings with a full stop": each_number("{}.".format),
    "numbers in bold": each_number("**{}**".format),
    "numbers in full width": each_number(lambda n: str(n).replace("0", "０").replace("5", "５")),
    "a verdict with a capital": put(verdict="Partial."),
    "a verdict in capitals": put(verdict="PARTIAL"),
    "a verdict in another word": put(verdict="partly"),
    "a confidence with a capital": put(confidence="Medium"),
    "turns in strings": each_turn(str),
    "turns with their word": each_turn("turn {}".format),
    "turns with a capital and a sign": each_turn("Turn #{}".format),
    "turns with a point": each_turn(float),
    "turns in lists": each_turn(lambda n: [n]),
    "a proof as text": first_proof(lambda proof: f'turn 1: "{proof["quote"]}"'),
    "a proof in curly quotes": first_proof(lambda proof: f"Turn 1: “{proof['quote']}”"),
    "a proof as a list": first_proof(lambda proof: [proof]),
    "a proof without a turn": first_proof(lambda proof: {"quote": proof["quote"]}),
    "a proof in another turn": first_proof(lambda proof: proof | {"turn": 2}),
    "a proof in a turn that is not there": first_proof(lambda proof: proof | {"turn": 90}),
    "a proof as a word for null": lambda said: said | {"requests": [
        said["requests"][0], said["requests"][1] | {"proof": "none"}]},
    "a state in words": first("requests", state="Done, seen"),
    "one claim as an object": lambda said: said | {"claims": said["claims"][0]},
    "harm in a string": first("incidents", harm="True"),
    "ranges as text": put(train={"what": "parts", "turns": ["2-2"]}),
    "ranges as turns": put(train={"what": "parts", "turns": [2]}),
    "one range alone": put(train={"what": "parts", "turns": [2, 2]}),
    "ranges as objects": put(train={"what": "parts", "turns": [{"from": 2, "to": 2}]}),
    "keys in capitals": cased,
    "keys besides": put(summary="It went well.", score=0.9, dimensions={"tool_mastery": 7}),
    "wrapped in an object": lambda said: {"review": said},
    "wrapped in a list": lambda said: [said],
    "keys in another order": lambda said: dict(reversed(said.items())),
}  # fmt: skip


@pytest.mark.parametrize("change", FORMS.values(), ids=FORMS.keys())
def test_no_true_quotation_is_lost_for_the_form_of_an_answer(change: Change) -> None:
    assert reviewed(json.dumps(change(copy.deepcopy(good())))) == PLAIN


LOST: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an effort on another scale": ({"effort": 85}, {"effort": None}),
    "an effort in per cent": ({"effort": "85%"}, {"effort": None}),
    "a confidence that is none": ({"confidence": "very"}, {"confidence": None}),
    "a train that is none": ({"train": {"what": "some of it"}}, {"train": None}),
    "ranges that are none": ({"train": {"what": "parts", "turns": ["end"]}}, {"train": None}),
    "claims in an unknown state": (
        {"claims": [{"turn": 1, "quote": DONE, "state": "maybe"}]}, {"claims": ()}),
    "words that neither approve nor correct": (
        {"person": [{"turn": 2, "quote": WRONG, "says": "joke"}]}, {"person": ()}),
    "tools as a list": ({"tools": [1, 2]}, {"tools": None}),
    "all that is not needed": (
        dict.fromkeys(["claims", "confidence", "effort", "tools", "incidents", "person",
                       "frictions", "train"]),
        {"claims": (), "confidence": None, "effort": None, "tools": None, "incidents": (),
         "person": (), "frictions": (), "train": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "expected"), LOST.values(), ids=LOST.keys())
def test_what_cannot_be_read_and_is_not_needed_costs_itself_alone(
    changed: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = reviewed(json.dumps(good() | changed))
    assert {name: getattr(found, name) for name in expected} == expected
    assert (found.requests, found.verdict, found.quality) == (
        PLAIN.requests, PLAIN.verdict, PLAIN.quality,
    )  # fmt: skip


def test_requests_in_other_forms_are_kept_as_unclear() -> None:
    asked = ["round to cents", {"asked": "mend it", "state": "nearly"}, 7, {"turn": 90}]
    found = reviewed(json.dumps(good() | {"requests": asked}))
    assert [(each.asked, each.state, each.turn) for each in found.requests] == [
        ("round to cents", "unclear", 0), ("mend it", "unclear", 0), ("", "unclear", 0),
    ]  # fmt: skip


KEYS = st.text("abcdef", min_size=1, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-100, 100) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("claims", "confidence", "effort", "tools", "incidents", "person", "frictions", "train",
          "judges", "dimensions")  # fmt: skip
PARTS = (
    "turn",
    "quote",
    "state",
    "proof",
    "what",
    "instead",
    "kind",
    "says",
    "value",
    "turns",
    "harm",
)
SHOP = shop()
(CHUNK,) = chunk_by_tokens(traces_of(SHOP))
entries = st.lists(st.dictionaries(st.sampled_from(PARTS), JSON, max_size=6) | JSON, max_size=3)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(VERDICT_NAMES),
    st.floats(0, 1),
    st.lists(JSON, max_size=3),
    st.dictionaries(st.sampled_from(FIELDS), entries | JSON, max_size=6),
)
def test_any_answer_with_requests_verdict_and_quality_is_read(
    verdict: str, quality: float, requests: list[Any], rest: dict[str, Any]
) -> None:
    said = {"requests": requests, "verdict": verdict, "quality": quality, **rest}
    read = read_answer(json.dumps(said), ["care"])
    assert (read.verdict, read.quality) == (verdict, quality)
    with suppress(AnswerError):  # several quotations, all of them invented
        review = verified_review(read, Recording(SHOP, CHUNK, ""))
        scores = dimensions_of(review, review.verdict)
        assert all(score.value is None or 0 <= score.value <= 1 for score in scores)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.sampled_from([*FIELDS, "requests", "verdict", "quality"]), JSON) | JSON)
def test_no_answer_raises_anything_but_its_refusal(said: Any) -> None:
    with suppress(AnswerError):
        assert read_answer(json.dumps(said), ["care"]).verdict in VERDICT_NAMES


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
            json.dumps(without(good(), "verdict", "quality")),
            json.dumps({"verdict": "partial", "quality": 0.5}),
        ]
    ),
    "an end token": f"{TEXT}<|im_end|>",
    "an answer tag": f"<answer>{TEXT}</answer>",
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED.keys())
def test_what_stands_around_an_answer_is_left_aside(text: str) -> None:
    assert reviewed(text).requests == PLAIN.requests


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "empty"),
        ("All was fine.", "no object"),
        (TEXT[:-30], "cut short"),
        (f"{answer()}\n{answer(quality=0.1)}", "differ"),
        (answer(quality="85%"), "'85%' is not a number from 0 to 1"),
        (answer(quality="0,85"), "'0,85' is not a number"),
        (answer(quality=7), "quality 7 is not from 0 to 1"),
        (answer(quality=float("nan")), "not from 0 to 1"),
        (answer(quality=None), "quality needs a number"),
        (answer(verdict="done"), "verdict needs 'complete_verified'"),
        (answer(verdict="complete"), "verdict needs 'complete_verified'"),
        (answer().replace('"quality"', '"verdict"'), "twice"),
        (answer().replace('"verdict"', '"result"'), "leaves out verdict"),
        (answer().replace('"requests"', '"wishes"'), "leaves out requests"),
        (answer().replace('"quality"', '"score"'), "leaves out quality"),
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


def test_where_nothing_decides_no_quality_is_needed() -> None:
    assert read_answer(answer(verdict="undetermined", quality=None)).quality is None


def test_a_quotation_is_put_where_it_stands_and_an_invented_one_goes() -> None:
    def proof(turn: int, quote: str) -> dict[str, Any]:
        return {"asked": "x", "state": "done_seen", "proof": {"turn": turn, "quote": quote}}

    said = good() | {
        "requests": [
            proof(1, "MAKE  test"),
            proof(1, "Fixed now."),
            proof(1, "The amounts … 12 tests pass"),
            proof(1, "it exploded"),
            proof(2, ""),
        ]
    }
    said["claims"].append({"turn": 2, "quote": "never said", "state": "supported", "proof": None})
    said["person"].append({"turn": 1, "quote": DONE, "says": "approval"})
    said["frictions"][0]["quote"] = "never said either"
    review = reviewed(json.dumps(said))
    assert [request.proof for request in review.requests] == [
        Evidence(1, "call-1-0", "MAKE  test"),
        Evidence(2, "", "Fixed now."),
        Evidence(1, "", "The amounts … 12 tests pass"),
        None,
        Evidence(2),
    ]
    assert [claim.quote for claim in review.claims] == [DONE]
    assert [words.quote for words in review.person] == [WRONG]
    assert [(each.turn, each.quote) for each in review.frictions] == [(1, "")]


def test_a_turn_that_is_not_there_costs_its_citation_alone() -> None:
    given = session(turns=(turn(1),))
    said = answer("As turn 2 shows.", claims=[
        {"turn": 2, "quote": "I did.", "state": "supported", "proof": {"turn": 7, "quote": ""}}])  # fmt: skip
    review = reviewed(said, given)
    assert review.claims[0].place == Evidence(1, "", "I did.")
    assert review.claims[0].proof is None


def test_an_answer_whose_quotations_all_stand_nowhere_is_refused() -> None:
    text = json.dumps(good()).replace("amounts", "sums").replace("total", "result")
    with pytest.raises(ModelError, match="none of its quotations stands in the recording"):
        reviewed(text)


def test_the_schema_takes_the_example_and_demands_every_key() -> None:
    import jsonschema

    for judges in ((), ("code-reuse", "plan-compliance")):
        schema = answer_schema(judges)
        jsonschema.validate(json.loads(answer_example(judges)), schema)
        named = list(schema["properties"])
        assert named[0] == "requests"
        assert named.index("verdict") < named.index("quality")
        nodes = [schema, *schema["$defs"].values()]
        objects = [node for node in nodes if "properties" in node]
        assert all(node["required"] == list(node["properties"]) for node in objects)
        assert all(node["additionalProperties"] is False for node in objects)
    assert "dimensions" not in answer_example()
    assert read_answer(answer_example()).verdict == "partial"
