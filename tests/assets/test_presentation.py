"""What tables of the UI make of any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.presentation import markdown, preview, table

NO_BREAK = "\u00a0"


@given(st.lists(st.tuples(st.text(), st.floats(), st.none() | st.integers()), max_size=5))
def test_no_cell_breaks_the_table(rows: list[tuple[object, ...]]) -> None:
    lines = table(("a", "b", "c"), rows).split("\n")
    assert len(lines) == len(rows) + 2
    bars = [line.replace("\\|", "").count("|") for line in lines]
    assert set(bars) == {4}


def test_a_short_cell_is_not_broken_at_its_spaces_and_a_long_one_is() -> None:
    shown = table(("started", "reason"), [("Mon 02 Nov 11:18", "the line is cut short, and lost")])
    assert f"Mon{NO_BREAK}02{NO_BREAK}Nov{NO_BREAK}11:18" in shown
    assert "the line is cut short" in shown


def test_a_table_tells_how_many_rows_it_leaves_out() -> None:
    shown = preview(("n",), [(number,) for number in range(5)], limit=2).md_str or ""
    assert shown.endswith("*and 3 more*")
    assert preview(("n",), []).md_str == "*no rows*"


def test_an_identifier_is_shown_by_its_first_eight_digits() -> None:
    shown = table(("session",), [("8a568c43-0000-4000-8000-000000000000",)])
    assert shown.endswith("| 8a568c43 |")


WINDOW = 1_000
"""The UI shows what has so many characters in a window, and cuts what has fewer and is wide."""


@pytest.mark.parametrize(
    ("headers", "row", "in_a_window"),
    [
        pytest.param(("reason", "sessions"), ("no answer", 3), False, id="narrow"),
        pytest.param(("what",), ("many words that wrap " * 4,), False, id="words that wrap"),
        pytest.param(("file",), ("kept-apart-" * 8,), False, id="broken at hyphens"),
        pytest.param(("file",), ("unbroken" * 8,), True, id="one long word"),
        pytest.param(
            ("session", "started", "tool", "task", "lines"),
            ("8a568c43", "Mon 02 Nov 11:18", "droid", "keyboard", "+81 −12"),
            True,
            id="many columns",
        ),
    ],
)
def test_a_table_that_the_page_would_cut_is_shown_in_a_window(
    headers: tuple[str, ...], row: tuple[object, ...], in_a_window: bool
) -> None:
    shown = preview(headers, [row]).md_str or ""
    assert (len(shown) >= WINDOW) is in_a_window
    assert shown.rstrip() == table(headers, [row]).rstrip()


@given(st.text())
def test_text_without_a_table_is_left_as_it_is(text: str) -> None:
    words = text.replace("|", " ")
    assert markdown(words).md_str == words
