"""Uploads of a given size, alike in kind and all different, for figures of the recorder."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

from debrief.recorder.contracts import Upload
from debrief.recorder.encoding import encode_record
from tests.recorder.records import build

_WORDS = ("cart", "total", "price", "item", "count", "order", "user", "state", "value", "request")


def uploads(count: int, size: int = 47_000, seed: int = 1) -> Iterator[bytes]:
    """Yield bodies of ``POST /sessions`` with records of about ``size`` bytes."""
    chance = random.Random(seed)
    begun = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
    for number in range(count):
        share = size // 4
        before = {f"src/part{part}.ts": _code(chance, share) for part in range(2)}
        after = {path: _edited(chance, text) for path, text in before.items()}
        after["src/new.ts"] = _code(chance, share)
        stopped = begun + timedelta(seconds=number)
        id = UUID(int=chance.getrandbits(128), version=4)
        record = build(before, after, session_id=id, started_at=begun, stopped_at=stopped)
        meta = record.meta
        upload = Upload(
            id=id,
            task_id=meta.task_id,
            repo_name=meta.repo_name,
            repo_remote=meta.repo_remote,
            branch=meta.branch,
            base_ref=meta.base_ref,
            created_at=stopped,
            record=record,
        )
        rest = upload.model_dump_json(by_alias=True, exclude={"record"})
        yield rest[:-1].encode() + b',"record":' + encode_record(record) + b"}"


def _code(chance: random.Random, size: int) -> str:
    lines: list[str] = []
    length = 0
    while length < size:
        a, b, c = (chance.choice(_WORDS) for _ in range(3))
        number = chance.randrange(1000)
        lines.append(
            chance.choice(
                (
                    f'  const {a}{number} = {b}.get("{c}") ?? {number};',
                    f"  if ({a}.{b} > {number}) {{ return {c}({a}, {b}); }}",
                    f"export function {a}{b.title()}{number}({c}: string) {{",
                    f"  // the {a} of a {b} is {number} {c}s",
                    "}",
                )
            )
        )
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


def _edited(chance: random.Random, text: str) -> str:
    lines = text.split("\n")
    for _ in range(8):
        lines.insert(chance.randrange(len(lines)), f"  log({chance.randrange(10**6)});")
    return "\n".join(lines)
