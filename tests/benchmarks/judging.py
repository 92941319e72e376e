"""What judging costs against a slow server, with the judges and with rubrics, and again.

``python -m tests.benchmarks.judging [--calls 1000] [--concurrency 64] [--latency 2]
[--rubrics 8]``
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from debrief.judging.evaluation import evaluate_week
from debrief.judging.model import JudgeEvaluation, load_judges
from debrief.models.answers import Answer
from debrief.models.language_model import LanguageModel
from debrief.rubrics.judging import ModelRubricJudge, evaluate_rubrics
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.sessions.model import Message, Session, ToolCall, Turn
from debrief.state.store import State
from debrief.tokens import count_tokens
from tests.rubrics import scenario

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
JUDGES = Path(__file__).parents[2] / "judges"
ANSWER = "SCORE: 4\nREASONING: Turn 1 names the file and the result that is expected of it."
LEAST, BLOCK = 1_024, 128
"""Tokens of the shortest prefix that a provider's prompt cache serves, and of its steps."""


def session_of(number: int) -> Session:
    """Return a session with four edits, about 6 kB of changes."""
    patch = "@@ -1,3 +1,43 @@\n import os\n" + "".join(
        f"+def helper_{number}_{line}(): return {line}\n" for line in range(40)
    )
    calls = tuple(
        ToolCall(
            id=f"c{at}", name="Edit", input="{}", result="done", status="ok",
            path=f"/home/ada/shop/module_{at}.py", patch=patch, added=40,
        )
        for at in range(4)
    )  # fmt: skip
    answer = Message(id="m1", model="m", text="Done.", calls=calls)
    prompt = f"Add helpers {number} to the shop. " + "Keep it short. " * 40
    return Session(
        id=f"s{number}", source="claude-code", tool="claude-code", task="shop",
        cwd="/home/ada/shop", started=START, ended=START, digest=f"digest {number}",
        turns=(Turn(number=1, prompt=prompt, messages=(answer,)),),
    )  # fmt: skip


def cpu() -> float:
    """Return the seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def judge_all(
    home: Path,
    url: str,
    sessions: int | range,
    concurrency: int,
    previous: Iterable[JudgeEvaluation] = (),
    **settings: str,
) -> list[JudgeEvaluation]:
    """Judge so many sessions by both of the project's judges, as the graph does."""
    from debrief.evaluators import make_evaluators
    from debrief.settings import load_settings

    environment = {
        "DEBRIEF_HOME": str(home),
        "DEBRIEF_MODEL_BASE_URL": url,
        "DEBRIEF_CONCURRENCY": str(concurrency),
        "DEBRIEF_JUDGES": str(JUDGES),
        **settings,
    }
    numbers = range(sessions) if isinstance(sessions, int) else sessions
    evaluators = make_evaluators(load_settings(environment), offline=False, model="openai/bench")
    rows = evaluate_week(
        (session_of(number) for number in numbers),
        evaluators.judges,
        evaluators.change_judge,
        evaluators.eval_fingerprint,
        previous,
        concurrency=evaluators.concurrency,
    )
    return list(rows)


class Recorded:
    """A model that records each prompt, and when it was asked and answered."""

    def __init__(self, home: Path, url: str, concurrency: int) -> None:
        cache = State(home / "answers.sqlite")
        self.model = LanguageModel(
            "openai/bench", api_key="k", base_url=url, concurrency=concurrency, cache=cache
        )
        self.calls: list[tuple[float, float, str]] = []
        self._lock = threading.Lock()

    def ask(self, prompt: str) -> Answer:
        """Ask the model."""
        start = time.perf_counter()
        answer = self.model.ask(prompt)
        with self._lock:
            self.calls.append((start, time.perf_counter(), prompt))
        return answer

    def cached_share(self) -> float:
        """Return the share of input tokens that a provider's prompt cache serves.

        Of a session's calls after its first: a prefix of at least 1,024 tokens of a prompt that
        was answered before.
        """
        by_session: dict[str, list[tuple[float, float, str]]] = {}
        for call in sorted(self.calls):
            by_session.setdefault(call[2].split("=== Chat Session", 1)[1][:80], []).append(call)
        inputs = cached = 0
        for calls in by_session.values():
            for number, (start, _, prompt) in enumerate(calls[1:], 1):
                seen = [one for _, end, one in calls[:number] if end <= start]
                prefixes = (os.path.commonprefix([prompt, one]) for one in seen)  # noqa: RUF071
                size = count_tokens(max(prefixes, key=len, default=""))
                inputs += count_tokens(prompt)
                cached += size // BLOCK * BLOCK if size >= LEAST else 0
        return cached / inputs


def judge_rubrics(
    home: Path, url: str, sessions: list[Session], rubrics: list[Rubric], concurrency: int
) -> tuple[list[RubricEvaluation], Recorded]:
    """Judge sessions by rubrics, as the graph does."""
    model = Recorded(home, url, concurrency)
    judge = ModelRubricJudge("openai/bench", model.ask, secret=b"bench")
    return list(evaluate_rubrics(sessions, rubrics, judge, workers=concurrency)), model


@contextmanager
def serve(latency: float, *options: str) -> Iterator[str]:
    """Run a model's server in a process of its own; yield its URL."""
    command = [sys.executable, "-m", "tests.models.openai_server", "--latency", str(latency)]
    server = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--rubrics", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serve(options.latency) as url:
        sessions = options.calls // len(load_judges(JUDGES))
        measure_judges(Path(folder), url, sessions, options.concurrency, options.latency)
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(options.latency, "--content", ANSWER) as url,
    ):
        measure_rubrics(Path(folder), url, options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


def measure_judges(folder: Path, url: str, sessions: int, concurrency: int, latency: float) -> None:
    """Print what the judges cost, first and with a warm cache."""
    start, used = time.monotonic(), cpu()
    first = judge_all(folder / "first", url, 1, 1)
    print(f"first call, imports included: {cpu() - used:.1f} CPU s "
          f"({time.monotonic() - start - len(first) * latency:.1f} s over the latency)")  # fmt: skip
    home = folder / "home"
    start, used = time.monotonic(), cpu()
    rows = judge_all(home, url, sessions, concurrency)
    took, burnt = time.monotonic() - start, cpu() - used
    assert all(row.status == "ok" for row in rows), rows[0].failure
    ideal = len(rows) * latency / concurrency
    print(f"{len(rows)} calls at {concurrency}: {took:.1f} s, ideal {ideal:.1f} s, "
          f"ratio {took / ideal:.3f}; {burnt / len(rows) * 1000:.2f} ms CPU a call")  # fmt: skip
    start, used = time.monotonic(), cpu()
    assert judge_all(home, url, sessions, 1) == rows
    print(f"warm cache: {(time.monotonic() - start) / len(rows) * 1000:.2f} ms, "
          f"{(cpu() - used) / len(rows) * 1000:.2f} ms CPU a judgement")  # fmt: skip


def measure_rubrics(folder: Path, url: str, options: argparse.Namespace) -> None:
    """Print what judging sessions of some 4,000 tokens by rubrics costs, first and again."""
    rubrics = [scenario.rubric(n, name=f"Rubric {n}") for n in range(1, options.rubrics + 1)]
    reply = " ".join(f"step {n} renames the helper of the billing module" for n in range(500))
    count = max(1, options.calls // options.rubrics)
    sessions = [scenario.session(n, replies=(reply, "Done.")) for n in range(count)]
    (folder / "warm").mkdir()
    judge_rubrics(folder / "warm", url, sessions[:1], rubrics[:1], 1)
    start, used = time.monotonic(), cpu()
    rows, model = judge_rubrics(folder, url, sessions, rubrics, options.concurrency)
    took, burnt = time.monotonic() - start, cpu() - used
    assert all(row.status == "ok" for row in rows), rows[0].failure
    ideal = len(rows) * options.latency / options.concurrency
    print(f"{len(sessions)} sessions by {len(rubrics)} rubrics: {took:.1f} s, ideal {ideal:.1f} s, "
          f"ratio {took / ideal:.3f}; {burnt / len(rows) * 1000:.1f} ms CPU a call")  # fmt: skip
    print("input tokens after a session's first call out of a prompt cache: "
          f"{model.cached_share():.1%}")  # fmt: skip
    start = time.monotonic()
    again, model = judge_rubrics(folder, url, sessions, rubrics, options.concurrency)
    assert again == rows
    print(f"nothing changed: {model.model.meter.spent.sent} calls, "
          f"{time.monotonic() - start:.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
