"""Answers of rubric extractors, summarizers and judges: read strictly, or refused with a reason.

A refusal is sent to the model once or twice; an answer that stays unusable is recorded as failed.
Nothing is clamped, and of two different values none is picked.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Annotated, Any

from annotated_types import Len, MinLen
from msgspec import Struct
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from debrief.models.answers import Found, answer_text, fold, is_cut_short, json_values, refuse
from debrief.rubrics.model import RubricJudgement

_LABEL = re.compile(
    r"[\s#*_`~+•|-]*+(?:\d{1,2}[.)]\s+)?[*_`\"']*+"
    r"(?P<label>(?:(?:final|overall)\s+)?score|reasoning)"
    r"[\s*_`\"']*+[:=|][\s*_`\"'\[(]*+(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"\s*<(?P<label>score|reasoning)>\s*+(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SECTION = re.compile(r"\s*\[\[ ## (?P<label>\w+) ## \]\]\s*\Z|\s*#{1,6}\s*score\s*\Z", re.I)
_VALUE = re.compile(
    r"0{0,2}(?P<score>[1-5])(?:\.0{1,3})?(?:\s*(?:/|out of)\s*5(?:\.0)?)?(?P<tail>(?!\d).*)",
    re.IGNORECASE | re.DOTALL,
)
_CLOSERS = "*_`\"'])| \t"
_NUMBER_ALONE = re.compile(r"\(\s*[\d.,/%\s-]+\)")
_REMARK = re.compile(
    r"\(|[-–—:;,.|](?=\D*\Z)|[.;,|]?\s*[*_`]*reasoning\b"
    r"|[-–—:;,]?\s*(?:because|since|given that|due to)\s",
    re.IGNORECASE,
)
_ANY_LABEL = re.compile(r"(?<!\w)score[\s*_`]*[:=]", re.IGNORECASE)
_INLINE = re.compile(
    r"(?:[.!?][)*_`]*|\b(?:overall|final|therefore|thus|hence|verdict|assessment|conclusion)"
    r"(?:\s+is)?[,:]?|\bi\s+(?:give|assign|award)(?:\s+(?:this|it|the|session|user|a|final))*)"
    r"\s+(?P<label>[*_`]*score[\s*_`]*[:=][ \t*_`]*)(?P<rest>[^\s*_`].*)",
    re.IGNORECASE,
)
_REMARK_INLINE = re.compile(
    r"\.?[)*_`\s]*\Z|\(|[.;,|]?\s*[*_`]*reasoning\b|\s*(?:because|since|given that|due to)\s",
    re.IGNORECASE,
)
_IN_DOUBT = re.compile(
    r"n['’]t\b|\b(?:not|never|cannot|no|if|had|were|would|could|should|might|max\w*|min\w*|"
    r"instead|than|unless)\b",
    re.IGNORECASE,
)
_REASONING = re.compile(r"reasoning[\s*_`\"']*[:：=|>]", re.IGNORECASE)
_LONGEST_NAME = 200
_MOST_RUBRICS = 100


class ParsedRubric(Struct, frozen=True, kw_only=True):
    """A rubric as a model wrote it: complete in form, not yet verified."""

    id: str
    """The answer's own where it is unique, else ``rubric_001`` … in the answer's order."""
    name: str
    description: str
    scoring_criteria: str
    evidence: str = ""
    weight: float = 1.0
    sources: tuple[str, ...] = ()
    """Ids of the rubrics that were merged into it, as far as the model tells them."""


def parse_judgement(text: str | None) -> RubricJudgement:
    """Read ``SCORE: n`` and ``REASONING: …``, plain, in Markdown, or as JSON.

    Labels at the beginning of a line come first. Where no line begins with one and there is no
    JSON, a single ``SCORE: n`` counts inside a line where it begins a sentence or follows words
    such as "my verdict:". Nothing in a block quotation counts. A reasoning may be missing, and is
    empty then.

    Raises:
        AnswerError: there is no score, it is not a whole number from 1 to 5, or there are
            several that differ.
    """
    answer = answer_text(text)
    values = json_values(answer)
    lines = _lines_outside(answer, values)
    written = _scores_by_label(lines)
    if written:
        scores = {_score(each) for each in written}
        if len(scores) > 1:
            refuse(f"it gives several scores: {', '.join(map(str, sorted(scores)))}")
        return RubricJudgement(score=scores.pop(), reasoning=_reasoning(lines))
    if not values and (parted := _parted_at_score(lines)):
        score = _score(_scores_by_label(parted)[0])
        return RubricJudgement(score=score, reasoning=_reasoning(parted))
    return _judgement_from_json(answer, values)


def parse_rubrics(text: str | None) -> list[ParsedRubric]:
    """Read an extractor's array of rubrics; a name given twice is kept once.

    A rubric keeps the id that the answer gives it; one without an id, or with one that is taken,
    gets the next free ``rubric_001`` ….

    Raises:
        AnswerError: there is no array or there are several, or a rubric lacks a field.
    """
    return _rubrics_of(_rubric_list(text)[0], needs_evidence=True, keeps_ids=True)


def parse_rubric_set(
    text: str | None, *, minimum: int = 5, maximum: int = 10
) -> tuple[list[ParsedRubric], str]:
    """Read a summarizer's object of rubrics and notes.

    Args:
        text: the answer.
        minimum: how few rubrics a set may have; less than 5 only when fewer were handed in.
        maximum: how many it may have.

    Returns:
        The rubrics, with ids ``rubric_001`` … in the answer's order, and the notes.

    Raises:
        AnswerError: there is no such object or there are several, a rubric lacks a field or
            has an impossible weight, or there are too few or too many.
    """
    found, notes = _rubric_list(text)
    rubrics = _rubrics_of(found)
    if not minimum <= len(rubrics) <= maximum:
        refuse(f"it has {len(rubrics)} rubrics instead of {minimum} to {maximum}")
    return rubrics, notes


def _lines_outside(answer: str, values: list[Found]) -> list[str]:
    """Return the lines of an answer without its JSON and without block quotations."""
    pieces, place = [], 0
    for found in values:
        pieces.append(answer[place : found.start])
        place = found.end
    pieces.append(answer[place:])
    lines = "\0".join(pieces).split("\n")
    return [
        line.replace("\0", " … ") for line in lines if not line.lstrip().startswith((">", "＞"))
    ]


def _labelled(line: str) -> tuple[str, str] | None:
    """Return the label of a line, ``score`` or ``reasoning``, and what follows it."""
    folded = fold(line)
    found = _TAG.match(folded) or _LABEL.match(folded)
    if not found:
        return None
    return found["label"].casefold().rsplit(None, 1)[-1], found["rest"]


def _section(line: str) -> str | None:
    found = _SECTION.match(fold(line))
    return (found["label"] or "score").casefold() if found else None


def _scores_by_label(lines: list[str]) -> list[str]:
    written = []
    for number, line in enumerate(lines):
        if _section(line) == "score":
            following = (later for later in lines[number + 1 :] if later.strip())
            written.append(fold(next(following, "")))
        elif (labelled := _labelled(line)) and labelled[0] == "score":
            written.append(labelled[1])
        if len(written) > 50:
            refuse("it has more than 50 lines with a score")
    return written


def _parted_at_score(lines: list[str]) -> list[str]:
    """Return the lines with the only label of a score that stands inside one on a line of its own;
    none where there is no such label.

    The label begins a sentence, or follows words that give a verdict. Several labels, one in
    quotation marks, or one that is denied or supposed may be words of the session.
    """
    labelled = [place for place, line in enumerate(lines) if _ANY_LABEL.search(fold(line))]
    if len(labelled) != 1:
        return []
    (place,) = labelled
    line = fold(lines[place])
    found = _INLINE.search(line)
    if found is None or len(_ANY_LABEL.findall(line)) != 1:
        return []
    before = line[: found.start("rest")]
    sentence = re.split(r"[.!?]\s", before)[-1]
    is_quoted = before.count('"') % 2 or before.count("“") > before.count("”")
    if is_quoted or before.count("`") % 2 or _IN_DOUBT.search(sentence):
        return []
    value = _VALUE.fullmatch(found["rest"])
    if value is None or not _REMARK_INLINE.match(value["tail"].lstrip(_CLOSERS)):
        return []
    own = [line[: found.start("label")].rstrip(), f"SCORE: {found['rest']}"]
    return [*lines[:place], *own, *lines[place + 1 :]]


def _score(text: str) -> int:
    text = re.sub(r"</score>\s*\Z", "", text.strip(), flags=re.IGNORECASE)
    found = _VALUE.fullmatch(text)
    if found:
        tail = found["tail"].lstrip(_CLOSERS)
        if not tail or (_REMARK.match(tail) and not _NUMBER_ALONE.match(tail)):
            return int(found["score"])
    shown = f'"{text[:40]}"' if text else "nothing"
    refuse(f"the score must be one whole number from 1 to 5, not {shown}")


def _reasoning(lines: list[str]) -> str:
    kept: list[str] = []
    for number, line in enumerate(lines):
        labelled = _labelled(line)
        section = _section(line)
        if (labelled and labelled[0] == "reasoning") or section == "reasoning":
            kept = ["" if section else _REASONING.split(line, maxsplit=1)[-1].lstrip("*_` \t")]
            for later in lines[number + 1 :]:
                if _section(later) or ((again := _labelled(later)) and again[0] == "score"):
                    break
                kept.append(later)
            break
        if labelled and labelled[0] == "score":
            same_line = re.split(r"\breasoning\b[*_`]*\s*[:=]", line, maxsplit=1, flags=re.I)
            if len(same_line) == 2:
                kept = [same_line[1], *lines[number + 1 :]]
                break
        elif not re.match(r"\s*(```|~~~)", line):
            kept.append(line)
    text = re.sub(r"</reasoning>\s*\Z|\n(```|~~~)\s*\Z", "", "\n".join(kept).rstrip())
    return _visible(text)


def _visible(text: str) -> str:
    return "".join(c for c in text if c.isprintable() or c in "\n\t").strip()


def _judgement_from_json(answer: str, values: list[Found]) -> RubricJudgement:
    alone = len(values) == 1 and re.fullmatch(
        r"[\s`~]*(json)?\s*\0[\s`~]*",
        answer[: values[0].start] + "\0" + answer[values[0].end :],
        re.IGNORECASE,
    )
    verdicts: list[tuple[int, str]] = []
    for found in values:
        value = found.value
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        fields = _fields(value)
        if "score" not in fields or ("reasoning" not in fields and not alone):
            continue
        reasoning = fields.get("reasoning")
        said = _visible(reasoning) if isinstance(reasoning, str) else ""
        verdicts.append((_score_of(fields["score"]), said))
    if not verdicts:
        refuse("it has no line SCORE: with a whole number from 1 to 5")
    if len({score for score, _ in verdicts}) > 1:
        refuse("it gives several scores")
    return RubricJudgement(score=verdicts[-1][0], reasoning=verdicts[-1][1])


def _score_of(value: Any) -> int:
    if isinstance(value, str):
        return _score(fold(value))
    if isinstance(value, int | float) and not isinstance(value, bool) and value in (1, 2, 3, 4, 5):
        return int(value)
    refuse(f"the score must be one whole number from 1 to 5, not {str(value)[:40]}")


def _fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    return {fold(key).strip().casefold(): inner for key, inner in value.items()}


def _rubric_list(text: str | None) -> tuple[list[Any], str]:
    """Return the one list of rubrics in an answer, and the notes beside it."""
    answer = answer_text(text)
    lists: list[tuple[list[Any], str]] = []
    for found in json_values(answer):
        fields = _fields(found.value)
        if "rubrics" in fields:
            if not isinstance(fields["rubrics"], list):
                refuse('"rubrics" is not an array')
            notes = fields.get("consolidation_notes")
            lists.append((fields["rubrics"], _visible(notes) if isinstance(notes, str) else ""))
        elif isinstance(found.value, list) and any(isinstance(x, dict | str) for x in found.value):
            lists.append((found.value, ""))
    if not lists:
        cut = is_cut_short(answer)
        refuse("its JSON is cut short or broken" if cut else "it has no JSON array of rubrics")
    if any(other != lists[0] for other in lists[1:]):
        refuse("it has several lists of rubrics")
    if not lists[0][0]:
        refuse("its list of rubrics is empty")
    if len(lists[0][0]) > _MOST_RUBRICS:
        refuse(f"it has more than {_MOST_RUBRICS} rubrics")
    return lists[0]


def _rubrics_of(
    items: list[Any], *, needs_evidence: bool = False, keeps_ids: bool = False
) -> list[ParsedRubric]:
    rubrics: dict[str, ParsedRubric] = {}
    given = [_id_of(item) for item in items]
    taken: set[str] = set()
    for place, item in enumerate(items, 1):
        if not isinstance(item, dict):
            refuse(f"rubric {place} is not an object")
        try:
            fields = {key: value for key, value in _fields(item).items() if value is not None}
            written = _WrittenRubric.model_validate(fields)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            refuse(f'rubric {place} has no usable "{first["loc"][0]}": {first["msg"]}')
        if needs_evidence and not written.evidence:
            refuse(f'rubric {place} has no text in "evidence"')
        if written.name.casefold() in rubrics:
            continue
        own = given[place - 1]
        numbered = (f"rubric_{number:03}" for number in count(len(rubrics) + 1))
        if not keeps_ids:
            own = next(numbered)
        elif not own or own in taken:
            own = next(id_ for id_ in numbered if id_ not in taken and id_ not in given)
        taken.add(own)
        rubrics[written.name.casefold()] = ParsedRubric(id=own, **written.model_dump())
    return list(rubrics.values())


def _id_of(item: Any) -> str:
    """Return the id that an answer gives a rubric; empty where it gives none."""
    found = _fields(item).get("id")
    if isinstance(found, bool) or not isinstance(found, str | int):
        return ""
    text = _visible(str(found))
    return text if len(text) <= _LONGEST_NAME else ""


def _lines_of_scale(value: Any) -> Any:
    if isinstance(value, dict):
        points = {str(key).strip(): text for key, text in value.items()}
        if set(points) != set("12345"):
            raise ValueError("it needs a text for each of 1 to 5")
        return "\n".join(f"{point}: {_visible(str(points[point]))}" for point in "12345")
    return value


def _joined(value: Any) -> Any:
    return "\n".join(map(str, value)) if isinstance(value, list) else value


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


def _ids(value: Any) -> tuple[str, ...]:
    return tuple(id_ for id_ in value if isinstance(id_, str)) if isinstance(value, list) else ()


_Text = Annotated[str, AfterValidator(_visible), MinLen(1)]


class _WrittenRubric(BaseModel):
    """The fields of a rubric in an answer; others are left aside."""

    name: Annotated[
        str, AfterValidator(lambda text: " ".join(_visible(text).split())), Len(1, _LONGEST_NAME)
    ]
    description: _Text
    scoring_criteria: Annotated[_Text, BeforeValidator(_lines_of_scale)]
    evidence: Annotated[str, BeforeValidator(_joined), AfterValidator(_visible)] = ""
    weight: Annotated[float, BeforeValidator(_no_truth_value), Field(gt=0, le=100)] = 1.0
    sources: Annotated[tuple[str, ...], BeforeValidator(_ids)] = ()
