"""How well and how fast secrets are found: ``python -m tests.benchmarks.redaction``.

Measures fresh synthetic cases, false hits on ordinary text, and the speed of the redactor alone
(``reading`` measures it with sessions). ``--hostile 300`` measures as many texts made from
the rules themselves, too, and prints the slowest ten. A folder ``shared`` beside the checkout adds
its cases and transcripts.
"""

from __future__ import annotations

import base64
import json
import random
import sysconfig
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from debrief.redaction.redactor import WITHHELD_MARK, Redactor
from tests.benchmarks.measuring import PROJECT, options, seconds, show
from tests.redaction.harmless import near_misses
from tests.redaction.hostile import VARIANTS, units
from tests.redaction.synthetic import (
    Case,
    context_cases,
    coverage,
    escaped_cases,
    generic_cases,
    hard_cases,
    known_cases,
)

SHARED = PROJECT.parent / "shared"
REDACTOR = Redactor(b"benchmark" * 4)
_GROUPS = {
    **dict.fromkeys(("before", "after", "inside"), "escapes"),
    **dict.fromkeys(("Command", "Windows", "Configuration", "Code", "Spoken"), "contexts"),
}


def main() -> None:
    """Print every figure."""
    chosen = options(__doc__, seeds=3, megabytes=100, hostile=0)
    if chosen.hostile:
        hostile(chosen.hostile)
    for seed in range(1001, 1001 + chosen.seeds):
        makers = (known_cases, generic_cases, hard_cases, context_cases, escaped_cases, near_misses)
        report(f"fresh cases, seed {seed}", (case for make in makers for case in make(seed)))
    cases = SHARED / "cases" / "secrets_dev.jsonl"
    if cases.is_file():
        report(cases.name, map(filed_case, cases.read_text().splitlines()))
    library = Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")
    sources = (path for path in sorted(library) if "site-packages" not in path.parts)
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in sources)
    ordinary("standard library", texts, chosen.megabytes)
    transcripts = sorted((SHARED / "sessions" / "claude-code").rglob("*.jsonl"))
    lines = (line for path in transcripts for line in path.read_text().splitlines())
    ordinary("strings of transcripts", (t for line in lines for t in strings_of(line)), 100)


def filed_case(line: str) -> Case:
    """Return the case of a line."""
    record = json.loads(line)
    secret = base64.b64decode(record.get("secret_b64") or "").decode()
    text = base64.b64decode(record["text_b64"]).decode()
    parts = tuple(secret.split("\0")) if record["label"] else ()
    return Case(record["split"], record["kind"], text, parts)


def hostile(count: int, size: int = 1_000_000) -> None:
    """Print the slowest ten of texts that cost the rules as much as they can."""
    rng = random.Random(count)
    speeds: list[tuple[float, str, str, str]] = []
    for unit in rng.choices(units(count), k=count):
        variant = rng.choice(list(VARIANTS))
        text = VARIANTS[variant](unit, size)
        redact = partial(REDACTOR.redact, text)
        took = min(seconds(redact, process_time) for _ in range(2))
        outcome = "partly withheld" if WITHHELD_MARK in redact().text else "searched"
        speeds.append((len(text) / 1e6 / took, variant, outcome, unit))
    for speed, variant, outcome, unit in sorted(speeds)[:10]:
        show(f"{variant}, {outcome}", f"{speed:.1f} MB/s {unit[:60]!r}")


def report(title: str, cases: Iterable[Case]) -> None:
    """Print the share of cases with the right outcome, by split."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in cases:
        spans = [(f.start, f.end) for f in REDACTOR.redact(case.text).findings]
        found = all(coverage(case.text, s, spans) >= 0.97 for s in case.secrets)
        split = _GROUPS.get(case.split.partition(" ")[0], case.split)
        total[split] += 1
        right[split] += found if case.secrets else not spans
    show(title, ", ".join(f"{s} {right[s]}/{n} = {right[s] / n:.3f}" for s, n in total.items()))


def strings_of(line: str) -> Iterable[str]:
    """Yield every string in a line of JSON."""
    try:
        waiting: list[Any] = [json.loads(line)]
    except ValueError:
        return
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case dict(fields):
                waiting.extend(fields.values())
            case list(items):
                waiting.extend(items)


def ordinary(title: str, texts: Iterable[str], most: int) -> None:
    """Print hits a megabyte and speed on text that holds no secrets, or hardly any."""
    read: list[str] = []
    size = 0.0
    for text in texts:
        if size < most:
            read.append(text)
            size += len(text) / 1e6
    hits: list[int] = []
    took = seconds(lambda: hits.extend(len(REDACTOR.redact(text).findings) for text in read))
    if read:
        found = f"{sum(hits)} hits in {size:.0f} MB = {sum(hits) / size:.2f} a MB"
        show(title, f"{found}, {size / took:.0f} MB/s")


if __name__ == "__main__":
    main()
