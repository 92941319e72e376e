"""How much faster two workers are than one: ``python -m tests.benchmarks.workers``.

The stages are bound by a model's latency: a server on loopback answers every call after
``--latency`` seconds, and a worker asks one thing at a time. Workers share a Postgres, a broker and
an object store, and nothing else. One and two workers, with warm processes, do the same weeks in
one run of this program, each in a lake of its own; what they wrote is compared byte for byte.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import fsspec
import pytest

from debrief.lake import Lake
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.settings import load_settings
from pipelines.distribution import carry_out, describe, pieces_of
from pipelines.instance import open_instance
from tests.distribution.cluster import Cluster, cluster
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.object_store import known, object_store
from tests.pipelines.test_model_run import MODEL, answer

FIRST = date(2026, 8, 3)
STAGES = ("judge_evaluations", "session_scores")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=4)
    parser.add_argument("--sessions", type=int, default=2, help="A week.")
    parser.add_argument("--latency", type=float, default=5.0, help="Seconds a call takes.")
    chosen = parser.parse_args()
    weeks = [str(FIRST + timedelta(weeks=number)) for number in range(chosen.weeks)]

    def slowly(call: Call) -> Reply:
        reply = answer(call)
        reply.latency = chosen.latency
        return reply

    with (
        tempfile.TemporaryDirectory() as folder,
        OpenAIServer(slowly) as model,
        EmbeddedPostgres(Path(folder) / "postgres", durable=False) as server,
        object_store() as store,
    ):
        root = Path(folder)
        bucket = store.bucket()
        measured = {}
        for count in (1, 2):
            before = len(model.calls)
            with (
                cluster(root / str(count), server, store, bucket) as made,
                _prepared(made, model, weeks, chosen.sessions),
            ):
                for number in range(count):
                    made.worker(f"worker-{number}", **_models(model))
                _take(["raw_sessions", "session_metadata"], weeks, made)
                started = time.monotonic()
                _take(list(STAGES), weeks, made)
                seconds = time.monotonic() - started
                lake = Lake(made.lake)
                names = [name for table in STAGES for name in lake.names(table)]
                content = [(name, lake.read_bytes(name)) for name in names]
                measured[count] = seconds, content
            calls = len(model.calls) - before
            print(f"{count} worker{'s' if count > 1 else ' '} {seconds:6.1f} s   {calls} calls")
        (one, first), (two, second) = measured[1], measured[2]
        print(f"ratio {one / two:.2f}   the same bytes: {first == second}")


@contextmanager
def _prepared(
    made: Cluster, model: OpenAIServer, weeks: list[str], sessions: int
) -> Iterator[None]:
    """Make this process the launcher, and bring transcripts to the bucket."""
    with known(made.store), pytest.MonkeyPatch.context() as told:
        for name, value in made.environment(made.root / "launcher", _models(model)).items():
            told.setenv(name, value)
        told.setenv("DEBRIEF_SESSIONS", f"s3://{made.bucket}/transcripts")
        folder = made.root / "transcripts"
        folder.mkdir()
        for week in weeks:
            for number in range(sessions):
                name = f"{week}-{number}"
                (folder / f"{name}.jsonl").write_text(_conversation(name, week), encoding="utf-8")
        fsspec.filesystem("s3").put(f"{folder}/", f"{made.bucket}/transcripts/", recursive=True)
        yield


def _take(assets: list[str], weeks: list[str], made: Cluster) -> None:
    with open_instance(load_settings()) as instance:
        ranges = [(week, week) for week in weeks]
        failed = carry_out(instance, pieces_of("", ranges, {}, {}, assets=tuple(assets)))
    if failed:
        raise SystemExit(describe(failed) + "".join(m.log[-2000:] for m in made.machines))


def _models(model: OpenAIServer) -> dict[str, str]:
    return {
        "DEBRIEF_MODEL": MODEL,
        "DEBRIEF_MODEL_BASE_URL": model.url,
        "OPENAI_API_KEY": "sk-loopback",
        "DEBRIEF_CONCURRENCY": "1",
    }


def _conversation(name: str, week: str) -> str:
    def line(number: int, role: str, text: str) -> str:
        message: dict[str, object] = {"role": role, "content": [{"type": "text", "text": text}]}
        if role == "assistant":
            message |= {"id": f"msg_{name}", "model": "claude-sonnet-4-5-20250929"}
            message |= {"usage": {"input_tokens": 10, "output_tokens": 20}}
        record = {
            "type": role,
            "uuid": f"{name}-{number}",
            "parentUuid": f"{name}-{number - 1}" if number else None,
            "sessionId": name,
            "timestamp": f"{week}T10:00:0{number}.000Z",
            "cwd": "/home/kim/ledger",
            "message": message,
        }
        return json.dumps(record) + "\n"

    asked = f"Round amounts of ledger {name} to cents in ledger/money.py"
    return line(0, "user", asked) + line(1, "assistant", "Done: they are rounded half to even.")


if __name__ == "__main__":
    main()
