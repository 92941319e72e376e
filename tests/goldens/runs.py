"""Golden runs: the whole graph over fixed sessions, at fixed paths, with a fixed redaction key.

``python -m tests.goldens.runs demo|shared LAKE`` makes one, if none is there, and prints its
digests. With ``--write`` they become the committed ones: do so only in a commit that says why
they change. ``--rows TABLE`` prints a table's rows instead, to see what differs between commits.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from debrief import samples
from debrief.keys import digest_of
from tests.benchmarks.measuring import DEBRIEF, PROJECT, options, run_alone
from tests.goldens.digests import digests_of, rows_of
from tests.machine import files_below

HERE = Path(__file__).parent
SOURCES = {
    "demo": Path(samples.__file__).parent / "data",
    "shared": PROJECT.parent / "shared" / "sessions",
}
FIXED = Path("/tmp/debrief-goldens")
"""Where sessions are copied to: their rows hold the paths of their transcripts."""
KEY = "0123456789abcdef" * 4
"""The redaction key: placeholders for secrets depend on it."""
TOUCHED = 1_780_272_000
"""When all files were last changed: a transcript without times is dated by it."""


def golden(name: str) -> Path:
    """Return the file of a run's committed digests."""
    return HERE / f"{name}.json"


def sessions_of(name: str) -> Path:
    """Return the run's sessions at their fixed path, copied there if they are not yet.

    The bundled ones change with the checkout, so their path tells one state from another.
    """
    source, place = SOURCES[name], FIXED / name
    if name == "demo":
        place = FIXED / f"{name}-{digest_of(files_below(source))[:8]}"
    if not place.exists():
        FIXED.mkdir(exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=FIXED))
        shutil.copytree(source, fresh / name, copy_function=shutil.copyfile)
        for path in (fresh / name).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.utime(path, (TOUCHED, TOUCHED))
        try:
            (fresh / name).rename(place)
        except OSError:
            if not place.exists():  # else another process was faster
                raise
        shutil.rmtree(fresh)
    return place


def run(name: str, lake: Path, home: Path) -> None:
    """Run the whole graph offline over a golden run's sessions, in a process of its own."""
    command = [*DEBRIEF, "run", "--no-model", "--sessions", str(sessions_of(name))]
    run_alone([*command, "--lake", str(lake)], home, DEBRIEF_REDACTION_KEY=KEY)


def main() -> None:
    """Make a golden run and print or write what it came to."""
    chosen = options(__doc__, "name", "lake", write=False, rows="")
    lake = Path(chosen.lake)
    if not lake.exists():
        with tempfile.TemporaryDirectory() as home:
            run(chosen.name, lake, Path(home))
    if chosen.rows:
        for row in rows_of(lake / chosen.rows):
            print(row.decode())
        return
    text = json.dumps(digests_of(lake), indent=1, sort_keys=True) + "\n"
    if chosen.write:
        golden(chosen.name).write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
