"""Text from outside cannot break a table or a line."""

from __future__ import annotations

import pytest

from debrief.markdown import plain, shorten, table


def test_a_table_has_a_line_for_each_row_and_the_cells_of_its_header() -> None:
    assert table(("a", "b"), [("1", "`two`"), ("", "4")]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | `two` |",
        "|  | 4 |",
    ]


@pytest.mark.parametrize("text", ["a|b", "a\nb", r"a\|b", plain("a|b\\|c")])
def test_no_cell_breaks_its_row(text: str) -> None:
    row = table(("x",), [(text,)]).splitlines()[2:]
    assert len(row) == 1
    assert row[0].replace("\\|", "").count("|") == 2


def test_plain_text_holds_no_markup_and_no_control_characters() -> None:
    assert plain("<b>[x](y)`|\x1b\n") == r"\<b\>\[x\](y)\`\|"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("one\n two", 20, "one two"), ("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…")],
    ids=["on one line", "just fits", "cut"],
)
def test_long_text_is_cut_to_its_width(text: str, width: int, expected: str) -> None:
    assert shorten(text, width) == expected
