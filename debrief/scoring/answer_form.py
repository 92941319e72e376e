"""The form of a model's answer: its fields, its JSON schema, and an example of it.

Each field takes the slips that have one meaning: numbers in quotes, ``N/A`` for null, one object
in place of a list, "turn 3" for 3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import (
    BeforeValidator,
    Field,
    create_model,
    model_validator,
)

from debrief.judging.answers import JudgeAnswer
from debrief.models.answer_fields import AnswerPart, Fraction, Text, is_null, word
from debrief.models.answers import fold
from debrief.scoring.dimensions import DIMENSIONS, Dimension
from debrief.scoring.llm_review import (
    TROUBLE_KINDS,
    Attitude,
    ClaimState,
    Confidence,
    RequestState,
    TrainWhat,
    TroubleKind,
)
from debrief.scoring.verdict import VerdictName

LONGEST_TEXT, LONGEST_QUOTE = 4_000, 300
_QUOTES = " \t\n\"'“”„"
_LEADING_TURN = re.compile(r"\W{0,3}turn\s*#?(\d{1,6})\W*", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,6}")


def _turn(value: Any) -> Any:
    """Read a turn's number out of whatever names it; None where nothing does.

    A quotation finds its turn by its words, so a number that cannot be read loses nothing.
    """
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        digits = _DIGITS.search(fold(value))
        return int(digits[0]) if digits else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _nullable_word(value: Any) -> Any:
    return None if is_null(value) else word(value)


def _items(value: Any) -> Any:
    """Return a list of what is none, one or several."""
    if is_null(value):
        return []
    return [each for each in value if not is_null(each)] if isinstance(value, list) else [value]


Turn = Annotated[int | None, BeforeValidator(_turn)]


class Quotation(AnswerPart):
    """Words of a session, and the turn that they are said to stand in."""

    turn: Turn = None
    quote: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        """Take ``turn 3: "words"`` and plain words too."""
        if isinstance(value, int):
            return {"turn": value}
        if not isinstance(value, str):
            return value
        named = _LEADING_TURN.match(value)
        quote = value[named.end() if named else 0 :].strip(_QUOTES)
        return {"turn": named[1] if named else None, "quote": quote}

    @property
    def without_words(self) -> Quotation:
        """Return the turn alone."""
        return Quotation(turn=self.turn)


def _proof(value: Any) -> Any:
    if isinstance(value, list):
        value = next((each for each in value if not is_null(each)), None)
    return None if is_null(value) else value


Proof = Annotated[Quotation | None, BeforeValidator(_proof)]


class _Request(AnswerPart):
    turn: Turn = None
    asked: Text = ""
    state: Annotated[RequestState, BeforeValidator(word)]
    proof: Proof = None


class _Claim(Quotation):
    state: Annotated[ClaimState, BeforeValidator(word)]
    proof: Proof = None


class _Incident(Quotation):
    what: Text = ""


class _PersonWords(Quotation):
    says: Annotated[Attitude, BeforeValidator(word)]


def _kind(value: Any) -> Any:
    found = word(value)
    return found if isinstance(found, str) and found in TROUBLE_KINDS else "other"


class _Trouble(Quotation):
    kind: Annotated[TroubleKind, BeforeValidator(_kind)] = "other"
    what: Text = ""
    rule: Annotated[Text, BeforeValidator(lambda value: None if is_null(value) else value)] = ""


_TRAIN = {"yes": "all", "whole": "all", "some": "parts", "no": "none", "null": "none"}


def _what(value: Any) -> Any:
    return _TRAIN.get(word(value), word(value)) if isinstance(value, str) else value


def _ranges(value: Any) -> Any:
    """Return pairs of turns of ranges in any form: ``[1, 3]``, ``"1-3"``, ``7``."""
    if is_null(value):
        return []
    given = value if isinstance(value, list) else [value]
    if len(given) == 2 and all(isinstance(each, int) for each in given):
        given = [given]
    pairs = []
    for each in given:
        named = list(each.values()) if isinstance(each, dict) else each
        numbers = [int(found) for found in _DIGITS.findall(json.dumps(named))]
        if len(numbers) not in (1, 2):
            raise ValueError(f"{str(each)[:40]!r} is no first and last turn")
        pairs.append([min(numbers), max(numbers)])
    return pairs


class _Train(AnswerPart):
    what: Annotated[TrainWhat, BeforeValidator(_what)]
    turns: Annotated[list[list[int]], BeforeValidator(_ranges)] = []

    @model_validator(mode="before")
    @classmethod
    def _of_word(cls, value: Any) -> Any:
        return {"what": value} if isinstance(value, str) else value


def _confidence(value: Any) -> Any:
    """Return one of the three words; None for whatever else, as nothing is decided by it."""
    return found if (found := word(value)) in get_args(Confidence) else None


def _verdict(value: Any) -> Any:
    return "undetermined" if is_null(value) else word(value)


def _scalar_as_score(value: Any) -> Any:
    """Take a dimension that is its bare score, or null."""
    return value if isinstance(value, dict) else {"score": value}


class DimensionAnswer(AnswerPart):
    """What is said of one dimension: reason first, score last."""

    rationale: Text = ""
    evidence: Annotated[list[Quotation], BeforeValidator(_items)] = []
    score: Any


class ReviewAnswer(AnswerPart):
    """What a model answers for a session or a part of one, in the order in which it is asked:
    what was asked for first, numbers last.
    """

    requests: Annotated[list[_Request], BeforeValidator(_items)] = []
    claims: Annotated[list[_Claim], BeforeValidator(_items)] = []
    verdict: Annotated[VerdictName, BeforeValidator(_verdict)]
    confidence: Annotated[Confidence | None, BeforeValidator(_confidence)] = None
    quality: Fraction = None
    effort: Fraction = None
    incidents: Annotated[list[_Incident], BeforeValidator(_items)] = []
    person: Annotated[list[_PersonWords], BeforeValidator(_items)] = []
    troubles: Annotated[list[_Trouble], BeforeValidator(_items)] = []
    train: _Train | None = None
    dimensions: Any
    judges: Any = None

    def dimension(self, name: str) -> DimensionAnswer:
        """Return what is said of a dimension, by its name."""
        found: DimensionAnswer = getattr(self.dimensions, name)
        return found

    def judge(self, number: int) -> JudgeAnswer | None:
        """Return what is said to the judge of a place in the form; None for nothing."""
        found: JudgeAnswer | None = getattr(self.judges, f"judge_{number}", None)
        return found


_SAME_HEIGHT: Final[Mapping[tuple[str, str], str]] = {
    ("security_compliance", "good"): "adequate",
    ("user_satisfaction", "adequate"): "good",
}
"""Words that stand at the same height of another dimension's scale: a slip with one meaning."""


def _categories(dimension: Dimension) -> Any:
    labels = tuple(anchor.label for anchor in dimension.anchors)

    def read(value: Any) -> Any:
        if is_null(value):
            return None
        said = word(value)
        return _SAME_HEIGHT.get((dimension.name, said), said) if isinstance(said, str) else said

    return Annotated[Literal[labels] | None, BeforeValidator(read)]


def _answer_on(dimension: Dimension) -> Any:
    score: Any = _categories(dimension) if dimension.kind == "categorical" else Fraction
    made = create_model(f"{dimension.name}", __base__=DimensionAnswer, score=(score, ...))
    return Annotated[made, BeforeValidator(_scalar_as_score)]


@cache
def answer_form(judges: tuple[str, ...] = ()) -> type[ReviewAnswer]:
    """Return the form of an answer.

    Args:
        judges: names of those whose questions ride in the same call, in order.
    """
    six: dict[str, Any] = {dimension.name: (_answer_on(dimension), ...) for dimension in DIMENSIONS}
    fields: dict[str, Any] = {
        "dimensions": (create_model("Dimensions", __base__=AnswerPart, **six), ...)
    }
    if judges:
        union_type = Annotated[
            JudgeAnswer | None,
            BeforeValidator(lambda v: v if v is None or isinstance(v, dict) else {"score": v}),
        ]
        named: dict[str, Any] = {
            f"judge_{number}": (union_type, Field(None, alias=name))
            for number, name in enumerate(judges)
        }
        made = create_model("Judges", __base__=AnswerPart, **named)
        fields["judges"] = (made | None, None)
    return create_model("Reading", __base__=ReviewAnswer, **fields)


@cache
def answer_schema(judges: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON schema of an answer, as strict modes of providers take it: every property
    required, no other one allowed, no defaults.
    """
    schema = answer_form(judges).model_json_schema()
    if not judges:
        schema["properties"].pop("judges")
    # DSPy's client takes a choice at the top for a question of its own, and then gives no text.
    for name, field in schema["properties"].items():
        if "enum" in field:
            schema["$defs"][name] = field
            schema["properties"][name] = {"$ref": f"#/$defs/{name}"}
    strict: dict[str, Any] = _strict(schema)
    return strict


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: {name: _strict(each) for name, each in value.items()}
        if key in ("properties", "$defs")
        else _strict(value)
        for key, value in node.items()
        if key not in ("default", "title", "description")
    }
    if "properties" in kept:
        kept |= {"additionalProperties": False, "required": list(kept["properties"])}
    return kept


_PLACE = {"turn": 3, "quote": "words copied from that turn"}
_EXAMPLE: Final[Mapping[str, Any]] = {
    "requests": [
        {
            "turn": 1,
            "asked": "what was asked for, in a few words",
            "state": "done_seen",
            "proof": {"turn": 4, "quote": "12 passed"},
        },
        {"turn": 2, "asked": "...", "state": "partial", "proof": None},
    ],
    "claims": [{"turn": 4, "quote": "All tests pass", "state": "supported", "proof": _PLACE}],
    "verdict": "partial",
    "confidence": "medium",
    "quality": 0.45,
    "effort": 0.7,
    "incidents": [],
    "person": [{"turn": 2, "quote": "no, not there", "says": "correction"}],
    "troubles": [
        {
            **_PLACE,
            "kind": "unchecked",
            "what": "one sentence",
            "rule": "one line for AGENTS.md",
        }
    ],
    "train": {"what": "parts", "turns": [[1, 1], [3, 4]]},
}
_SCORES = ("partial", 0.55, 0.75, 0.7, None, "partial")


@cache
def answer_example(judges: tuple[str, ...] = ()) -> str:
    """Return a filled example of an answer: real types, in the order of the form."""
    six = {
        dimension.name: {
            "rationale": "..." if number else "one to three sentences that cite turn 3",
            "evidence": [] if score is None else [{"turn": 3, "quote": "..."}],
            "score": score,
        }
        for number, (dimension, score) in enumerate(zip(DIMENSIONS, _SCORES, strict=True))
    }
    whole = {**_EXAMPLE, "dimensions": six}
    if judges:
        whole["judges"] = {name: {"feedback": "...", "score": 0.7} for name in judges}
    lines = [f'  "{name}": {_inline(value)}' for name, value in whole.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _inline(value: Any) -> str:
    """Return JSON with one line for each entry of an object of objects, or one line."""
    nested = isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())
    if not nested:
        return json.dumps(value)
    lines = [f'    "{name}": {json.dumps(each)}' for name, each in value.items()]
    return "{\n" + ",\n".join(lines) + "\n  }"
