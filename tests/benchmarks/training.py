"""How fast training sets are chosen, split, written and published, and in how much memory.

Run: python -m tests.benchmarks.training [--sessions 2000] [--kilobytes 100]

Sessions are made up, of about the size of real ones; each step runs in a process of its own, so
that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.kinship import Kinship, read_kinship, traits_of
from debrief.training.publishing.forms import FORMS
from debrief.training.publishing.publish import ExportOptions, publish
from debrief.training.selection import (
    Members,
    TrainingOptions,
    candidate_of,
    observed_pairs,
    select,
)
from debrief.training.store import store_training_set
from tests.training.lakes import lake_of
from tests.training.scenario import FINGERPRINT, MONDAY, call, says, session, turn

WORDS = [
    f"{a}{b}"
    for a in ["retry", "queue", "index", "parse", "batch", "cache", "shard", "lease"]
    for b in range(600)
]
ROUNDS = 5
REPOSITORIES = [f"repo{number}" for number in range(40)]


def made_up(number: int, kilobytes: int) -> Session:
    """Return a session: a tenth of it words of the person and the model, the rest results."""
    draw = random.Random(number)

    def text(words: int) -> str:
        lines = (draw.choices(WORDS, k=min(8, words - n)) for n in range(0, words, 8))
        return "\n".join(" ".join(line) for line in lines)

    steps = max(1, kilobytes // 10)
    messages = [
        says(
            text(40),
            call("Bash", {"command": f"rg {text(6)}"}, text(500)),
            call("Read", {"file_path": f"/src/{text(1)}.py"}, text(600)),
            id=f"msg_{number}_{step}",
        )
        for step in range(steps)
    ]
    turns = [
        turn(text(60), *messages[:-1], says(text(60))),
        turn(text(30), says(text(50)), number=2),
    ]
    if number % 50 == 49:
        turns = list(made_up(number - 1, kilobytes).turns)
    return session(
        f"s{number:06d}",
        *turns,
        started=MONDAY + timedelta(minutes=7 * number),
        repository=draw.choice(REPOSITORIES),
        lines_added=draw.randrange(200),
        digest=f"{number:064x}",
    )


def fill(folder: str, count: int, kilobytes: int) -> str:
    """Fill a lake with sessions that were scored well and badly."""
    sessions = [made_up(number, kilobytes) for number in range(count)]
    lake_of(Path(folder), sessions, {one.id: random.Random(one.id).random() for one in sessions})
    return f"{count} sessions"


def choose(folder: str) -> str:
    """Split and deduplicate the lake's sessions, nothing known of them before."""
    lake = Lake(folder)
    started = time.process_time()
    reading = 0.0
    traits = []
    for week in lake.partitions("raw_sessions"):
        found = lake.read("raw_sessions", week, Session)
        while True:
            before = time.process_time()
            one = next(found, None)
            reading += time.process_time() - before
            if one is None:
                break
            traits.append(traits_of(one))
    rows = {
        row.session_id: row
        for week in lake.partitions("session_metadata")
        for row in lake.read("session_metadata", week, SessionMetadataRow)
    }
    scored = {
        row.session_id: row
        for week in lake.partitions("session_scores")
        for row in lake.read("session_scores", week, SessionScores)
    }
    outcome = select(
        (candidate_of(t, rows[t.session_id], scored[t.session_id]) for t in traits),
        TrainingOptions(),
        Kinship(traits),
    )
    took = time.process_time() - started
    return (
        f"{len(traits)} sessions, {len(outcome.left_out)} left out: {took:.1f} CPU s, "
        f"{reading:.1f} of them reading"
    )


def members_of(lake: Lake) -> Members:
    """Return the members of the one pair."""
    return observed_pairs(lake)["checkout", FINGERPRINT]


def store(folder: str) -> str:
    """Make the training set."""
    lake = Lake(folder)
    members = members_of(lake)
    kinship = read_kinship(lake)
    started = time.perf_counter()
    stored = store_training_set(
        lake, "checkout", FINGERPRINT, members, TrainingOptions(), kinship=kinship
    )
    took = time.perf_counter() - started
    size = Path(stored.path).stat().st_size
    return f"{stored.row.samples} samples, {size / 1e6:.0f} MB in {took:.1f} s, {size / 1e6 / took:.0f} MB/s"


def index(folder: str) -> str:
    """Read the traits of all sessions."""
    return f"{len(read_kinship(Lake(folder)).traits)} sessions"


def again(folder: str) -> str:
    """Make the training set again after one session's scores have changed."""
    lake = Lake(folder)
    week = lake.partitions("session_scores")[0]
    rows = list(lake.read("session_scores", week, SessionScores))
    from msgspec.structs import replace

    quality = (rows[0].overall_quality or 0.0) + 0.01
    rows[0] = replace(rows[0], overall_quality=quality)
    lake.write("session_scores", week, rows, SessionScores)
    return store(folder)


def exported(form: str) -> Callable[[str], str]:
    """Return a step that exports the training set in a form."""

    def step(folder: str) -> str:
        rates = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(dir=folder) as target:
                started = time.process_time()
                sets = publish(Lake(folder), target, ExportOptions(form=form)).sets
                took = time.process_time() - started
                rates.append(sum(made.size for made in sets) / 1e6 / took)
        return f"{statistics.median(rates):.0f} MB a second of CPU; asked for: 250"

    return step


def run(name: str, step: Callable[[str], str], folder: str) -> None:
    """Run a step in a process of its own and print what it says."""
    ours, theirs = multiprocessing.Pipe()

    def work() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told = step(folder)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        theirs.send(f"{told}; peak {peak / 1024:.0f} MB ({(peak - before) / 1024:+.0f})")

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    print(f"{name:22} {ours.recv() if ours.poll() else 'failed'}", flush=True)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--kilobytes", type=int, default=100)
    parser.add_argument("--lake", default="", help="Kept and used again, when given.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.lake or scratch
        known = Path(folder, "made.json")
        wanted = {"sessions": given.sessions, "kilobytes": given.kilobytes}
        if not known.exists() or json.loads(known.read_text()) != wanted:
            run("lake", lambda path: fill(path, given.sessions, given.kilobytes), folder)
            known.write_text(json.dumps(wanted))
        run("split, deduplicate", choose, folder)
        run("index", index, folder)
        run("training set", store, folder)
        run("one changed", again, folder)
        for form in FORMS:
            run(f"export {form}", exported(form), folder)


if __name__ == "__main__":
    main()
