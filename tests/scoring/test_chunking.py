"""Chunks: the five guarantees, for any input."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.scoring.chunking import chunk_by_tokens
from debrief.scoring.model import Chunk, Observation, Trace
from debrief.tokens import count_tokens

Count = Callable[[str], int]


def joined(chunks: Iterable[Chunk]) -> list[Trace]:
    """The session that chunks were made of: overlaps away, split parts together."""
    traces: list[tuple[int, list[list[str]]]] = []
    for part in (trace for chunk in chunks for trace in chunk.traces):
        if not part.continued:
            traces.append((part.number, []))
        for seen in part.observations:
            if seen.continued:
                traces[-1][1][-1][1] += seen.text
            else:
                traces[-1][1].append([seen.kind, seen.text])
    return [
        Trace(number=number, observations=tuple(Observation(kind, text) for kind, text in seen))
        for number, seen in traces
    ]


def trace_of(number: int, *sizes: int) -> Trace:
    """A trace whose observations have as many tokens, counted by length, as ``sizes`` says."""
    texts = ("".join("word " * (size // 5 + 1))[:size] for size in sizes)
    return Trace(number=number, observations=tuple(Observation("message", t) for t in texts))


def tokens_of(traces: Sequence[Trace], count: Count) -> int:
    return sum(count(part.text) for trace in traces for part in trace.observations)


sizes = st.one_of(st.integers(0, 3), st.integers(0, 30), st.integers(0, 300))
sessions = st.lists(st.lists(sizes, max_size=5), max_size=25).map(
    lambda rows: [trace_of(number, *row) for number, row in enumerate(rows)]
)
texts = st.text(alphabet=st.sampled_from(list("ab Z9.\n/é中😀{\"'")), max_size=300)
text_sessions = st.lists(st.lists(texts, max_size=4), max_size=8).map(
    lambda rows: [
        Trace(number=n, observations=tuple(Observation("message", text) for text in row))
        for n, row in enumerate(rows)
    ]
)


def check_guarantees(
    traces: Sequence[Trace], chunks: Sequence[Chunk], target: int, overlap: int, count: Count
) -> None:
    assert joined(chunks) == list(traces)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.count for chunk in chunks} <= {len(chunks)}
    for chunk in chunks:
        assert chunk.traces
        assert tokens_of([*chunk.overlap, *chunk.traces], count) == chunk.tokens <= target
        assert tokens_of(chunk.traces, count) == chunk.own_tokens
        assert len(chunk.overlap) <= overlap
    for before, after in itertools.pairwise(chunks):
        shared = len(after.overlap)
        shown_before = [*before.overlap, *before.traces]
        assert not shared or tuple(shown_before[-shared:]) == after.overlap


@settings(deadline=None)
@given(sessions, st.integers(1, 90), st.integers(0, 6), st.floats(0, 1))
def test_the_guarantees_hold_for_every_session_and_target(
    traces: list[Trace], target: int, overlap: int, ratio: float
) -> None:
    chunks = chunk_by_tokens(traces, target, overlap, ratio, count=len)
    check_guarantees(traces, chunks, target, overlap, len)


@settings(max_examples=20, deadline=None)
@given(text_sessions, st.integers(8, 60), st.integers(0, 4))
def test_the_guarantees_hold_with_the_real_tokeniser(
    traces: list[Trace], target: int, overlap: int
) -> None:
    chunks = chunk_by_tokens(traces, target, overlap)
    check_guarantees(traces, chunks, target, overlap, count_tokens)


@settings(max_examples=300, deadline=None)
@given(sessions, st.integers(10, 900), st.integers(0, 6), st.floats(0, 1))
def test_an_overlap_is_whole_wherever_it_fits_beside_the_trace_after_it(
    traces: list[Trace], target: int, overlap: int, ratio: float
) -> None:
    chunks = chunk_by_tokens(traces, target, overlap, ratio, count=len)
    before: list[Trace] = []
    for chunk in chunks:
        whole, after = before[max(0, len(before) - overlap) :], chunk.traces[:1]
        if not before or tokens_of([*whole, *after], len) <= target:
            assert chunk.overlap == tuple(whole)
        else:
            assert tokens_of(chunk.overlap, len) <= target / 2
            one_more = before[-len(chunk.overlap) - 1 :]
            too_much = tokens_of(one_more, len) > target // 2
            assert too_much or tokens_of([*one_more, *after], len) > target
        before += chunk.traces


@settings(deadline=None)
@given(st.lists(st.integers(0, 14_000), max_size=60))
def test_four_traces_are_shared_wherever_none_is_over_a_fifth_of_the_target(
    sizes: list[int],
) -> None:
    traces = [trace_of(number, size) for number, size in enumerate(sizes)]
    chunks = chunk_by_tokens(traces, count=len)
    check_guarantees(traces, chunks, 70_000, 4, len)
    assert all(len(chunk.overlap) == 4 for chunk in chunks[1:])


@pytest.mark.parametrize(
    ("size", "overlaps"), [(5_800, [0, 4]), (14_000, [0] + 15 * [4]), (20_000, [0] + 9 * [1])]
)
def test_twenty_traces_share_four_where_a_part_has_room_for_them(
    size: int, overlaps: list[int]
) -> None:
    traces = [trace_of(number, size) for number in range(20)]
    chunks = chunk_by_tokens(traces, count=len)
    check_guarantees(traces, chunks, 70_000, 4, len)
    assert [len(chunk.overlap) for chunk in chunks] == overlaps


@settings(deadline=None)
@given(sessions, st.integers(1, 90), st.integers(0, 6))
def test_every_text_that_fits_is_counted_once(
    traces: list[Trace], target: int, overlap: int
) -> None:
    counted: list[str] = []

    def counting(text: str) -> int:
        counted.append(text)
        return len(text)

    chunk_by_tokens(traces, target, overlap, count=counting)
    fitting = [
        part.text for trace in traces for part in trace.observations if len(part.text) <= target
    ]
    over = sum(len(p.text) for t in traces for p in t.observations if len(p.text) > target)
    assert len(counted) >= len(fitting)
    halvings = 14
    assert sum(map(len, counted)) <= sum(map(len, fitting)) + halvings * over


def test_a_session_that_fits_is_one_chunk_without_overlap_even_an_empty_one() -> None:
    for sizes in ((10, 10, 10), (), (0,)):
        traces = [trace_of(n, *sizes) for n in range(3)]
        (chunk,) = chunk_by_tokens(traces, target=100, count=len)
        assert (chunk.traces, chunk.overlap) == (tuple(traces), ())
        assert chunk.own_tokens == 3 * sum(sizes)


def test_one_trace_of_300_000_tokens_is_split_between_its_observations() -> None:
    trace = trace_of(1, *[1_000] * 300)
    chunks = chunk_by_tokens([trace], count=len)
    check_guarantees([trace], chunks, 70_000, 4, len)
    assert len(chunks) == 6
    assert not any(p.continued for c in chunks for t in c.traces for p in t.observations)
    assert all(len(chunk.overlap) == 4 for chunk in chunks[1:])
    assert {part.number for chunk in chunks for part in chunk.traces} == {1}


def test_one_observation_of_two_megabytes_is_split_at_line_ends() -> None:
    line = "INFO 2026-10-05 request handled in 12 ms by worker seven\n"
    text = line * (2_000_000 // len(line))
    trace = Trace(number=1, observations=(Observation("result", text),))
    chunks = chunk_by_tokens([trace])
    assert joined(chunks) == [trace]
    assert all(chunk.tokens <= 70_000 for chunk in chunks)
    for part in (p for c in chunks for t in c.traces for p in t.observations):
        assert part.text.startswith("INFO")
        assert count_tokens(part.text) <= 70_000 // 4


@pytest.mark.parametrize(
    ("sizes", "overlap", "ratio", "owned"),
    [
        pytest.param(
            [80, 20, 70, 15, 15], 1, 0.0, [100, 70, 30], id="apart when that is asked for"
        ),
        pytest.param([80, 20, 70, 15, 15], 1, 0.5, [100, 70, 30], id="small for the overlap"),
        pytest.param([80, 20, 40, 35, 15], 1, 0.5, [100, 40, 50], id="larger, with its overlap"),
        pytest.param([80, 20, 90, 15], 0, 0.5, [100, 90, 15], id="small, as one more does not fit"),
        pytest.param([80, 20, 60, 30, 15], 0, 0.5, [100, 60, 45], id="larger, from the one before"),
    ],
)
def test_a_small_final_chunk_takes_from_the_one_before(
    sizes: list[int], overlap: int, ratio: float, owned: list[int]
) -> None:
    traces = [trace_of(n, size) for n, size in enumerate(sizes)]
    chunks = chunk_by_tokens(traces, 100, overlap, ratio, count=len)
    assert [chunk.own_tokens for chunk in chunks] == owned
    assert all(len(chunk.overlap) == overlap for chunk in chunks[1:] if overlap)


def test_two_turns_of_one_number_stay_two_traces() -> None:
    traces = [trace_of(0, 90, 90), trace_of(0, 30)]
    assert joined(chunk_by_tokens(traces, target=100, count=len)) == traces


@pytest.mark.parametrize(("target", "overlap"), [(0, 4), (-1, 4), (10, -1)])
def test_an_impossible_budget_is_refused(target: int, overlap: int) -> None:
    with pytest.raises(InputError, match="chunking"):
        chunk_by_tokens([trace_of(1, 5)], target, overlap)


def test_a_character_over_the_target_is_refused() -> None:
    with pytest.raises(InputError, match="one character"):
        chunk_by_tokens([trace_of(1, 1)], target=1, count=lambda text: 2 * len(text))
