"""A run of ``debrief up`` whose processes are killed: ``python -m tests.benchmarks.faults``.

Launches the whole graph over a week as the UI does, with a model's server on loopback, and ends
run workers, the daemon and Postgres with SIGKILL at random moments. What follows is left to
Dagster's monitoring and retries; a run that fails for good is launched again, as a person would. Prints what must hold, and ends with 1 when something does not:

- the rows of judges, scores and mined rubrics are those of a run that nothing disturbed;
- at each kill a table is there as a whole or not at all;
- no finished answer of the model is asked for again: only what was under way at a kill.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psutil

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.rubrics.model import ExtractedRubric
from debrief.scoring.model import SessionScores
from pipelines.jobs import range_tags
from tests.benchmarks import measuring
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.pipelines.test_model_run import MODEL, SCORING, answer, verdicts
from tests.pipelines.test_run import WEEK, conversation, write
from tests.pipelines.test_up import Running, words_of
from tests.waiting import wait_until

TABLES: dict[str, type[Any]] = {
    "judge_evaluations": JudgeEvaluation,
    "session_scores": SessionScores,
    "extracted_rubrics": ExtractedRubric,
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
    options = measuring.options(
        __doc__, kills=6, sessions=24, seconds=20.0, latency=1.0, seed=random.randrange(1000)
    )
    print(f"seed {options.seed}", flush=True)

    def reply(call: Call) -> Reply:
        return replace(answer_of(call), latency=options.latency)

    with tempfile.TemporaryDirectory() as scratch:
        transcripts = Path(scratch) / "transcripts"
        transcripts.mkdir()
        for number in range(options.sessions):
            lines = conversation(f"session-{number:03}")
            own = [line.replace("ledger/money", f"ledger/money_{number}") for line in lines]
            write(transcripts, f"{number}.jsonl", own)
        with OpenAIServer() as server:
            server.reply = answer_of
            plain = Lake(f"{scratch}/plain/lake")
            command = [*measuring.DEBRIEF, "run", "--week", WEEK, "--lake", plain.url]
            home = Path(scratch) / "plain"
            measuring.run_alone(command, home, **environment_of(server, transcripts))
            questions = server.received
        with OpenAIServer(reply) as server:
            home = Path(scratch) / "disturbed" / "home"
            home.parent.mkdir()
            disturbed = Lake(str(home / "lake"))
            wholes: list[bool] = []

            def look() -> None:
                states = ((rows_of(disturbed, table), rows_of(plain, table)) for table in TABLES)
                wholes.append(all(found in ([], whole) for found, whole in states))

            environment = environment_of(server, transcripts)
            kills, states = run_disturbed(home, environment, options, look)
            again = server.received - questions
        most = CONCURRENCY * sum(kind != "daemon" for kind in kills)
        held = {
            f"{table}: {len(rows_of(plain, table))} rows as undisturbed": (
                rows_of(plain, table) == rows_of(disturbed, table) != []
            )
            for table in TABLES
        }
        held[f"tables are whole at {len(wholes)} kills"] = all(wholes)
        held[f"{again} of {questions} questions asked again, at most {most}"] = again <= most
    measuring.show("killed, and how runs ended", f"{', '.join(kills)}; {', '.join(states)}")
    for promise, kept in held.items():
        measuring.show(promise, "kept" if kept else "BROKEN")
    sys.exit(0 if all(held.values()) else 1)


def answer_of(call: Call) -> Reply:
    """Answer as of a session that is good or bad by its number, so that rubrics are mined."""
    found = re.search(r"ledger/money_(\d+)", call.user)
    reply = answer(call)
    if found is None:
        return reply
    if SCORING in call.system and int(found[1]) % 2:
        return Reply(verdicts(0.1, 0))
    return replace(reply, content=str(reply.content).replace("ledger/money", found[0]))


def environment_of(server: OpenAIServer, transcripts: Path) -> dict[str, str]:
    """Return the settings that both runs share."""
    return {
        "DEBRIEF_SESSIONS": str(transcripts),
        "DEBRIEF_NO_MODEL": "",
        "DEBRIEF_MODEL": MODEL,
        "DEBRIEF_MODEL_BASE_URL": server.url,
        "DEBRIEF_CONCURRENCY": str(CONCURRENCY),
        "DEBRIEF_REDACTION_KEY": "5a" * 32,
        "OPENAI_API_KEY": "sk-loopback",
    }


def run_disturbed(
    home: Path, environment: dict[str, str], options: Namespace, look: Callable[[], None]
) -> tuple[list[str], list[str]]:
    """Launch the graph, kill processes while it runs; return the kills and how the runs ended.

    Args:
        home: of all that is started.
        environment: its settings.
        options: of the command line.
        look: is called after each kill.
    """
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
                    look()
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


def ask(running: Running, query: str, **variables: Any) -> Any:
    """Ask Dagster's server; return its data, nothing while it cannot be asked."""
    with suppress(OSError, KeyError, ValueError, TypeError):
        body = {"query": query, "variables": variables}
        return json.loads(running.get(running.ports.web, "/dagster/graphql", body)[1])["data"]
    return None


def launch(running: Running) -> None:
    """Launch the whole graph over the weeks, waiting for the databases if need be."""
    tags = [{"key": key, "value": value} for key, value in range_tags(WEEK, WEEK).items()]
    selector = {
        "repositoryLocationName": "debrief",
        "repositoryName": "__repository__",
        "jobName": "whole_graph",
    }
    params = {"selector": selector, "executionMetadata": {"tags": tags}}

    def launched() -> bool:
        answered = ask(running, LAUNCH, params=params)
        return bool(answered) and answered["launchRun"]["__typename"] == "LaunchRunSuccess"

    wait_until(launched)


def states_of(running: Running) -> list[str]:
    """Return how the runs are; nothing while it cannot be asked."""
    runs = ((ask(running, RUNS) or {}).get("runsOrError") or {}).get("results", [])
    return [run["status"] for run in runs]


def rows_of(lake: Lake, table: str) -> list[dict[str, Any]]:
    """Return a table's rows, without what a call cost."""
    rows = [
        msgspec.to_builtins(row)
        for week in lake.partitions(table)
        for row in lake.read(table, week, TABLES[table])
    ]
    cost = ("input_tokens", "output_tokens", "cost_usd")
    return [{key: value for key, value in row.items() if key not in cost} for row in rows]


if __name__ == "__main__":
    main()
