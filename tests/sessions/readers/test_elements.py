"""What programs put into texts, between two tags."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.sessions.readers.elements import inside, without, without_leading

NAMES = ("note", "reminder")
TEXTS = st.lists(
    st.sampled_from(
        ["<note>", "</note>", "<reminder>", "</reminder>", "<note", "a", "b", " ", "\n"]
    ),
    max_size=12,
).map("".join)


def test_the_first_whole_element_counts() -> None:
    assert inside("<note>a</note><note>b</note>", "note") == "a"
    assert inside("<note></note>", "note") == ""
    assert inside("<note>a", "note") is None
    assert inside("</note><note>", "note") is None


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<note>a</note>\nGo.", "Go."),
        (" <note>a</note> <reminder>b</reminder> Go.", "Go."),
        ("Go. <note>a</note>", "Go. <note>a</note>"),
        ("<note>a", "<note>a"),
        ("  Go.", "  Go."),
        ("<note>a</note>", ""),
    ],
)
def test_elements_at_the_beginning_are_left_out(text: str, rest: str) -> None:
    assert without_leading(text, NAMES) == rest


@given(TEXTS)
def test_they_are_found_as_a_pattern_finds_them(text: str) -> None:
    pattern = re.compile(r"\s*<(note|reminder)>.*?</\1>\s*", re.DOTALL)
    rest = text
    while found := pattern.match(rest):
        rest = rest[found.end() :]
    assert without_leading(text, NAMES) == rest
    found = re.search(r"<note>(.*?)</note>", text, re.DOTALL)
    assert inside(text, "note") == (found[1] if found else None)
    assert without(text, ["note"]) == re.sub(r"\s*<note>.*?</note>", "", text, flags=re.DOTALL)


def test_thousands_that_are_never_closed_cost_no_more_than_reading_them() -> None:
    text = "<note>" * 200_000
    assert without(text, NAMES) is text
    assert without_leading(text, NAMES) is text
    assert inside(text, "note") is None
