"""What it costs to read and check a record of 47 kB, beside parsing its JSON alone.

Run with ``python -m tests.benchmarks.record_checks``. It prints the best processor time of
several rounds, in milliseconds a record, and how often ``json.loads`` of the same bytes fits in.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

from debrief.recorder.checks import ReadyRule, problems_of, readiness
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import decode_record, encode_record
from tests.recorder.records import build

ROUNDS, TIMES = 15, 40
WORDS = ("const", "value", "=", '"text"', "await", "fetch(url)", "total", "+=", "1;")


def record() -> Record:
    """Return a session of 12 files and two commands, of about 47 kB."""
    chance = random.Random(1)

    def line() -> str:
        return f"  {' '.join(chance.choices(WORDS, k=7))}\n"

    before = {f"src/m{n}/file{n}.ts": "".join(line() for _ in range(58)) for n in range(8)}
    after = {}
    for path, text in before.items():
        lines = text.splitlines(keepends=True)
        for place in (5, 30, 50):
            lines[place] = line()
        after[path] = "".join(lines)
    after |= {f"src/new{n}.ts": "".join(line() for _ in range(36)) for n in range(4)}
    outputs = ("src/m1/file1.ts:3 unused\n" * 120, "ok 1 - adds up\n" * 150)
    return build(before, after, earlier=[(["lint"], outputs[0])], final=[(["test"], outputs[1])])


def milliseconds(work: Callable[[], object]) -> float:
    """Return the least processor time of one call."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(TIMES):
            work()
        best = min(best, (time.process_time() - start) / TIMES * 1000)
    return best


def main() -> None:
    """Measure, and print a table."""
    data = encode_record(record())
    spaced = json.dumps(json.loads(data)).encode()
    decoded = decode_record(data)
    rule = ReadyRule()
    assert not problems_of(decoded)
    print(f"{len(data):,} bytes, {len(decoded.messages)} messages")
    times = {
        name: milliseconds(work)
        for name, work in {
            "json.loads": lambda: json.loads(data),
            "decode_record": lambda: decode_record(data),
            "decode_record, written with blanks": lambda: decode_record(spaced),
            "problems_of": lambda: problems_of(decoded),
            "readiness": lambda: readiness(decoded, rule),
            "encode_record": lambda: encode_record(decoded),
            "decode_record and problems_of": lambda: problems_of(decode_record(data)),
        }.items()
    }
    for name, taken in times.items():
        print(f"{name:36} {taken:7.3f} ms {taken / times['json.loads']:6.1f} x json.loads")


if __name__ == "__main__":
    main()
