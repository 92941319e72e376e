"""A run of ``debrief up`` whose processes are killed: ``python -m tests.benchmarks.faults``.

Launches the whole graph over a week as the UI does, with a model's server on loopback, and ends
run workers, the daemon and Postgres with SIGKILL at random moments. What follows is left to
Dagster's monitoring and retries; a run that fails for good is launched again, as a person would. Prints what must hold, and ends with 1 when something does not:

- the rows of judges, scores and rubrics are those of a run that nothing disturbed;
- no finished answer of the model is asked for again: only what was under way at a kill.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.model import SessionScores
from pipelines.jobs import range_tags
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.pipelines.test_model_run import MODEL, answer
from tests.pipelines.test_run import WEEK, conversation, write
from tests.pipelines.test_up import Running, words_of

TABLES: dict[str, type[Any]] = {
    "judge_evaluations": JudgeEvaluation,
    "session_scores": SessionScores,
    "rubric_evaluations": RubricEvaluation,
}
CONCURRENCY = 4
OVER = ("SUCCESS", "FAILURE", "CANCELED")
LAUNCH = """
mutation Launch($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
RUNS = "{ runsOrError { ... on Runs { results { runId status } } } }"
KINDS: dict[str, Callable[[list[str]], bool]] = {
    "run worker": lambda words: any("spawn_main" in word for word in words),
    "daemon": lambda words: any("daemon" in word for word in words),
    "postgres": lambda words: "-D" in words and "postgres" in words[0],
}


def main() -> None:
    """Carry out the plan and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6, help="in turn of each kind")
    parser.add_argument("--sessions", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=20.0, help="most between two kills")
    parser.add_argument("--latency", type=float, default=1.0, help="of the model's server")
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)

    def reply(call: Call) -> Reply:
        return replace(answer(call), latency=options.latency)

    with tempfile.TemporaryDirectory() as scratch:
        transcripts = Path(scratch) / "transcripts"
        transcripts.mkdir()
        for number in range(options.sessions):
            write(transcripts, f"{number}.jsonl", conversation(f"session-{number:03}"))
        with OpenAIServer() as server:
            server.reply = answer
            plain = run_undisturbed(Path(scratch) / "plain", environment_of(server, transcripts))
            questions = server.received
        with OpenAIServer(reply) as server:
            home = Path(scratch) / "disturbed" / "home"
            home.parent.mkdir()
            kills, states = run_disturbed(home, environment_of(server, transcripts), options)
            disturbed = Lake(str(home / "lake"))
            again = server.received - questions
        most = CONCURRENCY * sum(kind != "daemon" for kind in kills)
        held = {
            f"{table}: {len(rows_of(plain, table))} rows as undisturbed": (
                rows_of(plain, table) == rows_of(disturbed, table) != []
            )
            for table in TABLES
        }
        held[f"{again} of {questions} questions asked again, at most {most}"] = again <= most
    print(f"killed: {', '.join(kills)}; runs: {', '.join(states)}")
    for promise, kept in held.items():
        print(f"{'kept' if kept else 'BROKEN':8} {promise}")
    sys.exit(0 if all(held.values()) else 1)


def environment_of(server: OpenAIServer, transcripts: Path) -> dict[str, str]:
    """Return the settings that both runs share."""
    return {
        "DEBRIEF_SESSIONS": str(transcripts),
        "DEBRIEF_OFFLINE": "",
        "DEBRIEF_MODEL": MODEL,
        "DEBRIEF_MODEL_BASE_URL": server.url,
        "DEBRIEF_CONCURRENCY": str(CONCURRENCY),
        "DEBRIEF_REDACTION_KEY": "5a" * 32,
        "DEBRIEF_LANGFUSE": "off",
        "OPENAI_API_KEY": "sk-loopback",
    }


def run_undisturbed(home: Path, environment: dict[str, str]) -> Lake:
    """Run the same weeks by the command; return the lake."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))}
    command = [sys.executable, "-m", "pipelines.command", "run", "--week", WEEK]
    subprocess.run(
        [*command, "--lake", str(home / "lake")],
        env={**kept, **environment, "DEBRIEF_HOME": str(home)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return Lake(str(home / "lake"))


def run_disturbed(
    home: Path, environment: dict[str, str], options: argparse.Namespace
) -> tuple[list[str], list[str]]:
    """Launch the graph, kill processes while it runs; return the kills and how the runs ended."""
    chance = random.Random(options.seed)
    running = Running(home, **environment, DEBRIEF_LAKE=str(home / "lake"))
    kills: list[str] = []
    try:
        launch(running)
        due = time.monotonic() + chance.uniform(1, options.seconds)
        while True:
            time.sleep(0.2)
            states = states_of(running)
            if states and all(state in OVER for state in states):
                if "SUCCESS" in states:
                    return kills, states
                launch(running)
            if len(kills) < options.kills and time.monotonic() > due:
                kind = list(KINDS)[len(kills) % len(KINDS)]
                if kill(running, kind):
                    kills.append(kind)
                    print(f"killed {kind}", flush=True)
                    due = time.monotonic() + chance.uniform(1, options.seconds)
    finally:
        running.process.terminate()
        running.process.wait(180)


def kill(running: Running, kind: str) -> bool:
    """Kill a process of a kind; return whether there was one."""
    for process in running.family():
        words = words_of(process)
        if words and KINDS[kind](words):
            with suppress(psutil.NoSuchProcess):
                process.kill()
                return True
    return False


def launch(running: Running) -> None:
    """Launch the whole graph over the weeks, waiting for the databases if need be."""
    tags = [{"key": key, "value": value} for key, value in range_tags(WEEK, WEEK).items()]
    selector = {
        "repositoryLocationName": "debrief",
        "repositoryName": "__repository__",
        "jobName": "whole_graph",
    }
    params = {"selector": selector, "executionMetadata": {"tags": tags}}
    body = {"query": LAUNCH, "variables": {"params": params}}
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        with suppress(OSError, KeyError, ValueError, TypeError):
            answered = json.loads(running.get(running.ports.ui, "/graphql", body)[1])
            if answered["data"]["launchRun"]["__typename"] == "LaunchRunSuccess":
                return
            print(answered, flush=True)
        time.sleep(1)
    raise TimeoutError("the graph cannot be launched")


def states_of(running: Running) -> list[str]:
    """Return how the runs are; nothing while it cannot be asked."""
    with suppress(OSError, KeyError, ValueError, TypeError):
        body = json.loads(running.get(running.ports.ui, "/graphql", {"query": RUNS})[1])
        return [run["status"] for run in body["data"]["runsOrError"]["results"]]
    return []


def rows_of(lake: Lake, table: str) -> list[dict[str, Any]]:
    """Return a table's rows, without what a call cost."""
    import msgspec

    rows = [
        msgspec.to_builtins(row)
        for week in lake.partitions(table)
        for row in lake.read(table, week, TABLES[table])
    ]
    cost = ("input_tokens", "output_tokens", "cost_usd")
    return [{key: value for key, value in row.items() if key not in cost} for row in rows]


if __name__ == "__main__":
    main()
