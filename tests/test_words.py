"""The words that code and docstrings may not use are in no room of the product."""

from __future__ import annotations

import pytest

from tests.words import PROJECT, ROOMS, wrong_in


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_uses_the_words_of_the_field(room: str) -> None:
    assert not list(wrong_in(PROJECT / room))
