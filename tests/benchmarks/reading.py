"""How fast transcripts are read: ``python -m tests.benchmarks.reading FOLDER [--redact]``.

Reads the folder's Claude Code transcripts one after another, on one core, with redaction if
asked for, and prints the time against ``orjson.loads`` over the same lines, measured in turns.
"""

from __future__ import annotations

import statistics
import time
from contextlib import suppress
from pathlib import Path

import orjson

from debrief.errors import InputError
from debrief.redaction.redactor import Redactor
from debrief.redaction.sessions import redact_session
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.claude_code import READER
from tests.benchmarks.measuring import options, seconds, show


def main() -> None:
    """Print the ratio of reading to decoding."""
    chosen = options(__doc__, "folder", redact=False, rounds=9)
    paths = sorted(Path(chosen.folder).rglob("*.jsonl"))
    lines = [line for path in paths for line in path.read_bytes().split(b"\n") if line.strip()]
    redactor = Redactor(b"a key for measuring alone 32 bytes")

    def decode() -> None:
        for line in lines:
            with suppress(orjson.JSONDecodeError):
                orjson.loads(line)

    def read() -> None:
        for path in paths:
            with suppress(InputError):
                session = READER.read(Transcript(source=READER.source, path=str(path)))
                if chosen.redact:
                    redact_session(session, redactor)

    rounds = [
        (seconds(decode, time.process_time), seconds(read, time.process_time))
        for _ in range(chosen.rounds)
    ]
    show("files, lines, MB", f"{len(paths)}, {len(lines)}, {sum(map(len, lines)) / 1e6:.0f}")
    for name, times in zip(("orjson.loads", "reading"), zip(*rounds, strict=True), strict=True):
        show(name, f"{statistics.median(times):.3f} s (best {min(times):.3f})")
    show("ratio", f"{statistics.median(read / decode for decode, read in rounds):.2f}")


if __name__ == "__main__":
    main()
