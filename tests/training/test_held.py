"""Sessions that are held back for what looks made by chance."""

from __future__ import annotations

import random
import string

from hypothesis import given
from hypothesis import strategies as st

from debrief.training.held import held_for, held_tokens

_CHANCE = random.Random(5)
TOKENS = ["".join(_CHANCE.choices(string.ascii_letters + string.digits, k=32)) for _ in range(6)]


def test_who_is_left_out_no_longer_speaks_for_what_it_shared() -> None:
    shared, own = TOKENS[:2]
    lines = [("a", f'"{shared}"'.encode()), ("b", f'"{shared}" "{own}"'.encode())]
    held = held_tokens(lines, {})
    assert {name: [token.token for token in tokens] for name, tokens in held.items()} == {
        "b": [own],
        "a": [shared],
    }
    (digest,) = (token.digest for token in held["b"])
    assert held_tokens(lines, {digest: "released"}).keys() == {"b"}, "a's is b's as well"


@given(st.lists(st.lists(st.sampled_from(TOKENS), max_size=4), min_size=1, max_size=6))
def test_of_the_sessions_that_are_left_none_is_held(sessions: list[list[str]]) -> None:
    lines = [(f"s{n}", " ".join(tokens).encode()) for n, tokens in enumerate(sessions)]
    held = held_tokens(lines, {})
    left = [line for line in lines if not held_for(held.get(line[0], ()), {})]
    assert held_tokens(left, {}) == {}
