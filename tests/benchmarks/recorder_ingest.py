"""How fast records come in: run as ``python -m tests.benchmarks.recorder_ingest``.

One processor does it all, the database's work included, and every commit is on disk: bodies of
47 kB are checked and stored in groups of four, as the service stores what comes over a few
connections, by two threads, so that one waits for the disk while the other one works.
Prints records a second by the clock; and by processor time, ours and the server's, which is what
the clock would show on a machine with nothing else to do and a disk that keeps up.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from debrief.recorder.checks import ReadyRule
from debrief.recorder.contracts import NewTask, StoredSession
from debrief.recorder.ingest import Ingest
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage.groups import Arrival
from debrief.recorder.storage.store import RecordStore
from debrief.redaction import Redactor
from tests.benchmarks.uploads import uploads

ROUNDS, RECORDS, THREADS, GROUP = 5, 300, 2, 4


def server_seconds(folder: Path) -> float:
    """Return the processor time that a server's processes have used."""
    lines = (folder / "data" / "postmaster.pid").read_text().splitlines()
    server = psutil.Process(int(lines[0]))
    used = [process.cpu_times() for process in (server, *server.children())]
    return sum(times.user + times.system for times in used)


def batched(bodies: list[bytes]) -> list[list[bytes]]:
    """Return bodies in groups."""
    return [bodies[start : start + GROUP] for start in range(0, len(bodies), GROUP)]


def main() -> None:
    """Print the figures."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ingest = Ingest(Redactor(bytes(32)), ReadyRule())
    with tempfile.TemporaryDirectory() as name, EmbeddedPostgres(Path(name) / "pg") as server:
        folder = Path(name) / "pg"
        store = RecordStore(server.url)
        store.migrate()
        store.add_task(NewTask(id="cart", name="Cart"))
        secret = store.add_token("benchmark", ["write"])[1]
        bodies = list(uploads(ROUNDS * RECORDS))

        def store_all(group: list[bytes]) -> None:
            outcomes = store.add_sessions([Arrival(ingest.check(body), secret) for body in group])
            assert all(isinstance(outcome, StoredSession) for outcome in outcomes)

        print(f"{len(bodies)} bodies of {statistics.mean(map(len, bodies)):,.0f} bytes")
        clock, ours, theirs, checks = [], [], [], []
        with ThreadPoolExecutor(THREADS) as threads:
            for turn in range(ROUNDS):
                chosen = bodies[turn * RECORDS : (turn + 1) * RECORDS]
                used = time.process_time()
                for body in chosen:
                    ingest.check(body)
                checks.append(1000 * (time.process_time() - used) / RECORDS)
                began, used, served = (
                    time.perf_counter(),
                    time.process_time(),
                    server_seconds(folder),
                )
                list(threads.map(store_all, batched(chosen)))
                clock.append(RECORDS / (time.perf_counter() - began))
                ours.append(1000 * (time.process_time() - used) / RECORDS)
                theirs.append(1000 * (server_seconds(folder) - served) / RECORDS)
        assert store.count() == len(bodies)
        store.close()
    print(f"by the clock: {max(clock):,.0f} records a second at best, {min(clock):,.0f} at worst")
    busy = min(a + b for a, b in zip(ours, theirs, strict=True))
    print(f"by processor time: {1000 / busy:,.0f} records a second")
    print(
        f"a record: {min(ours):.2f} ms here, of which {min(checks):.2f} ms are checks; "
        f"{min(theirs):.2f} ms in the server"
    )


if __name__ == "__main__":
    main()
