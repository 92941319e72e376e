from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.sessions.readers.documents import mend_text
from debrief.training.conversations import (
    call_arguments,
    call_id,
    function_name,
    label,
    time_text,
)
from debrief.training.formats import CALL_ID, FUNCTION_NAME, validate_line
from debrief.training.samples import encode_line
from tests.training.scenario import call, line_of, says, session, turn


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        pytest.param("repo.readFile", "repo_readFile", id="a dot"),
        pytest.param("mcp__linear__get_issue", "mcp__linear__get_issue", id="already fine"),
        pytest.param("", "unnamed_tool", id="no name"),
        pytest.param("docs.search", "docs_search_a7e557a3", id="a dot of another tool"),
        pytest.param("näme of a tool", "name_of_a_tool_e4a7c0d8", id="accents"),
        pytest.param("検索", "tool_1b6b1a6f", id="another script"),
    ],
)
def test_a_tool_gets_a_name_that_models_are_tuned_with(tool: str, name: str) -> None:
    assert function_name(tool) == name


@given(st.sets(st.text(st.characters()) | st.text("ab._-\u691c\u7d22", max_size=4)))
def test_no_two_tools_get_one_name(tools: set[str]) -> None:
    assert len({function_name(tool) for tool in tools}) == len(tools)


@given(st.text(st.characters()), st.integers(1, 10**8 - 1))
def test_every_name_and_call_id_is_legal_and_its_own(tool: str, number: int) -> None:
    assert FUNCTION_NAME.match(function_name(tool))
    assert CALL_ID.match(call_id(number))
    assert call_id(number) != call_id(number + 1)
    assert function_name("mcp__" + "a" * 90) != function_name("mcp__" + "a" * 91)


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        pytest.param("*** Begin Patch", '{"input":"*** Begin Patch"}', id="no object"),
        pytest.param('{"n":123456789012345678901234567890}', None, id="a large integer"),
        pytest.param('{"a":["\\ud83d"]}', '{"a":["\ufffd"]}', id="half a character"),
    ],
)
def test_arguments_are_an_object_that_utf_8_can_hold(given_: str, text: str | None) -> None:
    arguments, made = call_arguments(given_)
    assert made == (text or given_)
    assert text is None or json.loads(made) == arguments


@given(
    st.dictionaries(
        st.text(), st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    )
)
def test_arguments_survive(arguments: dict[str, object]) -> None:
    assert json.loads(call_arguments(json.dumps(arguments))[1]) == arguments


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
    assert mend_text("a\ud83d") == "a\ufffd"
    assert mend_text("\ud83d\ude00") == "😀"


Line = dict[str, Any]


def good() -> Line:
    made = session(
        "s1", turn("Go.", says("", call(), call("Read", {"file_path": "a"})), says("Done."))
    )
    line: Line = json.loads(encode_line(line_of(made)))
    return line


def drop(path: str) -> Callable[[Line], Any]:
    *parents, last = path.split(".")
    return lambda line: _at(line, parents).pop(int(last) if last.isdigit() else last)


def put(path: str, value: object) -> Callable[[Line], Any]:
    *parents, last = path.split(".")
    return lambda line: _at(line, parents).__setitem__(int(last) if last.isdigit() else last, value)


def _at(value: Any, path: list[str]) -> Any:
    for step in path:
        value = value[int(step) if step.isdigit() else step]
    return value


def swap_results(line: Line) -> None:
    messages = line["messages"]
    messages[1], messages[4] = messages[4], messages[1]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        pytest.param(drop("messages.2"), "calls without a result", id="a call without a result"),
        pytest.param(drop("messages.1"), "a result of no open call", id="a result without a call"),
        pytest.param(drop("messages.4"), "does not end on", id="ends on a result"),
        pytest.param(swap_results, "a result of no open call", id="results before the calls"),
        pytest.param(put("messages.0.content", None), "expected shape", id="content is null"),
        pytest.param(put("messages.0.role", "developer"), "expected shape", id="unknown role"),
        pytest.param(put("messages.0.weight", 1), "unknown field", id="weight of a prompt"),
        pytest.param(put("messages.0.name", "x"), "unknown field", id="unknown key"),
        pytest.param(put("messages.4.weight", 2), "expected shape", id="weight of 2"),
        pytest.param(put("messages.4.content", ""), "neither words", id="an empty answer"),
        pytest.param(put("messages.4.tool_calls", []), "an empty list", id="no calls in a list"),
        pytest.param(put("messages.4.role", "user"), "does not end on", id="ends on a prompt"),
        pytest.param(put("messages.1.tool_calls.0.id", "call1"), "nine letters", id="short call id"),
        pytest.param(put("messages.1.tool_calls.1.id", "call00001"), "twice", id="one id for two"),
        pytest.param(put("messages.1.tool_calls.0.function.arguments", "[]"), "are not the JSON", id="arguments are a list"),
        pytest.param(put("messages.1.tool_calls.0.function.arguments", {}), "expected shape", id="arguments are no text"),
        pytest.param(put("messages.1.tool_calls.0.function.arguments", '{"x":1}'), "has no ['x']", id="undeclared argument"),
        pytest.param(put("messages.1.tool_calls.0.function.name", "Other"), "not among the tools", id="undeclared tool"),
        pytest.param(put("tools.0.function.name", "repo.readFile"), "not a name", id="dot in a name"),
        pytest.param(put("tools.1.function.name", "Bash"), "one name", id="two tools of one name"),
        pytest.param(put("tools.0.function.parameters.required", ["y"]), "not described", id="required and not described"),
        pytest.param(put("tools", []), "0 tools", id="no tools"),
        pytest.param(drop("tools"), "expected shape", id="no column of tools"),
        pytest.param(put("messages", []), "no messages", id="no messages"),
        pytest.param(put("extra", 1), "unknown field", id="another column"),
        pytest.param(put("metadata.extra", 1), "unknown field", id="another key in the metadata"),
        pytest.param(drop("metadata.branch"), "expected shape", id="a key less in the metadata"),
        pytest.param(put("metadata.turns", 1.5), "expected shape", id="half a turn"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(spoil: Callable[[Line], Any], problem: str) -> None:
    line = good()
    assert validate_line(json.dumps(line)) == []
    spoil(line)
    assert any(problem in found for found in validate_line(json.dumps(line)))


@pytest.mark.parametrize("bad", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_line_is_said_to_be_none(bad: bytes) -> None:
    assert len(validate_line(bad)) == 1
