"""The form of a model's answer: its fields, its JSON schema, and an example of it.

Each field takes the slips that have one meaning: numbers in quotes, ``N/A`` for null, one object
in place of a list, "turn 3" for 3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from debrief.judging.answers import JudgeAnswer
from debrief.models.answer_fields import AnswerPart, Fraction, Text, is_null, word
from debrief.models.answers import fold
from debrief.scoring.llm_review import (
    Attitude,
    ClaimState,
    Confidence,
    RequestState,
    TrainWhat,
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
    """Read the place of a proof; None for what is none, and costs nothing else."""
    if isinstance(value, list):
        value = next((each for each in value if not is_null(each)), None)
    if is_null(value):
        return None
    try:
        return Quotation.model_validate(value)
    except ValidationError:
        return None


Proof = Annotated[Quotation | None, BeforeValidator(_proof)]


Part = TypeVar("Part", bound=AnswerPart)


def _read(part: type[Part], value: Any) -> Part | None:
    """Read a part of an answer; None for what its form does not take."""
    with suppress(ValidationError):
        return part.model_validate(value)
    return None


def _each(part: type[Part]) -> BeforeValidator:
    """Read a list entry by entry, without the entries that its form does not take."""

    def read(value: Any) -> list[Part]:
        found = (_read(part, each) for each in _items(value))
        return [each for each in found if each is not None]

    return BeforeValidator(read)


def _optional(part: type[Part]) -> BeforeValidator:
    """Read what may be left out; None for what its form does not take."""
    return BeforeValidator(lambda value: None if is_null(value) else _read(part, value))


class _Number(AnswerPart):
    value: Fraction


def _optional_fraction(value: Any) -> Any:
    found = _read(_Number, {"value": value})
    return found.value if found is not None else None


OptionalFraction = Annotated[float | None, BeforeValidator(_optional_fraction)]
"""A number from 0 to 1; None for whatever else, as nothing is decided by it."""

_STATES = {"partly": "partial", "not_done": "not"}


def _state(value: Any) -> Any:
    found = word(value)
    found = _STATES.get(found, found) if isinstance(found, str) else found
    return found if found in get_args(RequestState) else "unclear"


class _Request(AnswerPart):
    turn: Turn = None
    asked: Text = ""
    state: Annotated[RequestState, BeforeValidator(_state)] = "unclear"
    proof: Proof = None

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        return {"asked": value} if isinstance(value, str) else value


class _Claim(Quotation):
    state: Annotated[ClaimState, BeforeValidator(word)]
    proof: Proof = None


class _Incident(Quotation):
    what: Text = ""
    harm: Annotated[bool, BeforeValidator(lambda value: value is True or word(value) == "true")] = (
        False
    )


class _PersonWords(Quotation):
    says: Annotated[Attitude, BeforeValidator(word)]


class _Friction(Quotation):
    what: Text = ""
    instead: Annotated[Text, BeforeValidator(lambda value: None if is_null(value) else value)] = ""


class _Tools(AnswerPart):
    what: Text = ""
    value: OptionalFraction = None

    @model_validator(mode="before")
    @classmethod
    def _of_scalar(cls, value: Any) -> Any:
        """Take the bare value, or the bare sentence."""
        if isinstance(value, dict):
            return value
        number = _optional_fraction(value)
        return {"value": number} if number is not None else {"what": value}


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


class FacetAnswer(AnswerPart):
    """What a model answers to one question about a session."""

    found: Annotated[
        bool, BeforeValidator(lambda value: value is True or word(value) in ("true", "yes"))
    ] = False
    answer: Text = ""
    places: Annotated[list[Quotation], _each(Quotation)] = []


class NumberedAnswer(FacetAnswer):
    """One of several answers that come with a review."""

    question: Turn = None


def _confidence(value: Any) -> Any:
    """Return one of the three words; None for whatever else, as nothing is decided by it."""
    return found if (found := word(value)) in get_args(Confidence) else None


_VERDICTS = {
    "verified": "complete_verified",
    "done_verified": "complete_verified",
    "unverified": "complete_unverified",
    "done_unverified": "complete_unverified",
    "partly": "partial",
    "not_done": "failed",
    "cannot_tell": "undetermined",
}
"""Slips that have one meaning; "complete" alone has two."""


def _verdict(value: Any) -> Any:
    found = "undetermined" if is_null(value) else word(value)
    return _VERDICTS.get(found, found) if isinstance(found, str) else found


class ReviewAnswer(AnswerPart):
    """What a model answers for a session or a part of one, in the order in which it is asked:
    what was asked for first, numbers last.
    """

    requests: Annotated[list[_Request], _each(_Request)] = []
    claims: Annotated[list[_Claim], _each(_Claim)] = []
    verdict: Annotated[VerdictName, BeforeValidator(_verdict)]
    confidence: Annotated[Confidence | None, BeforeValidator(_confidence)] = None
    quality: Fraction = None
    effort: OptionalFraction = None
    tools: Annotated[_Tools | None, _optional(_Tools)] = None
    incidents: Annotated[list[_Incident], _each(_Incident)] = []
    person: Annotated[list[_PersonWords], _each(_PersonWords)] = []
    frictions: Annotated[list[_Friction], _each(_Friction)] = []
    train: Annotated[_Train | None, _optional(_Train)] = None
    answers: Annotated[list[NumberedAnswer], _each(NumberedAnswer)] = []
    judges: Any = None

    @property
    def own_words(self) -> list[str]:
        """Return the model's own judgements in words; requests may repeat the person's."""
        said = [
            *(each.what for each in self.incidents),
            *(each.what for each in self.frictions),
            *(each.answer for each in self.answers),
            self.tools.what if self.tools is not None else "",
        ]
        return [each for each in said if each]

    def judge(self, number: int) -> JudgeAnswer | None:
        """Return what is said to the judge of a place in the form; None for nothing."""
        found: JudgeAnswer | None = getattr(self.judges, f"judge_{number}", None)
        return found


@cache
def answer_form(judges: tuple[str, ...] = ()) -> type[ReviewAnswer]:
    """Return the form of an answer.

    Args:
        judges: names of those that are asked in the same call, in order.
    """
    if not judges:
        return ReviewAnswer
    named: dict[str, Any] = {
        f"judge_{number}": (
            Annotated[JudgeAnswer | None, _optional(JudgeAnswer)],
            Field(None, alias=name),
        )
        for number, name in enumerate(judges)
    }
    made = create_model("Judges", __base__=AnswerPart, **named)
    fields: dict[str, Any] = {"judges": (Annotated[made | None, _optional(made)], None)}
    return create_model("Review", __base__=ReviewAnswer, **fields)


@cache
def answer_schema(judges: tuple[str, ...] = (), *, questions: bool = False) -> dict[str, Any]:
    """Return the JSON schema of an answer, as strict modes of providers take it: every property
    required, no other one allowed, no defaults.

    Args:
        judges: names of those that are asked in the same call.
        questions: some are asked in the same call, too.
    """
    schema = answer_form(judges).model_json_schema()
    for name, is_asked in (("judges", bool(judges)), ("answers", questions)):
        if not is_asked:
            schema["properties"].pop(name)
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


_PLACE = {"turn": 3, "quote": "words of that turn"}
_EXAMPLE: Final[Mapping[str, Any]] = {
    "requests": [
        {
            "turn": 1,
            "asked": "a few words",
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
    "tools": {"what": "one sentence", "value": 0.7},
    "incidents": [{**_PLACE, "what": "one sentence", "harm": False}],
    "person": [{"turn": 2, "quote": "no, not there", "says": "correction"}],
    "frictions": [{"what": "one sentence", "instead": "one sentence", **_PLACE}],
    "train": {"what": "parts", "turns": [[1, 1], [3, 4]]},
}


@cache
def answer_example(judges: tuple[str, ...] = ()) -> str:
    """Return a filled example of an answer: real types, in the order of the form."""
    whole = dict(_EXAMPLE)
    if judges:
        whole["judges"] = {name: {"feedback": "...", "score": 0.7} for name in judges}
    lines = (f'"{name}": {json.dumps(value)}' for name, value in whole.items())
    return "{" + ",\n".join(lines) + "}"
