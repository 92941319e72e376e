from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assets.partitions import pair_of
from pipelines.ranges import pair_ranges

TASKS = [f"task-{n}" for n in range(6)]
PAIRS = st.sets(st.tuples(st.sampled_from(TASKS), st.sampled_from(["f1", "f2", "f3"])))


@given(PAIRS, st.permutations(TASKS))
def test_ranges_cover_the_observed_pairs_and_no_empty_cell(
    pairs: set[tuple[str, str]], order: list[str]
) -> None:
    covered = []
    for first, last in pair_ranges(pairs, order):
        (from_task, fingerprint), (to_task, same) = pair_of(first), pair_of(last)
        assert fingerprint == same
        span = order[order.index(from_task) : order.index(to_task) + 1]
        covered += [(task, fingerprint) for task in span]
    assert sorted(covered) == sorted(pairs)


def test_neighbours_share_a_range() -> None:
    pairs = [("a", "f"), ("b", "f"), ("d", "f")]
    assert list(pair_ranges(pairs, ["a", "b", "c", "d"])) == [("f|a", "f|b"), ("f|d", "f|d")]
