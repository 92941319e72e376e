from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.training.formats import (
    CALL_ID,
    FUNCTION_NAME,
    call_arguments,
    call_id,
    function_name,
    label,
    time_text,
    whole_text,
)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        pytest.param("repo.readFile", "repo_readFile", id="a dot"),
        pytest.param("mcp__linear__get_issue", "mcp__linear__get_issue", id="already fine"),
        pytest.param("", "unnamed_tool", id="no name"),
        pytest.param("näme of a tool", "n_me_of_a_tool", id="other letters"),
    ],
)
def test_a_tool_gets_a_name_that_models_are_tuned_with(tool: str, name: str) -> None:
    assert function_name(tool) == name


def test_two_long_names_with_one_beginning_stay_apart() -> None:
    assert function_name("mcp__" + "a" * 90) != function_name("mcp__" + "a" * 91)


@given(st.text(st.characters()))
def test_every_name_is_legal(tool: str) -> None:
    assert FUNCTION_NAME.match(function_name(tool))


@given(st.integers(1, 10**8 - 1))
def test_every_call_id_has_nine_letters_or_digits(number: int) -> None:
    assert CALL_ID.match(call_id(number))


def test_call_ids_are_all_different() -> None:
    assert len({call_id(number) for number in range(99_000, 101_000)}) == 2_000


def test_what_is_no_object_becomes_the_input_of_one() -> None:
    patch = "*** Begin Patch"
    arguments, text = call_arguments(patch)
    assert json.loads(text) == arguments == {"input": patch}


def test_arguments_with_integers_of_any_size_stay_as_they_are() -> None:
    text = '{"n":123456789012345678901234567890}'
    assert call_arguments(text)[1] == text


@given(
    st.dictionaries(
        st.text(), st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_arguments_survive(arguments: dict[str, object]) -> None:
    assert json.loads(call_arguments(json.dumps(arguments))[1]) == arguments


def test_half_a_character_in_the_arguments_is_mended() -> None:
    arguments, text = call_arguments('{"a":["\\ud83d"]}')
    assert json.loads(text) == arguments == {"a": ["\ufffd"]}


def test_a_time_is_in_utc_with_all_six_digits() -> None:
    there = datetime(2026, 1, 5, 2, tzinfo=timezone(timedelta(hours=2)))
    assert time_text(there) == "2026-01-05T00:00:00.000000Z"


@settings(deadline=None)
@given(st.datetimes(timezones=st.just(UTC)), st.dates(), st.booleans())
def test_no_loader_takes_a_label_for_a_time(
    moment: datetime, day: object, whole_second: bool
) -> None:
    import pyarrow as pa
    import pyarrow.json

    moment = moment.replace(microsecond=0) if whole_second else moment
    for value in (str(day), moment.isoformat(), moment.isoformat(" "), f"{moment:%Y-%m-%d %H:%M}"):
        line = json.dumps({"text": label(value)}).encode() + b"\n"
        table = pyarrow.json.read_json(io.BytesIO(line))
        assert table.schema.field("text").type == pa.string()
        assert label(value).strip() == value


def test_half_a_character_becomes_the_sign_for_one() -> None:
    assert whole_text("a\ud83d") == "a\ufffd"
    assert whole_text("\ud83d\ude00") == "😀"
