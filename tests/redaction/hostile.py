"""Texts made from the rules themselves to cost them as much as they can."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from debrief.redaction.finder import RULES
from debrief.redaction.rules import Context, Format, Line

_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_OF_CATEGORY = {"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "7", "CATEGORY_WORD": "aZ3_"}
_NOISE = "abcdefgh0123456789ABCDEFGH$!#\"' =:/-_\n"
_EVENT = 'data: {"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"'
_KNOWN = ("redis-cli -a b c ", " -w ldapsearch", "eyJ", "password=", "password=\n", "key=aB3$xQ9! ")


def units(seed: int) -> list[str]:
    """Return what each rule looks for and what it reads, and the first half of it."""
    rng = random.Random(seed)
    found = set(_KNOWN)
    for expression in _expressions():
        for more in ((), (0, 1, 4)):
            unit = _matched(_parser.parse(expression), rng, more)[:300]
            found |= {unit, unit + " ", unit[: len(unit) // 2 + 1]}
    return sorted(found - {""})


def instances(expression: str, count: int, rng: random.Random) -> Iterator[str]:
    """Yield texts that an expression matches, short and long ones by turns."""
    tree = _parser.parse(expression)
    for number in range(count):
        yield _matched(tree, rng, (0, 0, 1, 4, 17, 40) if number % 2 else ())


VARIANTS: dict[str, Callable[[str, int], str]] = {
    "plain": lambda unit, size: unit * (size // len(unit) + 1),
    "noise": lambda unit, size: "".join(
        unit + "".join(random.Random(at).choices(_NOISE, k=8))
        for at in range(size // (len(unit) + 8))
    ),
    "colour": lambda unit, size: f"{unit}\x1b[0m" * (size // (len(unit) + 4)),
    "escape": lambda unit, size: f"%20{unit}" * (size // (len(unit) + 3)),
    "delta": lambda unit, size: (
        _EVENT + f'{unit}"}}}}\n\n{_EVENT}' * (size // (len(unit) + len(_EVENT) + 6))
    ),
}
"""Makes a text of about a size from a unit."""


def _expressions() -> Iterator[str]:
    for rule, anchor, _ in RULES:
        yield anchor
        if isinstance(rule, Format):
            yield rule.start + rule.rest
        elif isinstance(rule, Context) and rule.value:
            yield re.sub(r"(?<![\\\[])\s+", "", rule.value)
        elif isinstance(rule, Line):
            yield from (f"{rule.names} {form.pattern}" for form in rule.expressions)


def _matched(tree: Any, rng: random.Random, more: Sequence[int]) -> str:
    """Return a text that a parsed expression matches, look-arounds aside.

    Args:
        tree: the parsed expression.
        rng: what chooses.
        more: how often what may repeat does, beyond the least; empty for never.
    """
    text = ""
    for kind, value in tree:
        if kind is _constants.LITERAL:
            text += chr(value)
        elif kind is _constants.IN:
            text += rng.choice(_members(value))
        elif kind in _REPEATS:
            least, most, inner = value
            times = min(most, least + rng.choice(more)) if more else least
            text += "".join(_matched(inner, rng, more) for _ in range(times))
        elif kind is _constants.SUBPATTERN:
            text += _matched(value[3], rng, more)
        elif kind is _constants.BRANCH:
            text += _matched(rng.choice(value[1]), rng, more)
        elif kind in (_constants.NOT_LITERAL, _constants.ANY):
            text += "x"
    return text


def _members(values: Any) -> str:
    members = ""
    for kind, value in values:
        if kind is _constants.LITERAL:
            members += chr(value)
        elif kind is _constants.RANGE:
            members += "".join(map(chr, range(value[0], min(value[1], value[0] + 40) + 1)))
        elif kind is _constants.CATEGORY:
            members += _OF_CATEGORY.get(str(value), "aB3")
    if values[0][0] is _constants.NEGATE:
        return "".join(sorted(set("aB3x7Qz!") - set(members))) or "a"
    return members
