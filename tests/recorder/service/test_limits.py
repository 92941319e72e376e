"""What counts against a client, without a server around it."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.recorder.errors import StorageError
from debrief.recorder.service.limits import Admitted, Buckets, Room
from debrief.recorder.service.problems import RefusedError, problem_of
from debrief.recorder.service.work import Work
from debrief.recorder.storage.rows import Token
from tests.waiting import LONG


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    clock = _Clock()
    buckets = Buckets(rate=2, burst=3, now=clock)

    assert [buckets.take("a").granted for _ in range(4)] == [True, True, True, False]
    assert buckets.take("a").retry_after == 1
    clock.now += 0.5
    assert [buckets.take("a").granted for _ in range(2)] == [True, False]
    assert buckets.take("b").granted


@given(st.lists(st.floats(0, 5), max_size=60), st.floats(0.5, 20), st.integers(1, 20))
def test_no_bucket_gives_more_than_its_burst_and_rate(
    waits: list[float], rate: float, burst: int
) -> None:
    clock = _Clock()
    buckets = Buckets(rate, burst, now=clock)
    granted = 0
    for wait in waits:
        clock.now += wait
        allowance = buckets.take("a")
        granted += allowance.granted
        assert allowance.granted or allowance.retry_after >= 1

    assert granted <= burst + rate * clock.now + 1e-6


def test_a_client_that_waits_as_long_as_it_is_told_gets_in() -> None:
    clock = _Clock()
    buckets = Buckets(rate=0.3, burst=1, now=clock)
    buckets.take("a")

    clock.now += buckets.take("a").retry_after

    assert buckets.take("a").granted


def test_only_so_many_buckets_are_kept() -> None:
    buckets = Buckets(rate=1, burst=1, now=_Clock(), most=2)

    assert [buckets.take(name).granted for name in "abcb"] == [True, True, True, False]
    assert buckets.take("a").granted


def test_a_token_is_known_for_a_while_and_not_longer() -> None:
    clock = _Clock()
    known = Admitted(seconds=30, now=clock, most=2)
    token = Token(name="a", scopes=("write",), created_at=datetime(2026, 11, 2, tzinfo=UTC))

    known.keep("1", token)
    clock.now = 29.9
    assert known.find("1") is token
    clock.now = 30
    assert known.find("1") is None

    known.keep("1", token)
    known.keep("2", token)
    known.keep("3", token)
    assert [known.find(digest) for digest in "123"] == [None, token, token]
    known.forget("3")
    assert known.find("3") is None


@given(st.lists(st.integers(1, 9), max_size=30))
def test_a_room_never_holds_more_than_it_is_big(sizes: list[int]) -> None:
    room = Room(20)
    held = [size for size in sizes if room.take(size)]

    assert sum(held) + room.free == 20
    assert room.free >= 0
    for size in held:
        room.give_back(size)
    assert room.free == 20


def test_work_gives_results_and_errors_back() -> None:
    async def story() -> None:
        work = Work("t", 1, 1, 5)
        assert await work.do(lambda: 7) == 7
        with pytest.raises(StorageError):
            await work.do(_fail)
        work.close()

    asyncio.run(story())


def _fail() -> None:
    raise StorageError("the database", "is away")


def test_work_that_finds_no_place_in_the_queue_is_refused_at_once() -> None:
    async def story() -> None:
        work = Work("t", 1, 1, 5)
        gate = threading.Event()
        waiting = [asyncio.ensure_future(work.do(gate.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RefusedError) as refusal:
            await work.do(gate.wait)
        assert refusal.value.status == 503
        gate.set()
        assert await asyncio.gather(*waiting) == [True, True]
        assert await work.do(lambda: 1) == 1
        work.close()

    asyncio.run(story())


def test_work_that_takes_too_long_is_answered_and_keeps_its_thread_to_its_end() -> None:
    async def story() -> None:
        work = Work("t", 1, 0, 0.05)
        gate = threading.Event()
        with pytest.raises(RefusedError) as refusal:
            await work.do(gate.wait)
        assert refusal.value.status == 503
        with pytest.raises(RefusedError):
            await work.do(lambda: 1)
        gate.set()
        done = 0
        limit = time.monotonic() + LONG
        while not done and time.monotonic() < limit:
            with suppress(RefusedError):
                done = await work.do(lambda: 1)
            await asyncio.sleep(0.01)
        assert done == 1
        work.close()

    asyncio.run(story())


def test_a_problem_tells_at_most_so_much_and_nothing_that_breaks_a_terminal() -> None:
    refused = RefusedError(422, "a\x1b[2Jb\ud800", [f"reason {n}\n" for n in range(80)], "Move.")

    problem = problem_of(refused, "1")

    assert len(problem.reasons) == 51
    assert problem.reasons[-1] == "and 30 more"
    text = problem.model_dump_json()
    assert "\\u001b" not in text
    assert "\\n" not in text
