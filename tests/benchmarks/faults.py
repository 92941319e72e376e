"""The fault plan: everything that runs is killed while models are asked, and what that cost.

``python -m tests.benchmarks.faults [--sessions 300] [--only "the daemon"]``

Real processes: Dagster's daemon, its code server, run workers and steps in processes of their own,
on the configuration of ``deploy/dagster.yaml`` and an embedded Postgres that also holds the shared
state; a model's server on loopback that is slow, busy, broken, hanging and at times without sense.
Nobody starts anything again but the daemon, which a supervisor would, and a run whose step died,
which no run retry takes up.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
from msgspec import Struct, structs

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.state.processes import decoded
from debrief.state.store import Lease
from debrief.weeks import week_of
from tests.benchmarks.fault_definitions import ASKING
from tests.benchmarks.fault_stage import CONCURRENCY, PLAN, REPLACED, WEEKS, Stage
from tests.benchmarks.judging import session_of
from tests.models.openai_server import Call, Faults, OpenAIServer, Reply, judged

CALLS_A_SESSION = 3
"""Two judges and one chunk of the scorer."""

AT_ONCE = CONCURRENCY * len(ASKING)
FAULTS = Faults(busy=0.10, broken=0.05, hangs=0.01, garbage=0.02)
LATENCY = 0.5
PATIENCE = 180.0


def score_of(call: Call) -> Reply:
    """Give each session and each question about it an answer of its own, always the same."""
    session = re.search(r"Add helpers (\d+)", call.user)
    assert session
    judge = re.search(r"# (Code reuse|Plan compliance)", call.system)
    if judge:
        score = _drawn(session[1], judge[1])
        return Reply(judged(round(score, 3), f"{judge[1]} of {session[1]}."), latency=LATENCY)
    verdicts = {
        dimension.name: {
            "score": dimension.anchors[int(_drawn(session[1], dimension.name) * 3)].label
            if dimension.kind == "categorical"
            else round(_drawn(session[1], dimension.name), 3),
            "rationale": f"In turn 1 of session {session[1]}.",
        }
        for dimension in DIMENSIONS
    }
    return Reply(json.dumps(verdicts), latency=LATENCY)


def _drawn(*words: str) -> float:
    return hashlib.sha256(" ".join(words).encode()).digest()[0] / 256


def write_sessions(lake: Lake, sessions: int) -> None:
    """Write raw sessions, the same number in each week."""
    for number, week in enumerate(WEEKS):
        start = dt.datetime.fromisoformat(f"{week}T09:00:00+00:00")
        rows = [
            structs.replace(session_of(at), started=start, ended=start)
            for at in range(number, sessions, len(WEEKS))
        ]
        assert {week_of(row.started) for row in rows} == {week}
        lake.write("raw_sessions", week, rows, Session)


class Rows(Struct, frozen=True):
    """What came of it, what a call took left out."""

    judged: list[JudgeEvaluation]
    scored: list[SessionScores]


def rows_in(lake: Lake) -> Rows:
    """Return the rows of all weeks."""
    return Rows(
        [
            structs.replace(row, input_tokens=0, output_tokens=0, cost_usd=None)
            for week in lake.partitions(ASKING[0])
            for row in lake.read(ASKING[0], week, JudgeEvaluation)
        ],
        [
            structs.replace(
                row,
                input_tokens=0,
                output_tokens=0,
                cost_usd=None,
                chunks=tuple(
                    structs.replace(chunk, input_tokens=0, output_tokens=0, cost_usd=None)
                    for chunk in row.chunks
                ),
            )
            for week in lake.partitions(ASKING[1])
            for row in lake.read(ASKING[1], week, SessionScores)
        ],
    )


class Kill(Struct, frozen=True, kw_only=True):
    """One fault of the plan, and when work went on."""

    name: str
    until_work: float = 0.0
    """Seconds."""


def follow(stage: Stage, server: OpenAIServer, plan: list[str], expected: int) -> Iterator[Kill]:
    """Do to the run what the plan says, each time another share of the answers was delivered."""
    for number, name in enumerate(plan, 1):
        _wait(lambda at=number: len(server.delivered) >= expected * at // (len(plan) + 1))  # type: ignore[misc]
        _wait(lambda: len(stage.steps()) > 0)
        before = {lease.process for lease in stage.leases()}
        at, asked = time.time(), server.received
        print(f"  {name}, after {len(server.delivered)} answers …", end="", flush=True)
        PLAN[name](stage)
        if name in REPLACED:
            _wait(lambda old=before, then=at: bool(_new(stage, old, then)))  # type: ignore[misc]
            since = min(lease.since for lease in _new(stage, before, at))
        else:
            _wait(lambda old=asked: server.received > old + AT_ONCE)  # type: ignore[misc]
            since = time.time()
        print(f" work after {since - at:.1f} s", flush=True)
        yield Kill(name=name, until_work=since - at)


def _new(stage: Stage, before: set[str], then: float) -> list[Lease]:
    """Return the leases that other, living processes took since."""
    return [
        lease
        for lease in stage.leases()
        if lease.since > then
        and lease.process not in before
        and (process := decoded(lease.process)) is not None
        and not process.is_gone
    ]


def _wait(until: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > limit:
            raise TimeoutError("nothing happens any more")
        time.sleep(0.05)


def all_done(stage: Stage) -> bool:
    """Return whether no run is under way or to come."""
    with stage.instance() as instance:
        return not instance.get_runs(
            dg.RunsFilter(
                statuses=[
                    dg.DagsterRunStatus.QUEUED,
                    dg.DagsterRunStatus.NOT_STARTED,
                    dg.DagsterRunStatus.STARTING,
                    dg.DagsterRunStatus.STARTED,
                    dg.DagsterRunStatus.CANCELING,
                ]
            )
        )


def run(
    top: Path, sessions: int, plan: list[str], faults: Faults
) -> tuple[Rows, list[Kill], Stage, OpenAIServer]:
    """Run a plan to its end; two people launch the same weeks at its start."""

    def reply(call: Call) -> Reply:
        return faults.of(call) or score_of(call)

    expected = sessions * CALLS_A_SESSION
    with ExitStack() as stack:
        server = stack.enter_context(OpenAIServer(reply))
        server.keep_calls = False
        stage = Stage(top, server)
        stack.callback(stage.end)
        write_sessions(stage.lake, sessions)
        stage.start()
        people = [threading.Thread(target=stage.launch) for _ in range(2)]
        for person in people:
            person.start()
        for person in people:
            person.join()
        kills = list(follow(stage, server, plan, expected))
        _wait(lambda: len(server.delivered) >= expected)
        limit = time.monotonic() + PATIENCE
        while not all_done(stage) and time.monotonic() < limit:
            time.sleep(1)
        with stage.instance() as instance:
            states = Counter(run.status.value for run in instance.get_runs())
        print(f"  runs: {dict(states)}; {server.received} requests")
        return rows_in(stage.lake), kills, stage, server


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--only", action="append", choices=[*PLAN])
    parser.add_argument("--folder", type=Path, help="Keeps what was made, for a look at it.")
    asked = parser.parse_args()
    plan = asked.only or list(PLAN)
    with ExitStack() as stack:
        scratch = asked.folder or stack.enter_context(
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        )
        print("without faults")
        plain, *_ = run(Path(scratch, "plain"), asked.sessions, [], Faults())
        print("with faults")
        start = time.monotonic()
        rows, kills, stage, server = run(Path(scratch, "faults"), asked.sessions, plan, FAULTS)
        took = time.monotonic() - start
        named = Counter((row.session_id, row.judge) for row in rows.judged)
        scored = Counter(row.session_id for row in rows.scored)
        lost = sum(row.status != "ok" for row in rows.judged)
        lost += sum(row.status != "ok" for row in rows.scored)
        lost += asked.sessions * CALLS_A_SESSION - len(named) - len(scored)
        twice = sum(count > 1 for count in (*named.values(), *scored.values()))
        repeated = sum(server.delivered.values()) - len(server.delivered)
        left = [path for path in Path(stage.lake.url).rglob("*") if path.is_file()]
        partial = [path for path in left if path.suffix != ".parquet" and path.name[0] != "."]
    killed = [kill for kill in kills if kill.name in REPLACED]
    slowest = max((kill.until_work for kill in kills), default=0.0)
    share = repeated / max(1, len(server.delivered))
    table = [
        ("sessions lost", f"{lost}", "0"),
        ("scores twice", f"{twice}", "0"),
        ("the same rows as without faults", f"{rows == plain}", "True"),
        ("answered calls repeated", f"{repeated} of {len(server.delivered)} ({share:.2%})",
         f"≤ {len(killed) * AT_ONCE} and ≤ 1 %"),
        ("partial files visible", f"{len(partial)}", "0"),
        ("seconds until new work, at most", f"{slowest:.1f}", "≤ 60"),
    ]  # fmt: skip
    print(f"{asked.sessions} sessions, {len(kills)} faults, {took:.0f} s")
    for what, found, bar in table:
        print(f"{what:34} {found:24} {bar}")


if __name__ == "__main__":
    main()
