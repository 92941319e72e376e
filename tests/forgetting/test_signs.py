"""What gives a session away in a text, and what does not."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from debrief.forgetting.pruning import pruned, pruned_lines
from debrief.forgetting.signs import LEAST, Signs
from tests.forgetting.searching import letters
from tests.sessions.scenario import SESSION, Log

WORDS = "The refund job drops every order that was split over two parcels, über alles."
OTHER = "1b2c3d4e-0000-4000-8000-000000000002"
SIGNS = Signs({SESSION, "nightly"}, {OTHER}, {"/home/ann/t/one.jsonl"})
with TemporaryDirectory() as _folder:
    _log = Log(WORDS)
    _log.says("Looked.")
    SIGNS.learn(_log.read(Path(_folder)))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"He said: “{WORDS[4:44]}…”", id="a quotation in part"),
        pytest.param(json.dumps(json.dumps({"why": WORDS})), id="JSON in JSON"),
        pytest.param(textwrap.fill(WORDS, 20), id="wrapped"),
        pytest.param(WORDS.upper().replace(" ", "  **"), id="other case and marks"),
    ],
)
def test_words_are_found_whatever_stands_between_them(text: str) -> None:
    assert SIGNS.quotes(text)


@given(st.integers(0, 40), st.integers(LEAST + 12, 70), st.text(max_size=30))
def test_any_stretch_that_is_long_enough_is_found(start: int, length: int, around: str) -> None:
    stretch = WORDS[start : start + length]
    assume(len(letters(stretch)) >= LEAST + 8)  # behind the first word's beginning
    assert SIGNS.quotes(f"{around} {stretch} {around}")


@given(st.text(max_size=300))
def test_noise_holds_no_words(text: str) -> None:
    assert not SIGNS.quotes(text)


@pytest.mark.parametrize(
    "text", ["", "Done.", "The refund job is fine now", "split over two parcels", "Looked."]
)
def test_what_anybody_says_is_nobodys_words(text: str) -> None:
    assert not SIGNS.quotes(text)


@pytest.mark.parametrize(
    ("text", "field", "is_named"),
    [
        pytest.param(SESSION, "session_id", True, id="the id"),
        pytest.param(f"session {SESSION[:8]} failed", "reason", False, id="its beginning"),
        pytest.param(f"/x/rollout-2026-01-05-{SESSION}.jsonl", "path", True, id="in a path"),
        pytest.param(f"langfuse:{SESSION}", "path", True, id="on a server"),
        pytest.param("/home/ann/t/one.jsonl", "path", True, id="the path of a transcript"),
        pytest.param("/home/ann/t/two.jsonl", "path", False, id="another path"),
        pytest.param("nightly", "session_id", True, id="an id that is a word"),
        pytest.param("nightly", "task", False, id="that word as a task"),
        pytest.param("the nightly job", "reason", False, id="that word in a text"),
        pytest.param(OTHER, "session_id", False, id="another id"),
    ],
)
def test_a_session_is_named_by_its_id_and_its_paths(text: str, field: str, is_named: bool) -> None:
    assert SIGNS.names(text, field) is is_named


def test_an_entry_of_a_list_goes_alone_and_a_value_takes_its_object_along() -> None:
    row = {
        "name": "asks for proof",
        "sessions": (SESSION, OTHER),
        "evidence": [{"session_id": SESSION, "quote": "x"}, {"session_id": OTHER, "quote": "y"}],
    }
    left = {**row, "sessions": (OTHER,), "evidence": [{"session_id": OTHER, "quote": "y"}]}
    assert pruned(row, SIGNS, may_quote=True) == left
    assert pruned({**row, "description": WORDS}, SIGNS, may_quote=True) is None
    assert pruned({**row, "description": WORDS}, SIGNS, may_quote=False) is not None
    assert pruned({"session_id": SESSION, "score": 1.0}, SIGNS, may_quote=False) is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=20,
    )
)
def test_what_is_of_nobody_stays_as_it_is(value: object) -> None:
    assume(value is not None)
    assert pruned(value, SIGNS, may_quote=True) == value


def test_lines_of_a_page_go_one_by_one() -> None:
    page = f"# Report\n\n- {SESSION}: failed\n- another: fine\r\n{WORDS}\nend"
    assert pruned_lines(page, SIGNS) == ("# Report\n\n- another: fine\r\nend", 2)
