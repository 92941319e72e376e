"""Ten thousand cases made from the API's own document, against a server process.

Run with ``python -m tests.benchmarks.api_cases``. It starts Postgres and ``debrief serve`` in a
temporary folder, lets schemathesis make requests of all kinds, right and wrong, and prints what
the server's log tells of them: how many were answered, how, and how long they took. Exit code 1
when an answer was a server error or broke the document.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import httpx
from msgspec import Struct

from debrief.recorder.client import upload_body
from debrief.recorder.encoding import encode_record
from debrief.recorder.postgres import EmbeddedPostgres
from tests.recorder.records import build

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
KNOWN = UUID("11111111-2222-4333-8444-555555555555")
"""A session that is there, so that its routes are tried with one."""


class Served(Struct, frozen=True):
    """A server process."""

    url: str
    token: str
    log: Path
    pid: int


@contextmanager
def served(folder: Path, *options: str, durable: bool = False) -> Iterator[Served]:
    """Run ``debrief serve`` on a database of its own, with a task and a session in it."""
    with EmbeddedPostgres(folder / "postgres", durable=durable) as postgres:
        log, told, token = folder / "log.jsonl", folder / "told.txt", folder / "token"
        with log.open("w") as errors, told.open("w") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pipelines.command", "serve", "--port", "0"),
                    *("--database", postgres.url, "--token-file", str(token), *options),
                ],
                stdout=output,
                stderr=errors,
                env={**os.environ, "DEBRIEF_HOME": str(folder / "home")},
            )
        try:
            yield Served(_url(process, told, log), token.read_text().strip(), log, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _url(process: subprocess.Popen[bytes], told: Path, log: Path) -> str:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        words = told.read_text().split()
        found = [word for word in words if word.startswith("http://")]
        if "health:" in words and found:
            return found[0]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start: {log.read_text()}")


def prepare(server: Served) -> None:
    """Make a task and a session that the cases can meet."""
    record = build(session_id=KNOWN)
    with httpx.Client(
        base_url=server.url,
        headers={"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    ) as client:
        client.post("/tasks", content=b'{"id":"cart","name":"Cart"}').raise_for_status()
        body = upload_body(encode_record(record), record.meta)
        client.post("/sessions", content=body).raise_for_status()


def requests_of(log: Path) -> list[dict[str, object]]:
    """Return the requests that a server's log tells of."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in lines if line["event"] == "request"]


def main() -> None:
    """Make the cases and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="at least, about")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder, "--rate", "100000", "--log-level", "debug") as server:
            prepare(server)
            code = run(server, folder, chosen.cases, chosen.seed)
        requests = requests_of(folder / "log.jsonl")
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    statuses = Counter(str(line["status"]) for line in requests)
    faults = sum(count for status, count in statuses.items() if status.startswith("5"))
    times = sorted(float(str(line["ms"])) for line in requests)
    broken = [line for line in lines if line["event"] == "broken"]
    print(f"requests                 {len(requests):>8,}")
    for status, count in sorted(statuses.items()):
        print(f"  answered {status}           {count:>8,}")
    print(f"server errors            {faults + len(broken):>8,}")
    print(f"milliseconds, median     {times[len(times) // 2]:>8.1f}")
    print(f"milliseconds, 99 of 100  {times[len(times) * 99 // 100]:>8.1f}")
    print(f"schemathesis             {'no violation' if code == 0 else 'violations, see above'}")
    sys.exit(1 if code or faults or broken or len(requests) < chosen.cases else 0)


def run(server: Served, folder: Path, cases: int, seed: int) -> int:
    """Let schemathesis make about so many cases; return its exit code.

    A route without values has few different ones, for which the others make up.
    """
    operations = len(
        [
            method
            for path in httpx.get(f"{server.url}/openapi.json").json()["paths"].values()
            for method in path
        ]
    )
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"),
        *(
            "-H",
            f"Authorization: Bearer {server.token}",
            "-n",
            str(cases * 5 // (operations * 4) + 1),
        ),
        *("--phases", "examples,coverage,fuzzing", "--checks", CHECKS, "--seed", str(seed)),
        *("--continue-on-failure", "--suppress-health-check", "all", "--workers", "2"),
        *("--request-timeout", "60", "--warnings", "off"),
    ]
    (folder / "schemathesis.toml").write_text(SETTINGS)
    return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    main()
