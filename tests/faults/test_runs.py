"""Runs of one partition at once, killed, and ended from elsewhere: nothing is paid for twice."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from debrief.state.leases import keeper_of
from debrief.state.sqlite import SqliteState
from pipelines.recovery import free_slots, settle_dead_runs
from tests.benchmarks.judging_faults import score_of, structs_with
from tests.faults.judging import CONCURRENCY, Machine
from tests.models.openai_server import OpenAIServer
from tests.waiting import LONG, wait_until

SESSIONS = 20
JUDGES = 2
QUESTIONS = SESSIONS * JUDGES
LATENCY = 0.25


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(lambda call: structs_with(score_of(call), LATENCY)) as server:
        server.keep_calls = False
        yield server


@pytest.fixture
def machine(tmp_path: Path, server: OpenAIServer) -> Machine:
    machine = Machine(tmp_path, server)
    machine.write_sessions(SESSIONS)
    with machine.instance() as instance:
        assert instance.get_runs() == []
    return machine


def wait_for_answers(server: OpenAIServer, count: int) -> None:
    wait_until(lambda: len(server.delivered) >= count)


def followed(run: subprocess.Popen[str]) -> list[str]:
    """Return the lines that a run says; more come while it goes on."""
    lines: list[str] = []
    assert run.stdout is not None
    threading.Thread(target=lines.extend, args=[run.stdout], daemon=True).start()
    return lines


def repeated(server: OpenAIServer) -> int:
    return sum(server.delivered.values()) - len(server.delivered)


def test_two_people_launch_the_same_week_and_both_get_it_for_the_price_of_one(
    machine: Machine, server: OpenAIServer
) -> None:
    server.most_answers = QUESTIONS // 2
    runs = [machine.start() for _ in range(2)]
    said = [followed(run) for run in runs]

    def waiting() -> list[str]:
        return [line for lines in said for line in list(lines) if "waits for run" in line]

    wait_until(waiting)
    server.most_answers = None
    assert [run.wait(LONG) for run in runs] == [0, 0]
    wait_until(lambda: [lines[-1:] for lines in said] == [["succeeded\n"]] * 2)
    assert server.received == len(server.delivered) == QUESTIONS
    (waited,) = waiting()
    assert "which has judge_evaluations 2026-03-02 of " in waited
    assert [row.status for row in machine.rows()] == ["ok"] * QUESTIONS
    state = SqliteState(machine.folder / "home" / "cache" / "answers.sqlite")
    with machine.instance() as instance:
        assert [state.leases_of(run.run_id) for run in instance.get_runs()] == [[], []]


def test_a_killed_run_is_told_as_failed_and_the_next_one_goes_on_at_once(
    machine: Machine, server: OpenAIServer
) -> None:
    server.most_answers = QUESTIONS // 2
    run = machine.start()
    wait_for_answers(server, QUESTIONS // 2)
    run.kill()
    run.wait()
    server.most_answers = None
    assert machine.rows() == []
    keeper = keeper_of(SqliteState(machine.folder / "home" / "cache" / "answers.sqlite"))
    with machine.instance() as instance:
        (started,) = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        assert settle_dead_runs(instance, keeper) == [started.run_id]
        assert settle_dead_runs(instance, keeper) == []
        failed = instance.get_run_by_id(started.run_id)
        assert failed is not None
        assert failed.status is dg.DagsterRunStatus.FAILURE
        (told,) = [
            entry.message
            for entry in instance.all_logs(started.run_id)
            if entry.dagster_event and entry.dagster_event.is_failure
        ]
    assert told.startswith(f"Process {run.pid} on ")
    assert "it was killed" in told
    again = machine.start()
    said, _ = again.communicate(timeout=LONG)
    assert said.splitlines()[-1] == "succeeded"
    assert "takes over judge_evaluations 2026-03-02 of " in said
    assert "whose process is gone" in said
    assert len(server.delivered) == QUESTIONS
    assert repeated(server) <= CONCURRENCY
    assert [row.status for row in machine.rows()] == ["ok"] * QUESTIONS


def test_a_run_that_was_ended_from_elsewhere_asks_no_more_and_writes_nothing(
    machine: Machine, server: OpenAIServer
) -> None:
    machine = Machine(machine.folder, server, more={"DEBRIEF_LEASE_SECONDS": "6"})
    server.reply = lambda call: structs_with(score_of(call), 2.0)
    run = machine.start()
    wait_for_answers(server, CONCURRENCY)
    with machine.instance() as instance:
        keeper = keeper_of(SqliteState(machine.folder / "home" / "cache" / "answers.sqlite"))
        assert settle_dead_runs(instance, keeper) == []
        (started,) = instance.get_runs()
        instance.report_run_failed(started, "Somebody marked it so.")
        said, _ = run.communicate(timeout=LONG)
    assert "it is marked as failure" in said
    assert server.received < QUESTIONS
    assert machine.rows() == []


def test_the_places_in_a_pool_of_a_dead_run_are_given_back(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    state = SqliteState(tmp_path / "state.sqlite")
    with machine.instance() as instance:
        storage = instance.event_log_storage
        storage.initialize_concurrency_limit_to_default("language_model")
        storage.set_concurrency_slots("language_model", 1)

        @dg.job
        def nothing() -> None: ...

        runs = [instance.create_run_for_job(nothing) for _ in range(2)]
        claim = storage.claim_concurrency_slot("language_model", runs[0].run_id, "step")
        assert claim.is_claimed
        assert free_slots(instance, keeper_of(state)) == []
        instance.report_run_failed(runs[0])
        assert state.take("work", run=runs[0].run_id, token="t", process="")
        assert free_slots(instance, keeper_of(state)) == []
        state.release("t")
        assert free_slots(instance, keeper_of(state)) == [runs[0].run_id]
        assert storage.claim_concurrency_slot("language_model", runs[1].run_id, "step").is_claimed
