from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.conditions import FIELDS, Where, parse_where
from debrief.errors import InputError

FACTS = {"tool": {"droid"}, "model": {"sonnet", "opus"}, "task": {"late-readings"}}


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        pytest.param("tool=droid", True, id="it answers"),
        pytest.param("tool=codex", False, id="it does not"),
        pytest.param("tool=codex,droid", True, id="one value of several"),
        pytest.param("task=late-*", True, id="a pattern"),
        pytest.param("model=opus", True, id="one model of several"),
        pytest.param("tool=droid;task=other", False, id="every condition has to hold"),
        pytest.param("repository=*", False, id="what is not known fits nothing"),
        pytest.param(" tool = droid ", True, id="spaces do not count"),
    ],
)
def test_a_session_answers_to_conditions(text: str, taken: bool) -> None:
    assert parse_where([text]).takes(FACTS) is taken


@pytest.mark.parametrize(
    "text", ["", "tool", "tool=", "=droid", "colour=red", "tool=droid;", "tool=,", "tool==;"]
)
def test_what_is_no_condition_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"tool=droid"):
        parse_where([text])


def test_without_conditions_every_session_is_meant() -> None:
    assert not parse_where([])
    assert parse_where([]).takes({})


VALUES = st.text("abcxyz-*?", min_size=1, max_size=8)
CONDITIONS = st.lists(
    st.tuples(st.sampled_from(FIELDS), st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    max_size=4,
)


@given(CONDITIONS)
def test_conditions_survive_being_written_down(
    conditions: list[tuple[str, tuple[str, ...]]],
) -> None:
    where = Where(tuple(conditions))
    assert parse_where([str(where)] if where else []) == where
