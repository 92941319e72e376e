"""How fast transcripts are read: ``python -m tests.benchmarks.reading``.

Given a folder, reads its Claude Code transcripts one after another, on one core, and prints the
time against ``orjson.loads`` over the same lines, measured in turns in the same run. ``--redact``
adds redaction. ``--grow`` reads files of growing length.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import orjson

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.claude_code import READER

ROUNDS = 9
MONDAY = datetime(2026, 1, 5, 9, tzinfo=UTC)
WORDS = "retry the cart total of None raises in checkout when a coupon is empty café ✓ 0x1f".split()  # noqa: SIM905


def compare(folder: Path, redact: bool) -> None:
    """Print the ratio of reading to decoding."""
    paths = [str(path) for path in sorted(folder.rglob("*.jsonl"))]
    lines = [
        line for path in paths for line in Path(path).read_bytes().split(b"\n") if line.strip()
    ]
    work = _redactor() if redact else lambda session: session
    ratios, decoding, reading = [], [], []
    for _ in range(ROUNDS):
        decoded = _timed(lambda: _decode(lines))
        read = _timed(lambda: _read(paths, work))
        decoding.append(decoded)
        reading.append(read)
        ratios.append(read / decoded)
    size = sum(map(len, lines)) / 1e6
    what = "reading and redacting" if redact else "reading"
    print(f"{len(paths)} files, {len(lines)} lines, {size:.0f} MB, median of {ROUNDS} rounds")
    print(f"orjson.loads            {statistics.median(decoding):.3f} s (best {min(decoding):.3f})")
    print(f"{what:23} {statistics.median(reading):.3f} s (best {min(reading):.3f})")
    print(
        f"ratio                   {statistics.median(ratios):.2f}"
        f" (best times {min(reading) / min(decoding):.2f})"
    )


def grow() -> None:
    """Print the time of single files of growing length, which should grow as they do."""
    with tempfile.TemporaryDirectory() as folder:
        for size in (2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000, 64_000_000):
            path = _session(Path(folder), 1, MONDAY, size)
            took = min(_timed(lambda path=path: _read([str(path)], lambda s: s)) for _ in range(3))  # type: ignore[misc]
            print(f"{size / 1e6:5.0f} MB  {took:.3f} s  {took / size * 1e9:.2f} s/GB")


def _decode(lines: list[bytes]) -> None:
    for line in lines:
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def _read(paths: list[str], work: Callable[[Session], Session]) -> None:
    for path in paths:
        try:
            work(READER.read(Transcript(source=READER.source, path=path)))
        except InputError:
            continue


def _redactor() -> Callable[[Session], Session]:
    from debrief.redaction.redactor import Redactor
    from debrief.redaction.sessions import redact_session

    redactor = Redactor(b"a key for measuring alone 32 bytes")
    return lambda session: redact_session(session, redactor)


def _timed(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _session(folder: Path, number: int, started: datetime, size: int) -> Path:
    """Write a session of about ``size`` bytes: prompts, answers, calls with long results."""
    folder.mkdir(parents=True, exist_ok=True)
    id = str(UUID(int=number + 1))
    path = folder / f"{id}.jsonl"
    noise = random.Random(number)
    written = turn = 0
    with path.open("wb") as file:
        while written < size:
            turn += 1
            for line in _turn(id, turn, started + timedelta(minutes=turn), noise):
                written += file.write(line)
    return path


def _turn(id: str, turn: int, at: datetime, noise: random.Random) -> list[bytes]:
    text = " ".join(noise.choices(WORDS, k=30))
    output = "\n".join(" ".join(noise.choices(WORDS, k=12)) for _ in range(40))
    base = {
        "parentUuid": f"{id}-{turn - 1}",
        "isSidechain": False,
        "cwd": "/home/ann/shop",
        "sessionId": id,
        "version": "2.1.40",
        "gitBranch": "main",
        "timestamp": at.isoformat(),
    }
    call = {"type": "tool_use", "id": f"c{turn}", "name": "Bash", "input": {"command": text}}
    result = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": output}
    usage = {"input_tokens": 9, "output_tokens": 90, "cache_read_input_tokens": 9000}
    message = {"id": f"m{turn}", "role": "assistant", "model": "m", "usage": usage}
    records = [
        {"type": "user", "uuid": f"{id}-{turn}u", "message": {"content": text}},
        {
            "type": "assistant",
            "uuid": f"{id}-{turn}a",
            "requestId": f"r{turn}",
            "message": {**message, "content": [{"type": "text", "text": text}, call]},
        },
        {
            "type": "user",
            "uuid": f"{id}-{turn}",
            "message": {"content": [result]},
            "toolUseResult": {"stdout": output, "stderr": "", "interrupted": False},
        },
    ]
    return [json.dumps({**base, **record}).encode() + b"\n" for record in records]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--redact", action="store_true")
    parser.add_argument("--grow", action="store_true")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        compare(chosen.folder, redact=False)
        if chosen.redact:
            compare(chosen.folder, redact=True)
    if chosen.grow:
        grow()
