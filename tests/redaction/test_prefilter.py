"""The prefilter counts in characters, whatever the text is made of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from debrief.redaction.spans import Prefilter

NEEDLE = Prefilter(["needle[0-9]"])


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_hits_are_where_python_finds_them(parts: list[str]) -> None:
    text = "needle7".join(parts)
    hits = [(hit.start, hit.end) for hit in NEEDLE.hits(text)]
    assert [text[start:end] for start, end in hits] == ["needle7"] * (len(parts) - 1)


def test_threads_share_one_prefilter() -> None:
    text = "x" * 10_000 + "needle1" + "é" * 10_000 + "needle2"
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [hit.start for hit in NEEDLE.hits(text)], range(200)))
    assert found == [[10_000, 20_007]] * 200


def test_literals_are_not_taken_for_expressions() -> None:
    assert [hit.start for hit in Prefilter(["a.b*"], literal=True).hits("axb a.b* a.b")] == [4]
