"""What a lake in an object store costs: ``python -m tests.benchmarks.object_store``.

Runs ``debrief demo`` twice on a local lake and twice on one in a bucket, side by side, and prints
seconds and requests. The server is moto's, on loopback, without the latency of a network; the
requests times that latency are what a real one adds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.benchmarks.measuring import DEBRIEF, options, run_alone, show
from tests.object_store import object_store


def main() -> None:
    """Measure, and print."""
    options(__doc__)
    with tempfile.TemporaryDirectory() as folder, object_store() as server:
        bucket = ["--lake", f"s3://{server.bucket()}/lake"]
        for name, lake in (("local", []), ("bucket", bucket)):
            for time in ("first", "again"):
                server.requests.clear()
                home = Path(folder) / name
                cost = run_alone([*DEBRIEF, "demo", *lake], home, **server.environment)
                show(f"{name}, {time}", f"{cost}, requests {dict(server.requests)}")


if __name__ == "__main__":
    main()
