"""Texts made shorter: within their room, at the ends of lines, and never without a word of it."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from debrief.scoring.shortening import around, shortened

LEFT_OUT = re.compile(r"\.\.\. \((\d+) characters left out\)")
texts = st.lists(st.text(alphabet="ab c\n", max_size=120), max_size=40).map("\n".join)
rooms = st.integers(0, 400)


@given(texts, rooms, rooms)
def test_what_is_kept_and_what_is_said_to_be_left_out_are_the_whole(
    text: str, head: int, tail: int
) -> None:
    kept = shortened(text, head, tail)
    found = LEFT_OUT.search(kept)
    if found is None:
        assert kept == text
        return
    begin, end = kept[: found.start()].removesuffix("\n"), kept[found.end() :].removeprefix("\n")
    assert text.startswith(begin)
    assert text.endswith(end)
    assert len(begin) <= head
    assert len(end) <= tail
    line_ends = len(text) - len(begin) - len(end) - int(found[1])
    assert text[len(begin) :].startswith("\n" * line_ends)


def test_lines_and_words_stay_whole_where_they_are_not_too_long() -> None:
    lines = "\n".join(f"line number {n}" for n in range(100))
    for line in shortened(lines, 200, 200).splitlines():
        assert line in lines or LEFT_OUT.fullmatch(line)
    words = " ".join(f"word{n}" for n in range(1_000))
    begin, _, end = shortened(words, 200, 200).split("\n")
    assert {*begin.split(), *end.split()} <= set(words.split())


@given(texts, st.integers(100, 600))
def test_around_keeps_to_its_room_and_shows_lines_in_their_order(text: str, room: int) -> None:
    kept = around(text, re.compile("ab a"), room)
    if kept == text:
        return
    lines = [line for line in kept.split("\n") if not LEFT_OUT.fullmatch(line)]
    assert sum(len(line) + 1 for line in lines) <= room + 60
    rest = iter(text.split("\n"))
    assert all(any(line == each for each in rest) for line in lines)


def test_a_line_that_matches_is_kept_with_those_around_it_and_a_huge_line_is_cut() -> None:
    quiet = [f"step {n}" for n in range(500)]
    text = "\n".join([*quiet, "boom", *quiet, "x" * 5_000, "end"])
    kept = around(text, re.compile("boom"), 1_500).split("\n")
    at = kept.index("boom")
    assert kept[at - 2 : at + 3] == ["step 498", "step 499", "boom", "step 0", "step 1"]
    assert kept[0] == "step 0"
    assert kept[-1] == "end"
    assert max(map(len, kept)) < 500


def test_of_one_long_line_the_beginning_and_the_end_are_shown() -> None:
    text = '{"body": "' + "a word of the comment " * 200 + '"}'
    for failure in ("FAILED", "comment"):
        shown = around(text, re.compile(failure), 300)
        assert shown.startswith('{"body": "a word')
        assert shown.endswith('comment "}')
        assert len(shown) < 400
