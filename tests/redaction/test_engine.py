"""What the rules look for is found, by all of them together as by each alone and by Python."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from debrief.redaction.finder import RULES, prefilter
from debrief.redaction.spans import Prefilter
from tests.redaction.harmless import near_misses
from tests.redaction.hostile import instances
from tests.redaction.synthetic import (
    Case,
    context_cases,
    escaped_cases,
    generic_cases,
    hard_cases,
    known_cases,
)

_SETS: tuple[Callable[[int], Iterator[Case]], ...] = (
    *(known_cases, generic_cases, hard_cases, context_cases, escaped_cases, near_misses),
)
_SIGNS = "abc XYZ019_-\n|=:\"'$"


def test_all_patterns_together_find_what_each_finds_alone() -> None:
    """In the cases and near misses of every kind, one by one and as one text."""
    cases = [case.text for make in _SETS for case in make(31)]
    texts = [text.encode() for text in (*random.Random(31).sample(cases, 150), "\n".join(cases))]
    together: list[list[set[tuple[int, int]]]] = []
    for text in texts:
        together.append([set() for _ in RULES])
        for start, end, pattern in prefilter().scan(text):
            together[-1][pattern].add((start, end))
    for number, (_, anchor, is_tracked) in enumerate(RULES):
        alone = Prefilter([anchor], untracked=() if is_tracked else [0])
        for text, found in zip(texts, together, strict=True):
            assert {place[:2] for place in alone.scan(text)} == found[number], (anchor, text[:99])


@pytest.mark.xfail(
    sys.version_info >= (3, 14),
    reason="the only release of hyperscan for it has Vectorscan 5.4.12, which misses matches",
    strict=True,
)
def test_patterns_are_found_where_python_finds_them() -> None:
    """Behind so much text that the engine leaps over it, in what the patterns match, long or short.

    A release of the engine that missed some found them near the beginning of a text.
    """
    rng = random.Random(32)
    missed: list[tuple[str, bytes]] = []
    for number, (_, anchor, _) in enumerate(RULES):
        for text in _behind_others(anchor, 60, rng):
            found = {pattern for _, _, pattern in prefilter().scan(text)}
            if number not in found and re.search(anchor.encode(), text):
                missed.append((anchor, text))
    assert missed == []


def _behind_others(anchor: str, count: int, rng: random.Random) -> Iterator[bytes]:
    own = "".join(instances(anchor, 4, rng)) + " "
    for text in instances(anchor, count, rng):
        before = rng.choice(("a", own, _SIGNS))
        yield f"{''.join(rng.choices(before, k=rng.randrange(90)))}{text}{'a' * 50}".encode()


def test_a_process_with_the_engine_and_other_compiled_packages_ends_well() -> None:
    """Two copies of one C++ library in a process may free each other's memory as it ends."""
    others = "pyarrow, pyarrow.parquet, pandas, scipy.stats, tiktoken, orjson, zstandard, rensa"
    code = f"import hyperscan, {others}, msgspec, psycopg2, grpc"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
