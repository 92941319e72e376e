"""The scorer's answer: six verdicts, each with a rationale, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from debrief.models.answers import answer_text, fold, is_cut_short, json_values, refuse
from debrief.scoring.dimensions import DIMENSIONS, Dimension, VerdictError, verdict_on
from debrief.scoring.model import Verdict

_SAME_HEIGHT: Mapping[tuple[str, str], str] = {
    ("security_compliance", "good"): "adequate",
    ("user_satisfaction", "adequate"): "good",
}
"""Words that stand at the same height of another dimension's scale: a slip with one meaning."""

_CITATION = re.compile(
    r"\bturns?\s+#?(\d{1,6}(?:\s*(?:,|and|to|&|-|–)\s*(?:turns?\s+)?#?\d{1,6}\b)*)", re.IGNORECASE
)
_LONGEST_RATIONALE = 4_000


def parse_verdicts(text: str | None, turns: Collection[int] | None = None) -> tuple[Verdict, ...]:
    """Return the six verdicts of an answer, in the order of the table.

    Other names beside the six are left aside.

    Args:
        text: the answer: one object by dimension, each with ``score`` and ``rationale``.
        turns: the turn numbers that the session has; when given, a rationale that cites
            another one is refused.

    Raises:
        AnswerError: the answer is cut short, has several objects that differ, lacks a dimension
            or a rationale, has a value that is not one of its dimension's, or cites a turn that
            is not there.
    """
    answer = answer_text(text)
    objects = [found for value in json_values(answer) if (found := _scores(value.value))]
    if is_cut_short(answer):
        refuse("it is cut short")
    if not objects:
        refuse("it holds no object with the six dimensions")
    if any(other != objects[0] for other in objects[1:]):
        refuse("it holds several objects that differ")
    verdicts = tuple(_verdict(dimension, objects[0]) for dimension in DIMENSIONS)
    if turns is not None:
        for verdict in verdicts:
            strange = sorted(set(cited_turns(verdict.rationale)) - set(turns))
            if strange:
                refuse(f"{verdict.dimension} cites turn {strange[0]}, which is not there")
    return verdicts


def cited_turns(rationale: str) -> Iterator[int]:
    """Yield the turn numbers that a rationale cites; of a range its two ends."""
    for citation in _CITATION.findall(rationale):
        yield from map(int, re.findall(r"\d+", citation))


def _scores(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    if len(value) == 1:
        inner = next(iter(value.values()))
        if isinstance(inner, dict) and any(d.name in inner for d in DIMENSIONS):
            value = inner
    return value if any(d.name in value for d in DIMENSIONS) else None


def _verdict(dimension: Dimension, scores: Mapping[str, Any]) -> Verdict:
    name = dimension.name
    said = scores.get(name)
    if said is None:
        refuse(f"it leaves out {name}")
    if not isinstance(said, dict) or "score" not in said:
        refuse(f'{name} is no object with "score" and "rationale"')
    rationale = said.get("rationale")
    if not isinstance(rationale, str) or not rationale.strip():
        refuse(f"{name} has no rationale")
    score = said["score"]
    if dimension.kind == "categorical" and isinstance(score, str):
        word = fold(score).strip().casefold()
        score = _SAME_HEIGHT.get((name, word), word)
    try:
        return verdict_on(name, score, rationale.strip()[:_LONGEST_RATIONALE])
    except VerdictError as error:
        refuse(str(error).rstrip("."))
