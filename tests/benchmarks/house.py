"""The house in figures: its size, how many modules a session passes, what a run costs.

What a run costs is told in CPU seconds, and as a multiple of what ``orjson.loads`` takes over the
same JSON at the same time: the multiple can be compared between machines.

``python -m tests.benchmarks.house`` prints the table; ``--quick`` leaves out what takes minutes;
``--sessions DIR`` names the transcripts that a run is timed on, by default the bundled samples.
CPU times are of the whole process with its children, on this machine: compare them with those of
another commit on the same machine.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import orjson

from tests.benchmarks.measuring import DEBRIEF, PROJECT, Cost, options, run_alone, seconds, show
from tests.benchmarks.reading import json_in
from tests.goldens.runs import SOURCES

ROOMS = ("assets", "debrief", "pipelines", "recorder/debrief", "resources")
WALK = "--walk"
TO_A_LINE = (
    *("raw_sessions", "prompt_snapshots", "session_metadata"),
    *("judge_evaluations", "session_scores", "training_sets"),
)
APART = "langfuse_scores"
_PRIVATE = re.compile(r"^\s*(?:from|import) dagster[\w.]*\._", re.MULTILINE)
_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_COPIES = 10
_WALKED = 570_000
"""About the bytes of the transcript whose way is followed."""


def main() -> None:
    """Print the table."""
    chosen = options(__doc__, sessions=SOURCES["demo"], quick=False)
    product = [file.read_text() for file in _files(*ROOMS)]
    show("source lines of product Python", f"{_source_lines(product):,}")
    show("modules of product Python", f"{len(product):,}")
    show("private Dagster imports (0)", sum(len(_PRIVATE.findall(text)) for text in product))
    tests = sum(len(file.read_text().splitlines()) for file in _files("tests"))
    show("lines of test code", f"{tests:,}")
    if chosen.quick:
        return
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        walked = _walk_of(chosen.sessions, scratch)
        show("modules from transcript to training line (≤ 70)", walked["line"])
        show("modules of langfuse_scores without a server (≤ 10)", walked[APART])
        first, again = zip(*(_twice(scratch, chosen.sessions) for _ in range(3)), strict=True)
        show("debrief run --no-model, first (≤ 90 times decoding, on 100 MB)", _least(first))
        show("debrief run --no-model, unchanged (≤ 8 times decoding, on 100 MB)", _least(again))
        show("debrief demo (≤ 12 CPU s)", run_alone([*DEBRIEF, "demo"], scratch / "demo"))
        size = _copies(chosen.sessions, scratch / "many")
        name = f"debrief run --no-model on {size / 1e9:.2f} GB (≤ 450 MB)"
        show(name, _run(scratch, scratch / "many"))


def _files(*rooms: str) -> Iterator[Path]:
    return (file for room in rooms for file in sorted((PROJECT / room).rglob("*.py")))


def _source_lines(texts: list[str]) -> int:
    from radon.raw import analyze

    return sum(analyze(text).sloc for text in texts)


def _twice(scratch: Path, sessions: Path) -> tuple[tuple[float, Cost], ...]:
    """Run on a new lake, and again; return the multiple of decoding and the cost of each."""
    files = (str(path) for path in sorted(sessions.rglob("*.json*")) if path.is_file())
    texts = [text for file in files for text in json_in(file)]

    def decode() -> None:
        for text in texts:
            with suppress(orjson.JSONDecodeError):
                orjson.loads(text)

    decoding = min(seconds(decode, time.process_time) for _ in range(5))
    place = Path(tempfile.mkdtemp(dir=scratch))
    costs = (_run(place, sessions), _run(place, sessions))
    return tuple((cost.cpu / decoding, cost) for cost in costs)


def _least(found: Iterable[tuple[float, Cost]]) -> str:
    times, cost = min(found, key=lambda each: each[0])
    return f"{times:.1f} times, {cost}"


def _run(scratch: Path, sessions: Path) -> Cost:
    home = scratch / f"home of {sessions.name}"
    lake = ["--sessions", str(sessions), "--lake", str(home / "lake")]
    return run_alone([*DEBRIEF, "run", "--no-model", *lake], home)


def _copies(sessions: Path, folder: Path) -> int:
    """Write several copies of all transcripts with ids of their own; return their bytes."""
    size = 0
    for copy in range(_COPIES):
        space = uuid.UUID(int=copy)

        def other(match: re.Match[bytes], space: uuid.UUID = space) -> bytes:
            return str(uuid.uuid5(space, match[0].decode())).encode()

        for file in sessions.rglob("*"):
            if file.is_file():
                name = _ID.sub(other, str(file.relative_to(sessions)).encode()).decode()
                target = folder / str(copy) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                size += target.write_bytes(_ID.sub(other, file.read_bytes()))
    return size


def _walk_of(sessions: Path, scratch: Path) -> dict[str, int]:
    """Return how many modules a session passes in a run over it alone."""
    files = [file for file in sorted(sessions.rglob("*.jsonl")) if file.is_file()]
    file = min(files, key=lambda file: abs(file.stat().st_size - _WALKED))
    folder = scratch / "one" / "project"
    folder.mkdir(parents=True)
    (folder / file.name).write_bytes(file.read_bytes())
    home = scratch / "walk"
    found = home / "modules.json"
    command = [sys.executable, "-m", "tests.benchmarks.house", WALK, str(folder.parent)]
    run_alone([*command, str(home / "lake"), str(found)], home)
    counts: dict[str, int] = json.loads(found.read_text())
    return counts


class Walk:
    """Notes the modules whose functions are called while a stage computes."""

    def __init__(self, starts: set[CodeType]) -> None:
        self.modules: defaultdict[str, set[str]] = defaultdict(set)
        self._starts = starts
        self._stage = ""
        self._frame: FrameType | None = None
        self._rooms = tuple(f"{PROJECT / room}/" for room in ROOMS)

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Take a call or a return."""
        if event == "call":
            if not self._stage and frame.f_code in self._starts:
                context = frame.f_locals.get("context")
                self._stage = context.asset_key.to_user_string() if context else ""
                self._frame = frame
            if self._stage and frame.f_code.co_filename.startswith(self._rooms):
                self.modules[self._stage].add(frame.f_code.co_filename)
        elif event == "return" and frame is self._frame:
            self._stage, self._frame = "", None


def walk(sessions: str, lake: str, result: str) -> None:
    """Run the graph under a profile function and write the counts of modules."""
    import pipelines.command  # noqa: F401  adds its commands
    from debrief.cli.app import app
    from pipelines.definitions import defs

    starts = set()
    for asset in defs.resolve_asset_graph().assets_defs:
        if asset.keys and asset.is_executable:
            compute: Any = asset.op.compute_fn
            starts.add(compute.decorated_fn.__code__)
    noted = Walk(starts)
    threading.setprofile(noted)
    sys.setprofile(noted)
    try:
        app(["run", "--no-model", "--sessions", sessions, "--lake", lake], standalone_mode=False)
    finally:
        sys.setprofile(None)
    together = set[str]().union(*(noted.modules[stage] for stage in TO_A_LINE))
    counts = {stage: len(modules) for stage, modules in noted.modules.items()}
    found = {**counts, "line": len(together), APART: len(noted.modules[APART])}
    Path(result).write_text(json.dumps(found))
    print(*sorted(each.removeprefix(f"{PROJECT}/") for each in together), sep="\n")


if __name__ == "__main__":
    walk(*sys.argv[2:]) if WALK in sys.argv else main()
