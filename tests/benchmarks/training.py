"""How fast training sets are split, written and published: ``python -m tests.benchmarks.training``.

Sessions are made up, of about the size of real ones; each step runs in a process of its own, so
that its peak of memory is its own.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.training.kinship import Kinship, traits_of
from debrief.training.options import TrainingOptions
from debrief.training.publishing.forms import FORMS
from debrief.training.publishing.publish import ExportOptions, publish
from debrief.training.selection import candidate_of, select
from tests.benchmarks.measuring import options, show
from tests.training.lakes import lake_of, stored
from tests.training.scenario import MONDAY, call, metadata, says, scores, session, turn

WORDS = [
    f"{a}{b}"
    for a in ["retry", "queue", "index", "parse", "batch", "cache", "shard", "lease"]
    for b in range(600)
]
ROUNDS = 5


def made_up(number: int, kilobytes: int) -> Session:
    """Return a session: a tenth of it words of the person and the model, the rest results. Two
    each began with the same words."""
    opening = " ".join(random.Random(f"opening {number // 2}").choices(WORDS, k=60))
    draw = random.Random(number)

    def text(words: int) -> str:
        return " ".join(draw.choices(WORDS, k=words))

    messages = [
        says(
            text(40),
            call("Bash", {"command": f"rg {text(6)}"}, text(500)),
            call("Read", {"file_path": f"/src/{text(1)}.py"}, text(600)),
            id=f"msg_{number}_{step}",
        )
        for step in range(max(1, kilobytes // 10))
    ]
    turns = (
        turn(opening, *messages[:-1], says(text(60))),
        turn(text(30), says(text(50)), number=2),
    )
    return session(
        f"s{number:06d}",
        *(made_up(number - 1, kilobytes).turns if number % 50 == 49 else turns),
        started=MONDAY + timedelta(minutes=7 * number),
        repository=f"repo{number // 2 % 40}",
        lines_added=draw.randrange(200),
        digest=f"{number:064x}",
    )


def fill(count: int, kilobytes: int, folder: str) -> str:
    """Fill a lake with sessions that were scored well and badly."""
    sessions = [made_up(number, kilobytes) for number in range(count)]
    lake_of(Path(folder), sessions, {one.id: random.Random(one.id).random() for one in sessions})
    return f"{count} sessions"


def choose(folder: str) -> str:
    """Split and deduplicate the lake's sessions, nothing known of them before."""
    lake = Lake(folder)
    started = time.process_time()
    traits, candidates = [], []
    for week in lake.partitions("raw_sessions"):
        for row in lake.read("raw_sessions", week, Session):
            traits.append(traits_of(row))
            candidates.append(candidate_of(traits[-1], metadata(row), scores(row)))
    outcome = select(candidates, TrainingOptions(), Kinship(traits))
    took = time.process_time() - started
    return f"{len(traits)} sessions, {len(outcome.left_out)} left out: {took:.1f} CPU s"


def store(folder: str) -> str:
    """Make the training set."""
    started = time.perf_counter()
    made = stored(Lake(folder))
    took = time.perf_counter() - started
    size = Path(made.path).stat().st_size / 1e6
    return f"{made.row.samples} samples, {size:.0f} MB in {took:.1f} s, {size / took:.0f} MB/s"


def exported(form: str, folder: str) -> str:
    """Export the training set in a form."""
    rates = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=folder) as target:
            started = time.process_time()
            sets = publish(Lake(folder), target, ExportOptions(form=form)).sets
            took = time.process_time() - started
            rates.append(sum(made.size for made in sets) / 1e6 / took)
    return f"{statistics.median(rates):.0f} MB a second of CPU (≥ 250)"


def run(name: str, step: Callable[[str], str], folder: str) -> None:
    """Run a step in a process of its own and print what it says."""
    ours, theirs = multiprocessing.Pipe()

    def work() -> None:
        told = step(folder)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        theirs.send(f"{told}; peak {peak / 1024:.0f} MB")

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    show(name, ours.recv() if ours.poll() else "failed")


def main() -> None:
    """Measure."""
    given = options(__doc__, sessions=2_000, kilobytes=100)
    with tempfile.TemporaryDirectory() as folder:
        run("lake", partial(fill, given.sessions, given.kilobytes), folder)
        run("split, deduplicate", choose, folder)
        run("training set", store, folder)
        for form in FORMS:
            run(f"export {form}", partial(exported, form), folder)


if __name__ == "__main__":
    main()
