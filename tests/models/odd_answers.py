"""Answers that no form foresees: any JSON, and good answers with something odd in any place."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

ODD_TEXTS = st.sampled_from(
    (
        *("\ud83d", "a\ude00b", "\x00", "ok\x00SCORE: 5", "\x1b[2J", "\r\x85\u2028", "\u202e5"),
        *("1" * 400, "1e999", "-0", "NaN", "null", "٣", "²", "½", "{" * 70, "[[ ## score ## ]]"),
    )
)
TEXTS = ODD_TEXTS | st.text(st.characters(), max_size=12)
"""Halves of surrogate pairs included."""
NUMBERS = (
    st.integers()
    | st.sampled_from((2**63, 2**64, 10**19, -(10**30), 10**400))
    | st.floats()
    | st.booleans()
)
DEEP = st.builds(lambda depth: json.loads("[" * depth + "]" * depth), st.integers(1, 90))
VALUES = st.recursive(
    st.none() | NUMBERS | TEXTS | DEEP,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where something stands in a JSON value."""
    found = [at]
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for name, each in inner:
            found += places(each, (*at, name))
    return found


@st.composite
def spoiled(draw: st.DrawFn, good: str) -> str:
    """Draw a good answer of JSON with something odd in up to three of its places."""
    whole = {"": json.loads(good)}
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(whole)[1:]))
        holder: Any = whole
        for name in way:
            holder = holder[name]
        odd = draw(VALUES)
        if isinstance(holder[last], str) and draw(st.booleans()):
            odd = holder[last] + draw(TEXTS)
        holder[last] = odd
    return json.dumps(whole[""], ensure_ascii=draw(st.booleans()))


@st.composite
def oddly_worded(draw: st.DrawFn, good: str) -> str:
    """Draw a good answer of JSON with something odd behind its sentences, as escapes or as it is."""

    def worded(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: worded(each) for name, each in value.items()}
        if isinstance(value, list):
            return [worded(each) for each in value]
        is_sentence = isinstance(value, str) and " " in value
        return f"{value} {draw(TEXTS)}" if is_sentence else value

    return json.dumps(worded(json.loads(good)), ensure_ascii=draw(st.booleans()))
