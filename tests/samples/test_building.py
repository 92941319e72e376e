"""The parts that sample sessions are built with."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import InputError
from tools.samples import chance
from tools.samples.damage import damaged
from tools.samples.material import SECRETS, fill
from tools.samples.perform import Performance
from tools.samples.script import parse_script
from tools.samples.story import encode
from tools.samples.tree import WorkingTree, hunks_of, split_change

START = datetime(2026, 10, 5, 9, tzinfo=UTC)
LINES = st.lists(st.text(alphabet="ab c", max_size=6), max_size=12)


def play(text: str, files: dict[str, str] | None = None) -> tuple[Performance, list[object]]:
    performance = Performance("story", WorkingTree(files or {}), "/home/sam/repo", START)
    return performance, list(performance.play(parse_script("story", text).steps))


@given(LINES, LINES)
def test_hunks_lead_from_the_old_lines_to_the_new(old: list[str], new: list[str]) -> None:
    before = "".join(f"{line}\n" for line in old)
    after = "".join(f"{line}\n" for line in new)
    result: list[str] = []
    at = 0
    for hunk in hunks_of(before, after):
        result += old[at : hunk.old_start - 1]
        kept = [line[1:] for line in hunk.lines if line[0] != "+"]
        assert old[hunk.old_start - 1 :][: hunk.old_lines] == kept
        result += [line[1:] for line in hunk.lines if line[0] != "-"]
        at = hunk.old_start - 1 + hunk.old_lines
    assert result + old[at:] == new


@given(st.text())
def test_any_record_survives_its_encoding(text: str) -> None:
    value = {"text": text + SECRETS["github-token"]}
    line = encode(value)
    assert "\n" not in line
    assert SECRETS["github-token"] not in line
    assert json.loads(line) == value


@given(st.integers(-5, 5), st.integers(0, 50), st.text())
def test_chance_stays_within_its_bounds_and_repeats(low: int, span: int, key: str) -> None:
    drawn = chance.number(low, low + span, key)
    assert low <= drawn <= low + span
    assert drawn == chance.number(low, low + span, key)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "words outside": (lambda: parse_script("s", "words before any step\n"), "no step is open"),
    "open front matter": (lambda: parse_script("s", "---\ntool: droid\n"), "not closed"),
    "front matter is a list": (lambda: parse_script("s", "---\n- 1\n---\n"), "not a mapping"),
    "refusal of words": (lambda: parse_script("s", "==> say\nhm\n==> refuse\nno\n"), "no call"),
    "an unknown verb": (lambda: play("==> shout\nhey\n"), "story:1: unknown verb 'shout'"),
    "an edit of nothing": (lambda: play("==> edit a\n-3\n+4\n", {"a": "1\n"}), "in 0 places"),
    "a file that is not there": (lambda: play("==> read b\n", {"a": "1\n"}), "no such file"),
    "an edit without a sign": (lambda: split_change("?what"), "a space, a minus or a plus"),
    "material that is not there": (lambda: fill("{{secret:none}}"), "none"),
    "damage that is not known": (lambda: damaged(b"{}\n", ("burnt",)), "no such damage"),
}


@pytest.mark.parametrize(("make", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        make()
