"""A rubric file format, and a linter that marks what makes a rubric hard to judge by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from debrief.errors import InputError
from debrief.files import read_text
from debrief.markdown import shorten
from debrief.rubrics.model import ExtractedRubric, Rubric
from debrief.rubrics.parsing import ParsedRubric
from debrief.sessions.readers.documents import mend


class RubricInFile(BaseModel):
    """One rubric; keys that others added are left alone."""

    model_config = ConfigDict(frozen=True)

    id: str = ""
    score_name: str = ""
    name: str = Field(min_length=1)
    description: str = ""
    scoring_criteria: str

    @field_validator("scoring_criteria", mode="before")
    @classmethod
    def _as_lines(cls, value: object) -> object:
        """Take a scale that is written as an object, text by point."""
        if isinstance(value, dict):
            return "\n".join(f"{point}: {text}" for point, text in value.items())
        return value


_RUBRICS = TypeAdapter(list[RubricInFile])


def rubrics_in_file(path: Path) -> dict[str, list[RubricInFile]]:
    """Return the rubrics of a file, by score name, empty where none is given.

    The file is a JSON array of rubrics, or an object that holds it in ``rubrics``. A rubric
    without an id is called ``rubric_001`` and so on, by its place.

    Raises:
        InputError: the file cannot be read, or a rubric in it lacks a name or a scale.
    """
    try:
        value = mend(json.loads(read_text(path)))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}", f"is no JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(str(path), "is nested too deeply") from None
    if isinstance(value, dict):
        value = value.get("rubrics")
    if not isinstance(value, list) or not value:
        raise InputError(str(path), "holds no array of rubrics", 'Write [{"name": …}, …].')
    try:
        found = _RUBRICS.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        reason = f"rubric {int(first['loc'][0]) + 1}: {where}: {first['msg']}"
        raise InputError(str(path), reason, f"{error.error_count()} mistakes in all.") from None
    sets: dict[str, list[RubricInFile]] = {}
    for place, rubric in enumerate(found, 1):
        named = rubric if rubric.id else rubric.model_copy(update={"id": f"rubric_{place:03}"})
        sets.setdefault(rubric.score_name, []).append(named)
    return sets


Rule = Literal[
    "double-barrelled", "hedged", "unanchored", "overlap", "about-the-ai", "rewards-length"
]

_MARK = r"([1-9]|10)\s*(?:\([^)\n]{0,40}\))?\s*\**\s*[:=–—-]\**\s+"
_POINT_ON_A_LINE = re.compile(rf"^[ \t>*-]*{_MARK}", re.MULTILINE)
_POINT = re.compile(rf"(?:^|(?<=[\s.;,])){_MARK}")
_TWO_NAMES = re.compile(r"\b(?:and|or)\b|&|\s\+\s|/", re.IGNORECASE)
_TWO_DEEDS = re.compile(
    r"\b(?:as well as|and also|both\b.{1,80}\band)\b"
    r"|\buser\b[^.]*\b\w+s\b[^.]*(?:,| and) (?:also |then )?(?:the user |they )?"
    r"(?:provides|gives|names|states|asks|checks|reviews|corrects|answers|plans|runs|avoids"
    r"|explains|verifies|responds|handles|guides|keeps|uses|shows)\b",
    re.IGNORECASE,
)
_HEDGES = re.compile(
    r"\b(?:generally|usually|somewhat|fairly|rather well|appropriate(?:ly)?|adequate(?:ly)?"
    r"|reasonabl[ey]|sufficient(?:ly)?|relatively|mostly|sometimes|often|occasionally|various"
    r"|as needed|if needed|where possible|when possible|as appropriate|etc\.?|and so on"
    r"|more or less"
    r"|good|great|nice|poor|decent|excellent|effective(?:ly)?|high[- ]quality|well(?! as))\b",
    re.IGNORECASE,
)
_AGENT = re.compile(
    r"\b(?:the |an? )?(?:ai|assistant|agent|model|llm|claude|copilot|codex)(?:'s)?\b", re.IGNORECASE
)
_PERSON = re.compile(r"\b(?:user|person|developer|human|prompt|request|they|their)s?\b", re.I)
_AGENT_DOES = re.compile(
    r"\b(?:ai|assistant|agent|model|llm|claude)(?:'s \w+)? "
    r"(?:should |must |can |does |is able to )?"
    r"(?:provides?|produces?|writes?|generates?|responds?|answers?|completes?|follows?|explains?"
    r"|uses?|gives?|implements?|understands?|makes?|avoids?|handles?|delivers?)\b",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"\b(?:long(?:er|est)?|lengthy|verbose|extensive(?:ly)?|exhaustive(?:ly)?|detailed|in detail"
    r"|more (?:than )?\d+ words|more words|many words|word count|as much \w+ as possible"
    r"|(?:several|multiple|many) paragraphs)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_](?:[\w'-]*\w)?")
_IDLE_WORDS = (
    "a an and any are as at be but by can could do does for from get go has have how i if in is "
    "it its just let like me my need not now of ok on one or our out please should so some that "
    "the their them then there these they this to up us use want was we were what when where "
    "which will with would yes you your all also am because been did don't i'm i'd it's let's "
    "make more no only see still sure than thanks try very while why work works working able add "
    "fix change"
)
_IDLE = frozenset(_IDLE_WORDS.split())
_SAME = 0.5
_NAMES_ALIKE = 0.75


Lintable = ExtractedRubric | ParsedRubric | Rubric | RubricInFile


class Mark(Struct, frozen=True, order=True):
    """What the linter says about one rubric."""

    rubric_id: str
    rule: Rule
    message: str


def scale_points(scoring_criteria: str) -> dict[int, str]:
    """Return the text at each point of a scale, as far as it has any.

    >>> scale_points("1: Vague 5: Exact")
    {1: 'Vague', 5: 'Exact'}
    """
    found = list(_POINT_ON_A_LINE.finditer(scoring_criteria))
    if len(found) < 2:
        found = list(_POINT.finditer(scoring_criteria))
    if not found:
        return {}
    ends = [*(point.start() for point in found[1:]), len(scoring_criteria)]
    return {
        int(point[1]): scoring_criteria[point.end() : end].strip(" \n.;,-")
        for point, end in zip(found, ends, strict=True)
    }


def lint(rubrics: Sequence[Lintable]) -> list[Mark]:
    """Return the marks on a set of rubrics, in the order of the rubrics."""
    return [
        Mark(rubric.id, rule, message)
        for place, rubric in enumerate(rubrics)
        for rule, message in (*_faults(rubric), *_overlaps(rubric, rubrics[:place]))
    ]


def _faults(rubric: Lintable) -> Iterator[tuple[Rule, str]]:
    name, description = rubric.name, rubric.description
    if found := _TWO_NAMES.search(name):
        yield "double-barrelled", f'the name joins two things by "{found[0].strip()}"'
    elif found := _TWO_DEEDS.search(description):
        yield "double-barrelled", f'two criteria in one: "{shorten(found[0], 60)}"'
    points = scale_points(rubric.scoring_criteria)
    if hedges := _HEDGES.findall(f"{description}\n" + "\n".join(points.values())):
        words = ", ".join(f'"{word}"' for word in dict.fromkeys(h.casefold() for h in hedges))
        yield "hedged", f"words that two judges read differently: {words}"
    if problem := _anchoring(points):
        yield "unanchored", problem
    if _AGENT_DOES.search(f"{name}. {description}") or (
        _AGENT.search(description) and not _PERSON.search(description)
    ):
        yield "about-the-ai", "says what the agent does, not what the user does"
    if found := _LENGTH.search(f"{name}\n{points.get(5, '')}\n{points.get(4, '')}"):
        yield "rewards-length", f'"{found[0]}" can be met by writing more'


def _anchoring(points: dict[int, str]) -> str:
    if outside := sorted(set(points) - {1, 2, 3, 4, 5}):
        return f"the scale has a point {outside[-1]}"
    missing = [str(point) for point in range(1, 6) if not points.get(point)]
    if missing:
        return f"the scale says nothing at {', '.join(missing)}"
    bare = [str(point) for point, text in sorted(points.items()) if len(text.split()) < 2]
    if bare:
        return f"the scale says only a word at {', '.join(bare)}"
    if len({text.casefold() for text in points.values()}) < 5:
        return "two points of the scale say the same"
    return ""


def _overlaps(rubric: Lintable, earlier: Sequence[Lintable]) -> Iterator[tuple[Rule, str]]:
    for other in earlier:
        names, texts = alike(rubric.name, other.name), alike(text_of(rubric), text_of(other))
        if names >= _NAMES_ALIKE or texts >= _SAME:
            shared = f"{max(names, texts):.0%} of their words"
            yield "overlap", f"shares {shared} with {other.id}, {shorten(other.name, 60)}"


def text_of(rubric: Lintable) -> str:
    """Return all that a rubric says."""
    return f"{rubric.name} {rubric.description} {rubric.scoring_criteria}"


def alike(one: str, other: str) -> float:
    """Return the share of topic words that two texts have in common, from 0 to 1."""
    first, second = content_words(one), content_words(other)
    both = first | second
    return len(first & second) / len(both) if both else 0.0


def content_words(text: str) -> frozenset[str]:
    """Return the words that carry a topic, plurals and endings cut off."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_stem(w) for w in words if len(w) > 2 and w not in _IDLE)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) > 3:
            return word[: -len(ending)]
    return word
