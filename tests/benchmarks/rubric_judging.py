"""What judging rubrics costs: sessions by rubrics against a slow server, then with nothing new.

``python -m tests.benchmarks.rubric_judging [--sessions 200] [--rubrics 8] [--concurrency 32]
[--latency 1] [--lake FOLDER]``; with a lake, its sessions and rubrics are judged.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from debrief.lake import Lake
from debrief.models.cache import Cache
from debrief.models.language_model import Answer, LanguageModel
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.rubrics.model_judge import ModelRubricJudge
from debrief.sessions.model import Session
from debrief.tokens import count_tokens
from tests.models.openai_server import OpenAIServer, Reply
from tests.rubrics.scenario import GOOD, rubric, session

ANSWER = "SCORE: 4\nREASONING: Turn 1 names the file and the result that is expected of it."
LEAST, BLOCK = 1_024, 128


class Asked:
    """A door that remembers each prompt, and when it was asked and answered."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.calls: list[tuple[float, float, str]] = []
        self._lock = threading.Lock()

    def ask(self, prompt: str) -> Answer:
        """Ask the model."""
        start = time.perf_counter()
        answer = self.model.ask(prompt)
        with self._lock:
            self.calls.append((start, time.perf_counter(), prompt))
        return answer

    def cached_share(self) -> tuple[float, float]:
        """Return the share of input tokens that a provider's prompt cache serves.

        Of a session's calls after its first: as they were sent, and when judged by a prefix of at
        least 1,024 tokens of a prompt that was answered before. The second number is that of
        sessions whose shared part is that long at all.
        """
        by_session: dict[str, list[tuple[float, float, str]]] = {}
        for call in sorted(self.calls):
            by_session.setdefault(call[2].split("=== Chat Session", 1)[1][:80], []).append(call)
        inputs = cached = long_inputs = long_cached = 0
        for calls in by_session.values():
            for place, (start, _, prompt) in enumerate(calls[1:], 1):
                seen = [one for _, end, one in calls[:place] if end <= start]
                prefix = max((_shared(prompt, one) for one in seen), key=len, default="")
                size = count_tokens(prefix)
                served = size // BLOCK * BLOCK if size >= LEAST else 0
                tokens = count_tokens(prompt)
                inputs, cached = inputs + tokens, cached + served
                if size >= LEAST or not seen:
                    long_inputs, long_cached = long_inputs + tokens, long_cached + served
        return cached / inputs, long_cached / max(1, long_inputs)


def _shared(one: str, other: str) -> str:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return one[:low]


def made(count: int) -> Iterator[Session]:
    """Yield sessions of some 4,000 tokens."""
    for number in range(count):
        reply = " ".join(f"step {number} {word} renames the helper" for word in range(500))
        yield session(number, GOOD, replies=(reply, "Done."))


def of_lake(lake: Lake) -> Iterator[Session]:
    """Yield a lake's sessions."""
    for week in lake.partitions("raw_sessions"):
        yield from lake.read("raw_sessions", week, Session)


def judge_all(
    home: Path, url: str, sessions: list[Session], rubrics: list[Rubric], concurrency: int
) -> tuple[list[RubricEvaluation], Asked]:
    """Judge as the graph does."""
    model = LanguageModel(
        "openai/bench", api_key="k", base_url=url, concurrency=concurrency,
        cache=Cache(home / "answers.sqlite"),
    )  # fmt: skip
    door = Asked(model)
    judge = ModelRubricJudge("openai/bench", door.ask, secret=b"bench")
    return list(evaluate_rubrics(sessions, rubrics, judge, workers=concurrency)), door


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--rubrics", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--lake", default="")
    parser.add_argument("--serve", action="store_true")
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.latency)
    rubrics = [rubric(n, name=f"Rubric {n}") for n in range(1, asked.rubrics + 1)]
    sessions = list(made(asked.sessions))
    if asked.lake:
        sessions = list(islice(of_lake(Lake(asked.lake)), asked.sessions))
    server = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "--serve", "--latency", str(asked.latency)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            judge_all(Path(folder), url, list(made(1)), rubrics[:1], 1)
            home = Path(folder, "home")
            home.mkdir()
            start, used = time.perf_counter(), time.process_time()
            rows, door = judge_all(home, url, sessions, rubrics, asked.concurrency)
            took, burnt = time.perf_counter() - start, time.process_time() - used
            assert all(row.status == "ok" for row in rows), rows[0].failure
            ideal = len(rows) * asked.latency / asked.concurrency
            print(f"{len(sessions)} sessions by {len(rubrics)} rubrics, {len(rows)} calls at "
                  f"{asked.concurrency}: {took:.1f} s, ideal {ideal:.1f} s, ratio "
                  f"{took / ideal:.3f}; {burnt / len(rows) * 1000:.1f} ms CPU a call")  # fmt: skip
            every, long = door.cached_share()
            print(f"input tokens after a session's first call out of the prompt cache: {every:.1%}"
                  f"; of sessions that share {LEAST} tokens: {long:.1%}")  # fmt: skip
            start = time.perf_counter()
            again, second = judge_all(home, url, sessions, rubrics, asked.concurrency)
            assert again == rows
            print(f"nothing changed, rows lost: {second.model.meter.spent.sent} calls, "
                  f"{time.perf_counter() - start:.1f} s")  # fmt: skip
    finally:
        server.kill()
        server.wait()


def serve(latency: float) -> None:
    """Serve until ended."""
    usage = {"prompt_tokens": 4_000, "completion_tokens": 20, "total_tokens": 4_020}
    with OpenAIServer(lambda call: Reply(ANSWER, latency=latency, usage=usage)) as server:
        server.keep_calls = False
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
