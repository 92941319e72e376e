"""Lines of JSON, and single documents, as far as they can be decoded."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.sessions.readers import documents
from debrief.sessions.readers.documents import (
    JsonLines,
    compact_json,
    first_line_error,
    load_object,
    mend_text,
)

OBJECTS = st.dictionaries(
    st.text(max_size=5), st.text(max_size=20) | st.integers(-9, 9) | st.none(), max_size=4
)


def lines_of(path: Path, data: bytes) -> JsonLines:
    path.write_bytes(data)
    return JsonLines(str(path))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(OBJECTS, max_size=6), st.sampled_from(["\n", "\r\n", "\n\n", ""]), st.booleans())
def test_every_record_comes_out_whatever_is_between_them(
    tmp_path: Path, records: list[dict[str, Any]], between: str, ascii: bool
) -> None:
    text = between.join(json.dumps(record, ensure_ascii=ascii) for record in records)
    file = lines_of(tmp_path / "x.jsonl", text.encode())
    assert list(file) == records
    assert file.problems == []
    assert file.records == len(records)


@pytest.mark.parametrize("block", [1, 2, 7, 64])
def test_blocks_of_any_size_give_the_same_lines_and_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    data = b'{"a": "one"}\n\n{"b": 2}\nbroken\n{"c": "\xc3\xa4"}'
    monkeypatch.setattr(documents, "_BLOCK", block)
    file = lines_of(tmp_path / "x.jsonl", data)
    assert list(file) == [{"a": "one"}, {"b": 2}, {"c": "ä"}]
    assert [problem.line for problem in file.problems] == [4]
    ref = file.ref()
    assert (ref.digest, ref.size) == (hashlib.sha256(data).hexdigest(), len(data))


def test_a_line_of_hundreds_of_megabytes_is_reported_and_costs_less_than_its_size(
    tmp_path: Path,
) -> None:
    size = 200_000_000
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(b'{"a": 1}\n{"b": "')
        file.seek(size, 1)
        file.write(b'"}\n{"c": 2}\n')
    lines = JsonLines(str(path))
    tracemalloc.start()
    try:
        assert list(lines) == [{"a": 1}, {"c": 2}]
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()
    (problem,) = lines.problems
    assert problem.line == 2
    assert problem.reason.startswith("a line of 200 MB is left out")
    assert lines.ref().size == path.stat().st_size


@given(st.text())
def test_mended_text_can_always_be_encoded_and_good_text_stays(text: str) -> None:
    assert mend_text(text) == text
    assert mend_text(text + "\ud800").encode().decode() == text + "�"


def test_a_document_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": "\xff", "b": "\\ud800"}')
    value, ref, problems = load_object(str(path))
    assert value == {"a": "�", "b": "�"}
    assert ref.size == path.stat().st_size
    assert len(problems) == 1


@pytest.mark.parametrize("rest", [b', {"id": "m3", "te', b', {"a":' * 50_000, b" x"])
def test_of_a_document_that_breaks_off_the_messages_before_are_kept(
    tmp_path: Path, rest: bytes
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"id": "s",\n"messages": [{"id": 1},\n{"id": "caf\xe9"}' + rest)
    value, _, (problem,) = load_object(str(path))
    assert value == {"id": "s", "messages": [{"id": 1}, {"id": "caf�"}]}
    assert problem.line == 3
    assert "2 messages stand before" in problem.reason


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"id": "s", "messages', '{"a":' * 100_000, "1"],
    ids=["empty", "cut", "cut before the messages", "deep", "number"],
)
def test_a_document_that_is_no_object_is_a_value_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"."):
        load_object(str(path))


def test_a_document_that_is_a_list_is_taken_for_its_messages(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1]")
    assert load_object(str(tmp_path / "x.json"))[0] == {"messages": [1]}


def test_numbers_too_long_for_one_encoder_are_left_to_another() -> None:
    assert compact_json({"n": 10**40, "t": "ä"}) == '{"n":1' + "0" * 40 + ',"t":"ä"}'


def test_a_beginning_shows_whether_its_first_line_is_json() -> None:
    assert first_line_error(b'{"a": 1}\n{"b', whole=False) is None
    assert first_line_error(b'{"a": 1', whole=False) is None
    assert first_line_error(b'{"a": 1', whole=True) is not None
    assert first_line_error(b"nonsense\n{}", whole=False) is not None
