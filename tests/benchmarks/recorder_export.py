"""How fast records go out: run as ``python -m tests.benchmarks.recorder_export``.

Reads 500 MB of records through ``RecordStore.export`` in a process of its own, and the same
column with ``psql`` and COPY, in turns. Prints the ratio of rows a second, and the most memory
that the export's process took.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg2

from debrief.recorder.checks import ReadyRule
from debrief.recorder.contracts import NewTask
from debrief.recorder.postgres import EmbeddedPostgres, programs_folder
from debrief.recorder.service.requests import Ingest
from debrief.recorder.storage.store import RecordStore
from debrief.redaction import Redactor
from tests.benchmarks.uploads import uploads

ROUNDS, SENT, COPIES = 3, 200, 27
_MULTIPLY = f"""
INSERT INTO sessions (
    id, task_id, repo_name, base_ref, created_at, record_text, size, sha256, verified, files,
    validated, redactions
)
SELECT gen_random_uuid(), task_id, repo_name, base_ref, created_at, record_text, size, sha256,
    verified, files, validated, redactions
FROM sessions, generate_series(2, {COPIES})
"""


def exported(url: str) -> None:
    """Read everything, and print rows, bytes, seconds and the most memory in MB."""
    with RecordStore(url) as store:
        store.check()
        began = time.perf_counter()
        rows = size = 0
        for row in store.export():
            rows += 1
            size += len(row.text)
        seconds = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(rows, size, seconds, most)


def copied(url: str) -> float:
    """Return the seconds that ``psql`` takes."""
    statement = "COPY (SELECT record_text FROM sessions) TO STDOUT"
    command = [str(programs_folder() / "psql"), url, "-X", "-c", statement]
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Print the figures."""
    ingest = Ingest(Redactor(bytes(32)), ReadyRule())
    with tempfile.TemporaryDirectory() as name, EmbeddedPostgres(Path(name) / "pg") as server:
        with RecordStore(server.url) as store:
            store.migrate()
            store.add_task(NewTask(id="cart", name="Cart"))
            for body in uploads(SENT):
                store.add_session(ingest.check(body))
        connection = psycopg2.connect(server.url)
        with connection, connection.cursor() as cursor:
            cursor.execute(_MULTIPLY)
        connection.close()
        ratios = []
        for _ in range(ROUNDS):
            plain = copied(server.url)
            command = [sys.executable, "-m", "tests.benchmarks.recorder_export", server.url]
            said = subprocess.run(command, capture_output=True, check=True).stdout.split()
            rows, size, seconds, most = map(float, said)
            ratios.append(plain / seconds)
            print(
                f"{rows:,.0f} records, {size / 1e6:,.0f} MB: psql {rows / plain:,.0f} a second, "
                f"export {rows / seconds:,.0f} a second, ratio {ratios[-1]:.2f}, {most:,.0f} MB"
            )
        print(f"ratio {min(ratios):.2f} at worst, {sorted(ratios)[ROUNDS // 2]:.2f} in the middle")


if __name__ == "__main__":
    exported(sys.argv[1]) if len(sys.argv) > 1 else main()
