"""What tables of the UI make of any text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assets.presentation import preview, table

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
