"""What tables and columns of the UI make of any row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assets.presentation import column_schema, metadata_of, table
from debrief.stages.catalog import all_stages
from debrief.stages.shown import ShownPage, ShownTable, counted_by, tallied
from debrief.tables import TABLES

CELLS: st.SearchStrategy[object] = st.one_of(
    st.text(), st.floats(), st.none(), st.integers(), st.booleans(), st.tuples(st.text())
)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=60))
def test_any_row_is_a_record_of_a_table(rows: list[tuple[object, ...]]) -> None:
    shown = table(ShownTable(("a", "b"), rows))
    assert [column.name for column in shown.schema.columns] == ["a", "b"]
    assert len(shown.records) == min(len(rows), 50)


def test_a_long_table_tells_how_many_rows_it_has() -> None:
    shown = metadata_of({"left_out": ShownTable(("n",), [(number,) for number in range(51)])})
    assert shown["left_out_rows"] == 51
    assert "left_out_rows" not in metadata_of({"left_out": ShownTable(("n",), [(1,)])})


def test_a_page_is_long_enough_to_be_shown_in_a_window_and_loses_nothing() -> None:
    shown = metadata_of({"page": ShownPage("# Week")})["page"].md_str
    assert shown.rstrip() == "# Week"
    assert len(shown) >= 1_000


def test_counts_come_with_the_most_frequent_first() -> None:
    assert counted_by("kind", "sessions", ["a", "b", "b"]).rows == [("b", 2), ("a", 1)]
    rows = [ShownTable(("x",), ()), ShownTable(("x",), ()), ShownTable(("y",), ())]
    assert tallied(rows, "heading=headings", "rows").rows == [(("x",), (), 2), (("y",), (), 1)]


def test_each_stage_says_the_columns_of_its_rows_and_is_a_table_that_forgetting_knows() -> None:
    for stage in all_stages():
        names = [column.name for column in column_schema(stage.row_type).columns]
        assert len(names) == len(set(names)) > 0
        assert TABLES[stage.table].rows is stage.row_type
