"""What is shown of a long text: its ends, and what is around quotations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from debrief.view.marks import Gap, clipped

LINES = st.lists(st.sampled_from(["", "a", "a line of a log", "x" * 90]), min_size=20, max_size=80)


@given(LINES, st.integers(0, 19))
def test_what_is_shown_and_what_is_left_out_make_up_the_text(lines: list[str], number: int) -> None:
    quote = f"the quoted line {number}"
    text = "\n".join([*lines[:number], quote, *lines[number:]])
    parts = clipped(text, 60, 60, [quote])
    place = 0
    for part in parts:
        if isinstance(part, Gap):
            place += part.characters
        else:
            assert part == text[place : place + len(part)]
            place += len(part)
    assert place == len(text)
    assert any(quote in part for part in parts if isinstance(part, str))
