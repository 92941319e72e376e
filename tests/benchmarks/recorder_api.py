"""How fast the API takes records: run as ``python -m tests.benchmarks.recorder_api``.

``debrief serve`` and its Postgres share one processor, every commit is on disk, and a client on
the other one uploads records of 47 kB, over a few connections and over more. Prints records a second by the
clock, and by the processor time of server and database, which is what one processor of an idle
machine would give.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from tests.benchmarks.api_cases import served
from tests.benchmarks.uploads import uploads

ROUNDS, RECORDS = 5, 300
CLIENTS = (4, 16)


def main() -> None:
    """Print the figures."""
    bodies = uploads(len(CLIENTS) * ROUNDS * RECORDS)
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
                for clients in CLIENTS:
                    rounds = [list(islice(bodies, RECORDS)) for _ in range(ROUNDS)]
                    print(f"over {clients} connections")
                    measure(client, clients, rounds, lambda: _seconds(folder, server.pid))
                listed = client.get("/sessions", params={"limit": 1}).json()
                assert listed["more"]


def measure(
    client: httpx.Client,
    clients: int,
    rounds: list[list[bytes]],
    seconds: Callable[[], tuple[float, float]],
) -> None:
    """Upload rounds of records over so many connections, and print the figures."""

    def send(body: bytes) -> None:
        client.post("/sessions", content=body).raise_for_status()

    clock, busy = [], []
    with ThreadPoolExecutor(clients) as threads:
        for bodies in rounds:
            began, used = time.perf_counter(), seconds()
            list(threads.map(send, bodies))
            clock.append(len(bodies) / (time.perf_counter() - began))
            service, database = (
                1000 * (now - then) / len(bodies) for now, then in zip(seconds(), used, strict=True)
            )
            busy.append((service + database, service, database))
    size = statistics.mean(len(body) for bodies in rounds for body in bodies)
    print(f"  {sum(map(len, rounds))} bodies of {size:,.0f} bytes")
    print(f"  by the clock: {max(clock):,.0f} records a second at best, {min(clock):,.0f} at worst")
    best, worst = min(busy), max(busy)
    print(f"  by processor time: {1000 / best[0]:,.0f} at best, {1000 / worst[0]:,.0f} at worst")
    print(f"  a record, at best: {best[1]:.2f} ms in the service, {best[2]:.2f} ms in the database")


def _postgres(folder: Path) -> list[psutil.Process]:
    lines = (folder / "postgres" / "data" / "postmaster.pid").read_text().splitlines()
    main_process = psutil.Process(int(lines[0]))
    return [main_process, *main_process.children(recursive=True)]


def _seconds(folder: Path, pid: int) -> tuple[float, float]:
    """Return the processor time that the service and the database have used.

    The database's includes that of connections that have ended, which Postgres has waited for.
    """
    service = psutil.Process(pid).cpu_times()
    main_process, *others = [process.cpu_times() for process in _postgres(folder)]
    ended = main_process.children_user + main_process.children_system
    database = ended + sum(one.user + one.system for one in (main_process, *others))
    return service.user + service.system, database


if __name__ == "__main__":
    main()
