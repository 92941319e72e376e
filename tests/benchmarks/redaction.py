"""How well and how fast secrets are found: run it, nothing else needs to be there.

``python -m tests.benchmarks.redaction`` measures fresh synthetic cases, false hits on ordinary
text, and the speed of the redactor alone (``reading --redact`` measures it with sessions). A
folder ``shared`` beside the checkout adds its cases and transcripts.
"""

from __future__ import annotations

import base64
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

from debrief.redaction.redactor import Redactor
from tests.redaction.harmless import near_misses
from tests.redaction.synthetic import (
    Case,
    coverage,
    generic_cases,
    hard_cases,
    known_cases,
)

SHARED = Path(__file__).resolve().parents[3] / "shared"
REDACTOR = Redactor(b"benchmark" * 4)
MEGABYTE = 1_000_000


def main() -> None:
    """Print every figure."""
    for seed in (1001, 1002, 1003):
        report(f"fresh cases, seed {seed}", fresh_cases(seed))
    cases = SHARED / "cases" / "secrets_dev.jsonl"
    if cases.is_file():
        report(str(cases.name), filed_cases(cases))
    ordinary("standard library", list(standard_library()))
    transcripts = sorted((SHARED / "sessions" / "claude-code").rglob("*.jsonl"))
    if transcripts:
        lines = [line for path in transcripts for line in path.read_bytes().splitlines()]
        ordinary("strings of transcripts", list(strings_of(lines)))


def fresh_cases(seed: int) -> Iterable[Case]:
    """Yield cases that no rule was tuned on."""
    yield from known_cases(seed)
    yield from generic_cases(seed)
    yield from hard_cases(seed)
    yield from near_misses(seed)


def filed_cases(path: Path) -> Iterable[Case]:
    """Yield the cases of a file."""
    for line in path.read_bytes().splitlines():
        record = orjson.loads(line)
        secret = base64.b64decode(record.get("secret_b64") or "").decode()
        parts = tuple(secret.split("\0")) if record["label"] else ()
        text = base64.b64decode(record["text_b64"]).decode()
        yield Case(record["split"], record["kind"], text, parts)


def report(title: str, cases: Iterable[Case]) -> None:
    """Print the share of cases with the right outcome, by split."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in cases:
        spans = [(f.start, f.end) for f in REDACTOR.redact(case.text).findings]
        total[case.split] += 1
        if case.secrets:
            right[case.split] += all(coverage(case.text, s, spans) >= 0.97 for s in case.secrets)
        else:
            right[case.split] += not spans
    shares = ", ".join(f"{s} {right[s]}/{n} = {right[s] / n:.3f}" for s, n in total.items())
    print(f"{title}: {shares}")


def standard_library() -> Iterable[str]:
    """Yield the sources of Python's standard library."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" not in path.parts:
            yield path.read_text(encoding="utf-8", errors="replace")


def strings_of(lines: Iterable[bytes]) -> Iterable[str]:
    """Yield every string in JSON lines."""
    for line in lines:
        try:
            waiting: list[Any] = [orjson.loads(line)]
        except orjson.JSONDecodeError:
            continue
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict):
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)


def ordinary(title: str, texts: list[str]) -> None:
    """Print hits a megabyte and speed on text that holds no secrets, or hardly any."""
    size = sum(map(len, texts)) / MEGABYTE
    hits = 0

    def run() -> None:
        nonlocal hits
        hits = sum(len(REDACTOR.redact(text).findings) for text in texts)

    seconds = timed(run)
    print(
        f"{title}: {hits} hits in {size:.0f} MB = {hits / size:.2f} a MB, {size / seconds:.0f} MB/s"
    )


def timed(run: Callable[[], None]) -> float:
    """Return how many seconds a function takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
