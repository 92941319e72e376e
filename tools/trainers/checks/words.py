"""Whether what a trainer trains on is what the model said and called, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

Line = dict[str, Any]
_MARKUP = {
    *("name", "arguments", "parameters", "parameter", "function", "functions", "tool", "call"),
    *("calls", "arg", "key", "value", "think", "im", "start", "end", "assistant", "eot", "id"),
    *("analysis", "commentary", "final", "channel", "message", "constrain", "json", "to"),
    *("endoftext", "observation", "user", "eom", "header", "begin", "turn", "model", "return"),
}  # fmt: skip
"""What templates write around words."""
_MARKS_ALONE = re.compile(r"(\s|<[^<>\s=]*>)*")
"""A call without arguments is more: ``<function=Stop>``."""


def lines_of(form: str, *sides: str) -> list[Line]:
    """Return the exported lines of a form."""
    paths = [Path(f"sets/{form}/{side}.jsonl") for side in sides or ("train", "eval")]
    return [
        json.loads(line) for path in paths if path.exists() for line in path.open(encoding="utf-8")
    ]


def runs_of(tokenizer: Any, ids: Sequence[int], mask: Sequence[bool]) -> list[str]:
    """Return the texts that are trained on, one for each run of tokens."""
    pairs = groupby(zip(ids, mask, strict=True), key=itemgetter(1))
    runs = [[token for token, _ in group] for is_trained, group in pairs if is_trained]
    return [tokenizer.decode(run) for run in runs]


def says_the_same(runs: Sequence[str], answers: Sequence[Line]) -> bool:
    """Return whether each run holds the words and calls of one answer in their order, and but
    markup between."""
    said = [run for run in runs if not _MARKS_ALONE.fullmatch(run)]
    return len(said) == len(answers) and all(map(_holds, said, answers))


def _holds(run: str, answer: Line) -> bool:
    place = 0
    for part in _parts(answer):
        end = _end_of(part, run, place)
        if end is None:
            return False
        place = end
    return _is_markup(run[place:])


def _end_of(part: str, run: str, start: int) -> int | None:
    """Return where a part ends that comes next but for markup; None where something else does."""
    spelled = {part, part.strip(), json.dumps(part, ensure_ascii=False)[1:-1]}
    spelled |= {json.dumps(part)[1:-1], part.capitalize()}
    for text in sorted(spelled, key=len, reverse=True):
        place = run.find(text, start)
        while place >= 0 and _is_markup(run[start:place]):
            if _is_whole(run, place, place + len(text)):
                return place + len(text)
            place = run.find(text, place + 1)
    return None


def _is_whole(run: str, start: int, end: int) -> bool:
    """Return whether a text is no part of a longer word, as the key `to` is of `<tool_call>`."""
    return start == end or not any(
        0 < edge < len(run) and run[edge - 1].isalnum() and run[edge].isalnum()
        for edge in (start, end)
    )


def _is_markup(text: str) -> bool:
    return set(re.findall(r"\w+", text.replace("_", " "))) <= _MARKUP


def _parts(answer: Line) -> Iterator[str]:
    """Yield the texts that an answer consists of, in their order."""
    yield answer["content"].strip()
    for call in answer.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        yield call["function"]["name"]
        yield from _leaves(json.loads(arguments) if isinstance(arguments, str) else arguments)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def answers_of(messages: Sequence[Line], flag: str = "") -> list[Line]:
    """Return the answers among messages, those alone whose flag is set where there is one."""
    return [
        message
        for message in messages
        if message["role"] == "assistant" and (not flag or message.get(flag, True))
    ]
