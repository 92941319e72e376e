"""Whatever stands in a file, the rest of it is read, and what was not is told with its line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.sessions.model import Session
from tests.sessions.readers.content import prompts_of
from tests.sessions.scenario import Log, read, write_lines


def story() -> list[bytes]:
    log = Log("One")
    log.says("first answer")
    log.user("Two")
    log.says("second answer")
    return log.lines()


def told(session: Session) -> list[tuple[int, str]]:
    return [(problem.line, problem.reason) for problem in session.problems]


Mangle = Callable[[bytes, bytes, bytes, bytes], list[bytes]]
DEEP = b'{"type":"user","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
MANGLED: dict[str, tuple[Mangle, list[str], list[tuple[int, str]]]] = {
    "two objects on one line are two records": (
        lambda one, two, three, four: [one, two + three + b"  " + four],
        ["One", "Two"],
        [],
    ),
    "a last line is cut short": (
        lambda one, two, three, four: [one, two, three, four[:-40]],
        ["One", "Two"],
        [(4, "the line is cut short")],
    ),
    "a line in the middle is cut short": (
        lambda one, two, three, four: [one, two[:50], three, four],
        ["One", "Two"],
        [(2, "the line is cut short")],
    ),
    "a record stands behind one cut short on its line": (
        lambda one, two, three, four: [one, two[:120] + three, four],
        ["One", "Two"],
        [(2, "not JSON at column 123: Expecting ',' delimiter")],
    ),
    "bytes are not UTF-8": (
        lambda one, *rest: [one.replace(b"One", b"On\xff\xfee"), *rest],
        ["On\ufffd\ufffde", "Two"],
        [(1, "bytes that are not UTF-8 were replaced")],
    ),
    "surrogates stand alone": (
        lambda one, *rest: [one.replace(b"One", rb"On\ud800e \ud83d\ude00"), *rest],
        ["On\ufffde \U0001f600", "Two"],
        [],
    ),
    "JSON is nested a hundred thousand deep": (
        lambda one, *rest: [one, DEEP, *rest],
        ["One", "Two"],
        [(2, "nested too deeply to be read")],
    ),
    "lines end as on Windows, behind a byte order mark": (
        lambda one, *rest: [b"\xef\xbb\xbf" + b"\r\n".join([one, *rest])],
        ["One", "Two"],
        [],
    ),
}


@pytest.mark.parametrize(("mangle", "asked", "problems"), MANGLED.values(), ids=MANGLED)
def test_a_mangled_line_costs_only_itself(
    tmp_path: Path, mangle: Mangle, asked: list[str], problems: list[tuple[int, str]]
) -> None:
    one, two, three, four = story()
    session = read(write_lines(tmp_path / "x.jsonl", *mangle(one, two, three, four), end=b""))
    assert prompts_of(session) == asked
    assert told(session) == problems
    msgspec.json.encode(session)


def test_a_call_nested_deeper_than_can_be_encoded_is_read(tmp_path: Path) -> None:
    given: Any = "leaf"
    for _ in range(400):
        given = [given]
    log = Log("Go")
    log.calls("c1", "Deep", value=given)
    path = write_lines(tmp_path / "x.jsonl", *log.lines())
    assert len(read(path).turns[0].messages[0].calls[0].input) > 400


def test_numbers_that_json_does_not_know_are_survived(tmp_path: Path) -> None:
    log = Log("Go")
    log.says("a", usage={"input_tokens": float("nan"), "output_tokens": 10**30})
    log.says("b", usage={"input_tokens": -5, "output_tokens": True})
    session = log.read(tmp_path)
    assert (session.usage.input, session.usage.output) == (0, 0)


def test_a_line_of_five_megabytes_is_read(tmp_path: Path) -> None:
    log = Log()
    log.user("x" * 5_000_000)
    log.says("ok")
    session = log.read(tmp_path)
    assert len(session.turns[0].prompt) == 5_000_000
    assert session.transcripts[0].size > 5_000_000


def test_very_many_broken_lines_are_summed_up(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", *story(), *[b"{"] * 1000)
    session = read(path)
    assert len(session.problems) == 101
    assert session.problems[-1].reason == "900 more lines could not be read"


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300))
def test_a_file_of_any_bytes_gives_a_session_or_a_reason(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(junk)
    reasons = []
    try:
        read(path)
    except InputError as error:
        reasons.append(error.reason)
    assert all(reasons)
