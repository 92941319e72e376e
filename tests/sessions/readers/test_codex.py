"""Codex rollouts: cumulative tokens of any kind, and long beginnings."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from debrief.sessions.model import Usage
from debrief.sessions.readers.codex import READER
from debrief.sessions.readers.codex.calls import TokenMeter
from debrief.sessions.readers.files import walk
from tests.sessions.readers.codex_scenario import asked, counted, meta, write


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 10**6), st.integers(0, 10**6)), max_size=20
    ),
    st.booleans(),
)
def test_whatever_repeats_the_sum_is_the_total(
    calls: list[tuple[int, int, int]], tells_last: bool
) -> None:
    meter = TokenMeter()
    total = [0, 0, 0]
    spent = Usage()
    for repeats, fresh, output in calls:
        last = (fresh, fresh // 2, output)
        total = [a + b for a, b in zip(total, last, strict=True)]
        payload = counted(0, (total[0], total[1], total[2]), last if tells_last else None)
        for _ in range(repeats + 1):
            spent += meter.read(payload["payload"]) or Usage()
    assert spent.input + spent.cache_read == total[0]
    assert (spent.cache_read, spent.output) == (total[1], total[2])
    assert meter.calls == len(calls)


def test_a_look_at_a_rollout_with_long_instructions_agrees_with_the_whole(tmp_path: Path) -> None:
    write(tmp_path, [meta(base_instructions={"text": "x" * 2_000_000}), *asked(1, "go")])
    (transcript,) = READER.find(walk(tmp_path))
    peek, session = READER.peek(transcript), READER.read(transcript)
    assert peek is not None
    assert (peek.session_id, peek.started) == (session.id, session.started)
