"""How fast the API takes records: run as ``python -m tests.benchmarks.recorder_api``.

``debrief serve`` and its Postgres share one processor, every commit is on disk, and a client on
the other one uploads records of 47 kB over a few connections. Prints records a second by the
clock, and by the processor time of server and database, which is what one processor of an idle
machine would give.
"""

from __future__ import annotations

import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from tests.benchmarks.api_cases import served
from tests.benchmarks.uploads import uploads

ROUNDS, RECORDS, CLIENTS = 5, 300, 4


def main() -> None:
    """Print the figures."""
    bodies = list(uploads(ROUNDS * RECORDS))
    with TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder, "--rate", "100000", "--log-level", "info", durable=True) as server:
            processes = [psutil.Process(server.pid), *_postgres(folder)]
            if hasattr(os, "sched_setaffinity"):
                first, *others = sorted(os.sched_getaffinity(0))
                for process in processes:
                    for thread in process.threads():
                        os.sched_setaffinity(thread.id, {first})
                os.sched_setaffinity(0, set(others) or {first})
            headers = {
                "Authorization": f"Bearer {server.token}",
                "Content-Type": "application/json",
            }
            with httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
                client.post("/tasks", content=b'{"id":"cart","name":"Cart"}').raise_for_status()

                def send(body: bytes) -> None:
                    client.post("/sessions", content=body).raise_for_status()

                clock, busy, databases = [], [], []
                with ThreadPoolExecutor(CLIENTS) as threads:
                    for turn in range(ROUNDS):
                        chosen = bodies[turn * RECORDS : (turn + 1) * RECORDS]
                        began, used = time.perf_counter(), _seconds(folder, server.pid)
                        list(threads.map(send, chosen))
                        clock.append(RECORDS / (time.perf_counter() - began))
                        service, database = (
                            (now - then) / RECORDS
                            for now, then in zip(_seconds(folder, server.pid), used, strict=True)
                        )
                        busy.append(1 / (service + database))
                        databases.append(1000 * database)
                listed = client.get("/sessions", params={"limit": 1}).json()
                assert listed["more"]
    print(f"{len(bodies)} bodies of {statistics.mean(map(len, bodies)):,.0f} bytes")
    print(f"by the clock: {max(clock):,.0f} records a second at best, {min(clock):,.0f} at worst")
    print(f"by processor time: {max(busy):,.0f} at best, {min(busy):,.0f} at worst")
    best = busy.index(max(busy))
    print(
        f"a record, at best: {1000 / busy[best] - databases[best]:.2f} ms in the service, "
        f"{databases[best]:.2f} ms in the database"
    )


def _postgres(folder: Path) -> list[psutil.Process]:
    lines = (folder / "postgres" / "data" / "postmaster.pid").read_text().splitlines()
    main_process = psutil.Process(int(lines[0]))
    return [main_process, *main_process.children(recursive=True)]


def _seconds(folder: Path, pid: int) -> tuple[float, float]:
    """Return the processor time that the service and the database have used."""
    service = psutil.Process(pid).cpu_times()
    database = [process.cpu_times() for process in _postgres(folder)]
    return service.user + service.system, sum(one.user + one.system for one in database)


if __name__ == "__main__":
    main()
