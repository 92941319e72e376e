"""What a lake in an object store costs: ``python -m tests.benchmarks.object_store``.

Runs ``debrief demo`` twice on a local lake and twice on one in a bucket, side by side, and prints
seconds and requests. The server is moto's, on loopback, without the latency of a network; the
requests times that latency are what a real one adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.object_store import ObjectStoreServer, object_store


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as folder, object_store() as server:
        local = [_demo(Path(folder) / "local", "", server) for _ in range(2)]
        url = f"s3://{server.bucket()}/lake"
        stored = [_demo(Path(folder) / "stored", url, server) for _ in range(2)]
    for name, here, there in zip(("first", "again"), local, stored, strict=True):
        requests = ", ".join(f"{n} {method}" for method, n in sorted(there[1].items()))
        print(
            f"{name:5}  local {here[0]:5.1f} s   bucket {there[0]:5.1f} s   "
            f"ratio {there[0] / here[0]:.2f}   {sum(there[1].values())} requests ({requests})"
        )


def _demo(home: Path, lake: str, server: ObjectStoreServer) -> tuple[float, dict[str, int]]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))}
    environment = {**kept, **server.environment, "HOME": str(home), "DEBRIEF_HOME": str(home)}
    server.requests.clear()
    started = time.monotonic()
    command = [sys.executable, "-m", "pipelines.command", "demo"]
    subprocess.run(
        [*command, *(["--lake", lake] if lake else [])],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic() - started, dict(server.requests)


if __name__ == "__main__":
    main()
