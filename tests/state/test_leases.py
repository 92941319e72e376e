"""Leases: one works, the others wait, and nobody waits for the dead."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.state.leases import Ended, Keeper
from debrief.state.processes import decoded, this_process
from debrief.state.store import Lease, State
from debrief.state.watch import RunOverError, watch_of
from tests.waiting import LONG, wait_until

Opened = Callable[[], State]
ROOT = Path(__file__).parents[2]
WORK = "judge_evaluations 2026-11-16"
HOLDER = """
import sys, time
from tests.state.conftest import state_at
from debrief.state.leases import Keeper
keeper = Keeper(state_at(sys.argv[1]), dead=float(sys.argv[2]))
with keeper.hold(sys.argv[3], "run of the holder", print) as watch:
    print("holds", flush=True)
    while True:
        time.sleep(0.05)
        if watch.over:
            print(watch.over, flush=True)
            break
"""


def keeper_in(state: State, dead: float = 30.0) -> Keeper:
    return Keeper(state, dead=dead)


def lease_in(state: State) -> Lease:
    lease = state.lease(WORK)
    assert lease is not None
    return lease


def held_elsewhere(place: str, dead: float) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, place, str(dead), WORK],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"
    return holder


def test_two_do_not_work_on_one_thing_at_once_and_who_waits_is_told_for_whom(
    opened: Opened,
) -> None:
    told: list[str] = []
    order: list[str] = []
    taken = threading.Event()

    def first() -> None:
        with keeper_in(opened()).hold(WORK, "first run", told.append):
            taken.set()
            wait_until(lambda: told)
            time.sleep(0.1)
            order.append("first done")

    thread = threading.Thread(target=first)
    thread.start()
    assert taken.wait(LONG)
    with keeper_in(opened()).hold(WORK, "second run", told.append):
        order.append("second began")
    thread.join()
    assert order == ["first done", "second began"]
    assert len(told) == 1
    assert told[0].startswith("waits for run first ru (process ")
    assert f"which has {WORK} since " in told[0]


def test_who_asks_again_because_the_answer_was_lost_has_the_lease(opened: Opened) -> None:
    state = opened()
    told: list[str] = []
    with keeper_in(opened()).hold(WORK, "run", told.append):
        (lease,) = state.leases_of("run")
        assert state.take(WORK, run="run", token=lease.token, process=lease.process)
        assert not state.take(WORK, run="another", token="another", process=lease.process)
    assert state.lease(WORK) is None
    assert told == []


def test_different_things_are_worked_on_at_once(state: State) -> None:
    keeper = keeper_in(state)
    with (
        keeper.hold("week 1", "run", pytest.fail),
        keeper.hold("week 2", "other run", pytest.fail),
    ):
        assert {state.lease("week 1").run, state.lease("week 2").run} == {"run", "other run"}  # type: ignore[union-attr]
    assert state.lease("week 1") is None


def test_who_is_alive_keeps_a_lease_for_as_long_as_the_work_takes(opened: Opened) -> None:
    state = opened()
    with keeper_in(opened(), 0.6).hold(WORK, "run", pytest.fail) as watch:
        first = lease_in(state)
        wait_until(lambda: lease_in(state).beat > first.beat + 0.6)
        assert lease_in(state).token == first.token
        watch.check()


def test_the_work_of_a_killed_process_is_taken_over_at_once(place: str, state: State) -> None:
    holder = held_elsewhere(place, 10 * LONG)
    holder.send_signal(signal.SIGKILL)
    start = time.monotonic()
    told: list[str] = []
    with keeper_in(state, 10 * LONG).hold(WORK, "run", told.append):
        assert time.monotonic() - start < LONG
    holder.wait()
    assert told[-1].startswith(f"takes over {WORK} from run run of t (process {holder.pid} on ")
    assert told[-1].endswith("whose process is gone")


def test_a_process_of_another_machine_is_dead_once_it_was_silent_for_long(state: State) -> None:
    process = replace(this_process(), machine="another", host="another").encoded()
    start = time.monotonic()
    assert state.take(WORK, run="its run", token="t", process=process)
    told: list[str] = []
    with keeper_in(state, 1.0).hold(WORK, "run", told.append):
        assert 0.8 < time.monotonic() - start < LONG
    assert told[-1].startswith(f"takes over {WORK} from run its run (process ")
    assert re.search(r"on another\), not heard of for \d+ s$", told[-1])


def test_who_was_only_slow_finds_out_and_goes_on_no_more(place: str, state: State) -> None:
    holder = held_elsewhere(place, 1.0)
    holder.send_signal(signal.SIGSTOP)
    with keeper_in(state, 1.0).hold(WORK, "new run", lambda _: None):
        holder.send_signal(signal.SIGCONT)
        said, _ = holder.communicate(timeout=LONG)
        assert lease_in(state).run == "new run"
    assert said.startswith(f"it was not heard of for 1 s while it had {WORK} and run new run")


def test_a_lost_lease_stops_its_run_before_the_next_call(opened: Opened) -> None:
    keeper, other = keeper_in(opened()), opened()
    with keeper.hold(WORK, "slow run", pytest.fail) as watch:
        keeper.renew()
        watch.check()
        lease = other.lease(WORK)
        assert other.take(WORK, run="quick run", token="t2", process="", dead=lease)
        assert not other.take(WORK, run="late run", token="t3", process="", dead=lease)
        keeper.renew()
        with pytest.raises(
            RunOverError, match=f"run slow run: .*{WORK} and run quick ru took over"
        ):
            watch.check()
    assert other.lease(WORK).token == "t2"  # type: ignore[union-attr]


def test_a_holder_that_was_heard_of_meanwhile_is_not_taken_for_dead(opened: Opened) -> None:
    keeper, other = keeper_in(opened()), opened()
    with keeper.hold(WORK, "run", pytest.fail) as watch:
        looked = lease_in(other)
        while lease_in(other).beat == looked.beat:
            keeper.renew()
        assert not other.take(WORK, run="other run", token="t2", process="", dead=looked)
        watch.check()


def test_a_run_that_was_ended_elsewhere_notices(state: State) -> None:
    ends: list[Ended | None] = [None]
    keeper = keeper_in(state, 0.6)
    watch = keeper.attend("run", lambda: ends[0])
    (lease,) = state.leases_of("run")
    holder = decoded(lease.process)
    assert holder is not None
    assert holder.number == this_process().number
    assert not holder.is_gone
    assert not keeper.is_dead(lease)
    watch.check()
    ends[0] = Ended("it is marked as failure")
    wait_until(lambda: watch.over)
    with pytest.raises(RunOverError, match="it is marked as failure"):
        watch.check()
    wait_until(lambda: state.leases_of("run") == [])


def test_a_storage_of_runs_that_hangs_keeps_nobody_from_saying_that_he_is_alive(
    state: State,
) -> None:
    keeper, asked, answered = keeper_in(state, 0.6), threading.Event(), threading.Event()

    def status() -> Ended | None:
        asked.set()
        answered.wait(LONG)
        return None

    def beat() -> float:
        (lease,) = state.leases_of("run")
        return lease.beat

    keeper.attend("run", status)
    assert asked.wait(LONG)
    first = beat()
    wait_until(lambda: beat() > first + 0.6, LONG / 2)
    answered.set()
    keeper.leave("run")


def test_a_run_is_attended_once_however_many_threads_begin_to_work_for_it(state: State) -> None:
    keeper = keeper_in(state)
    with ThreadPoolExecutor(8) as pool:
        watches = list(pool.map(lambda _: keeper.attend("run", lambda: None), range(8)))
    keeper.renew()
    assert len({id(watch) for watch in watches}) == 1
    assert watches[0].over == ""
    assert len(state.leases_of("run")) == 1
    keeper.leave("run")


def test_what_could_not_be_given_back_is_given_back_later(opened: Opened) -> None:
    state = opened()
    keeper = keeper_in(state)
    with keeper.hold(WORK, "run", pytest.fail):
        lease = state.lease(WORK)
        assert lease is not None
    process = lease.process
    assert state.take(WORK, run="run", token="forgotten", process=process)
    keeper.renew()
    assert state.lease(WORK) is None


def test_a_process_that_is_done_with_its_part_leaves_no_sign_that_could_die(state: State) -> None:
    keeper = keeper_in(state)
    with keeper.hold(WORK, "run", pytest.fail):
        keeper.attend("run", lambda: None)
        keeper.attend("other run", lambda: None)
        keeper.leave("run")
        assert [lease.name for lease in state.leases_of("run")] == [WORK]
        assert len(state.leases_of("other run")) == 1
        keeper.attend("run", lambda: None)
        assert len(state.leases_of("run")) == 2
        keeper.leave("run")
        keeper.leave("other run")


def test_a_run_that_was_done_leaves_nothing_behind(state: State) -> None:
    watch = keeper_in(state, 0.6).attend("run", Ended)
    wait_until(lambda: state.leases_of("run") == [])
    watch.check()


def test_who_waits_stops_waiting_when_the_own_run_is_over(opened: Opened) -> None:
    waiting = keeper_in(opened())
    with keeper_in(opened()).hold(WORK, "run", pytest.fail):
        watch_of("waiting run")
        kept = watch_of("waiting run")
        threading.Timer(0.3, kept.stop, ["it is marked as canceled"]).start()
        with (
            pytest.raises(RunOverError, match="canceled"),
            waiting.hold(WORK, "waiting run", lambda _: None),
        ):
            pytest.fail("it was not its turn")


def test_the_number_of_a_dead_process_given_to_a_new_one_does_not_revive_it() -> None:
    alive = this_process()
    assert not alive.is_gone
    assert replace(alive, started=alive.started - 6000).is_gone
    assert replace(alive, number=2**22 + 1).is_gone
    assert not replace(alive, machine="another", number=2**22 + 1).is_gone
