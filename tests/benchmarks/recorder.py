"""The recorder's bars: ``python -m tests.benchmarks.recorder uploads|exports|cases``.

``uploads``: records of 47 kB a second into ``debrief serve``, which shares one processor with its
Postgres, every commit on disk; by the clock and by the processor time of both. ``exports``: rows
a second out of ``RecordStore.export`` in every form, against ``psql`` and COPY. ``cases``: schemathesis makes
requests of all kinds from the API's own document; fails when an answer was a server error or broke
the document.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from uuid import UUID

import httpx
import psutil
from msgspec import Struct

from debrief.recorder.checks import ReadyRule
from debrief.recorder.encoding import decode, encode_record, upload_body
from debrief.recorder.exporting import FORMS, lines_of
from debrief.recorder.postgres import DATABASE, EmbeddedPostgres, programs_folder
from debrief.recorder.service.ingest import Ingest
from debrief.recorder.storage.rows import NewTask, Upload
from debrief.recorder.storage.store import RecordStore
from debrief.redaction import Redactor
from tests.benchmarks.measuring import DEBRIEF, options, seconds, show
from tests.machine import clean_environment
from tests.postgres import execute
from tests.recorder.records import build
from tests.waiting import wait_until

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,negative_data_rejection,"
    "missing_required_header,unsupported_method,allow_header_conformance,ignored_auth"
)
"""All but those that take for granted that whatever fits the schema is accepted: a record that
fits it may still contradict itself."""
SETTINGS = """
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "429"]
"""
"""A body that is too long is refused as such, whatever else is wrong with it."""
COPIES = """
INSERT INTO sessions (id, task_id, repo_name, base_ref, created_at, record_text, size, sha256,
    verified, files, validated, redactions)
SELECT gen_random_uuid(), task_id, repo_name, base_ref, created_at, record_text, size, sha256,
    verified, files, validated, redactions
FROM sessions, generate_series(2, {})
"""


def bodies(size: int = 47_000) -> Iterator[bytes]:
    """Yield bodies of ``POST /sessions`` with records of about ``size`` bytes, all different."""
    draw = random.Random(1)

    def code(length: int) -> str:
        numbers = (draw.randrange(10**6) for _ in range(length // 40))
        return "".join(f"const total{n} = cart.get({n % 97}) ?? {n};\n" for n in numbers)

    while True:
        before = {f"src/part{part}.ts": code(size // 4) for part in range(2)}
        after = {path: text.replace("7) ?? ", "8) ?? ") for path, text in before.items()}
        id = UUID(int=draw.getrandbits(128), version=4)
        record = build(before, {**after, "src/new.ts": code(size // 4)}, session_id=id)
        yield upload_body(encode_record(record), record.meta)


class Served(Struct, frozen=True):
    """A server process with its log, and a client that may write."""

    client: httpx.Client
    token: str
    log: Path
    pid: int


@contextmanager
def served(folder: Path, *more: str, durable: bool = False) -> Iterator[Served]:
    """Run ``debrief serve`` on a database of its own, with a task in it."""
    log, output, token = folder / "log.txt", folder / "output.txt", folder / "token"
    with EmbeddedPostgres(folder / "postgres", durable=durable) as postgres:
        command = [*DEBRIEF, "serve", "--port", "0", "--rate", "100000", "--token-file", str(token)]
        with log.open("w") as errors, output.open("w") as shown:
            process = subprocess.Popen(
                [*command, "--database", postgres.url, *more],
                stdout=shown,
                stderr=errors,
                env=clean_environment(DEBRIEF_HOME=str(folder / "home")),
            )
        try:
            wait_until(lambda: process.poll() is not None or "health:" in output.read_text())
            url = next(word for word in output.read_text().split() if word.startswith("http://"))
            key = token.read_text().strip()
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            with httpx.Client(base_url=url, headers=headers, timeout=60) as client:
                client.post("/tasks", content=b'{"id":"cart","name":"Cart"}').raise_for_status()
                yield Served(client, key, log, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def uploads(folder: Path, chosen: Namespace) -> int:
    """Upload rounds of records over a few connections and over more, and print the figures."""
    processors = os.sched_getaffinity(0)
    first = min(processors)
    os.sched_setaffinity(0, {first})
    with served(folder, "--log-level", "info", durable=True) as server:
        os.sched_setaffinity(0, processors - {first} or {first})
        database = int((folder / "postgres" / "data" / "postmaster.pid").read_text().split()[0])
        made = bodies()
        for clients in (4, 16):
            clock, busy = [], []
            for _ in range(chosen.rounds):
                sent = list(islice(made, chosen.records))
                used = _used(server.pid, database)
                clock.append(len(sent) / seconds(partial(_send, server, clients, sent)))
                busy.append(len(sent) / (_used(server.pid, database) - used))
            name = f"records a second over {clients} connections (≥ 100)"
            show(f"{name}, by the clock", f"{min(clock):,.0f} to {max(clock):,.0f}")
            show(f"{name}, by processor", f"{min(busy):,.0f} to {max(busy):,.0f}")
    return 0


def _send(server: Served, clients: int, sent: list[bytes]) -> None:
    with ThreadPoolExecutor(clients) as threads:
        for answer in threads.map(lambda body: server.client.post("/sessions", content=body), sent):
            answer.raise_for_status()


def _used(service: int, database: int) -> float:
    """Return the processor time of both; the database's with that of connections that ended."""
    postgres = psutil.Process(database)
    family = [psutil.Process(service), postgres, *postgres.children(recursive=True)]
    times = [process.cpu_times() for process in family]
    ended = times[1].children_user + times[1].children_system
    return float(ended + sum(time_.user + time_.system for time_ in times))


def exports(folder: Path, chosen: Namespace) -> int:
    """Export records and copy their column, in turns, and print the ratio."""
    ingest = Ingest(Redactor(bytes(32)), ReadyRule())
    with EmbeddedPostgres(folder / "postgres") as server, RecordStore(server.url) as store:
        store.migrate()
        store.add_task(NewTask(id="cart", name="Cart"))
        for body in islice(bodies(), chosen.records):
            store.add_session(ingest.check(decode(Upload, body, "body")))
        execute(server, COPIES.format(chosen.copies), DATABASE)
        copy = [str(programs_folder() / "psql"), server.url, "-X", "-c"]
        copy.append("COPY (SELECT record_text FROM sessions) TO STDOUT")
        for form in FORMS:
            ratios, rates, sizes = [], [], [0]
            for _ in range(chosen.rounds):
                plain = seconds(lambda: subprocess.run(copy, stdout=subprocess.DEVNULL, check=True))
                began = time.perf_counter()
                sizes = [len(line.line) for line in lines_of(form, store.export())]
                took = time.perf_counter() - began
                ratios.append(plain / took)
                rates.append(len(sizes) / took)
            size = f"{len(sizes):,} lines, {sum(sizes) / 1e6:,.0f} MB"
            rate = f"{min(rates):,.0f} to {max(rates):,.0f} a second"
            times = f"{min(ratios):.2f} to {max(ratios):.2f} times psql (≥ 0.4)"
            show(f"{form}: {size}", f"{rate}, {times}")
    show("peak memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


def cases(folder: Path, chosen: Namespace) -> int:
    """Make the cases and print the figures; return 1 if something was wrong."""
    with served(folder, "--log-level", "debug") as server:
        server.client.post("/sessions", content=next(bodies())).raise_for_status()
        paths = server.client.get("/openapi.json").json()["paths"]
        # A route without values has few different ones, for which the others make up.
        share = chosen.cases * 5 // (sum(map(len, paths.values())) * 4) + 1
        (folder / "schemathesis.toml").write_text(SETTINGS)
        command = f"-m schemathesis.cli run {server.client.base_url}/openapi.json -n {share}"
        command += f" --phases examples,coverage,fuzzing --checks {CHECKS} --seed {chosen.seed}"
        command += " --continue-on-failure --suppress-health-check all --workers 2"
        command += " --request-timeout 60 --warnings off"
        header = ["-H", f"Authorization: Bearer {server.token}"]
        done = subprocess.run([sys.executable, *command.split(), *header], cwd=folder, check=False)
    answered = re.findall(r'HTTP/1\.1" (\d{3})', server.log.read_text())
    faults = sum(status >= "500" for status in answered)
    show("requests", len(answered))
    show("by status", dict(sorted(Counter(answered).items())))
    show("server errors", faults)
    show("schemathesis", "violations, see above" if done.returncode else "no violation")
    return int(bool(done.returncode or faults or len(answered) < chosen.cases))


def main() -> None:
    """Print the figures of one of the bars."""
    chosen = options(__doc__, "bar", records=300, rounds=5, copies=18, cases=10_000, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        bars = {"uploads": uploads, "exports": exports, "cases": cases}
        sys.exit(bars[chosen.bar](Path(folder), chosen))


if __name__ == "__main__":
    main()
