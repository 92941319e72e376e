"""A run of ``debrief ui`` whose processes are killed: ``python -m tests.benchmarks.faults``.

Launches the whole graph over a week as the UI does, on Postgres, with a model's server on loopback,
and ends run workers and the daemon with SIGKILL at random moments. With the daemon all of it ends;
it is started again, as systemd would. What follows is left to Dagster's monitoring and retries; a
run that fails for good is launched again, as a person would. Prints what must hold, and ends with 1
when something does not:

- the rows of judges, scores and mined rubrics are those of a run that nothing disturbed;
- at each kill a table is there as a whole or not at all;
- no finished answer of the model is asked for again: only what was under way at a kill.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psutil

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.rubrics.model import ExtractedRubric
from debrief.scoring.model import SessionScores
from tests.benchmarks import measuring
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.pipelines.test_model_run import MODEL, SCORING, answer, verdicts
from tests.pipelines.test_run import WEEK, conversation, write
from tests.pipelines.test_ui import Running
from tests.postgres import in_dagster_schema

TABLES: dict[str, type[Any]] = {
    "judge_evaluations": JudgeEvaluation,
    "session_scores": SessionScores,
    "extracted_rubrics": ExtractedRubric,
}
CONCURRENCY = 4
OVER = ("SUCCESS", "FAILURE", "CANCELED")
KINDS = {"run worker": "spawn_main", "daemon": "dagster-daemon"}
"""With a word of the command of each."""


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
            command = [*measuring.DEBRIEF, "run", "--yes", "--week", WEEK, "--lake", plain.url]
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
            with closing(EmbeddedPostgres(home.parent / "postgres")) as postgres:
                environment["DAGSTER_DATABASE_URL"] = in_dagster_schema(postgres.url)
                kills, states = run_disturbed(home, environment, options, look)
            again = server.received - questions
        most = CONCURRENCY * len(kills)
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
        running.launch()
        due = time.monotonic() + chance.uniform(1, options.seconds)
        while True:
            time.sleep(0.2)
            states = [state for state, _ in running.states().values()]
            if states and all(state in OVER for state in states):
                if "SUCCESS" in states:
                    return kills, states
                running.launch()
            if len(kills) < options.kills and time.monotonic() > due:
                kind = list(KINDS)[len(kills) % len(KINDS)]
                if kill(running, kind):
                    look()
                    kills.append(kind)
                    print(f"killed {kind}", flush=True)
                    due = time.monotonic() + chance.uniform(1, options.seconds)
    finally:
        running.stop()


def kill(running: Running, kind: str) -> bool:
    """Kill a process of a kind; return whether there was one."""
    try:
        running.find(KINDS[kind]).kill()
    except (AssertionError, psutil.NoSuchProcess):
        return False
    if kind == "daemon":
        running.process.wait()
        running.start()
    return True


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
