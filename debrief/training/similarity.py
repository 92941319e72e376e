"""Which sessions are copies, forks or continuations of one another.

Two looks, both cheap enough for ten thousand sessions: messages of the model that stand in both
(a fork or a resumed session copies its history), and the share of five-word runs that both have
in common, estimated from the 256 smallest hashes of each (bottom-k sketches; the error is about
3 points).
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from debrief.sessions.model import Session

DUPLICATE = 0.85
"""Likeness from which two sessions are the same work twice."""
ALIKE = 0.6
"""Likeness from which two sessions must not be on both sides of a split."""

_RUN = 5
_SKETCH = 256
_PROBES = 24
_MOST_WORDS = 50_000
_MIX = 0x9E3779B97F4A7C15


class Sketch(Struct, frozen=True, kw_only=True):
    """What is kept of a session to compare it with others."""

    session_id: str
    messages: frozenset[int]
    """Hashes of the model's messages, by id and content."""
    runs: tuple[int, ...]
    """The smallest hashes of its runs of words, in order."""


class Relation(Struct, frozen=True, gc=False):
    """How an earlier session is related to another."""

    session_id: str
    likeness: float
    """From 0 to 1."""
    shares_history: bool


def sketch_of(session: Session) -> Sketch:
    """Return the sketch of a session."""
    words = list(islice(_words(session), _MOST_WORDS))
    return Sketch(
        session_id=session.id,
        messages=frozenset(_message_hashes(session)),
        runs=tuple(_run_hashes(words)),
    )


def likeness(one: Sketch, other: Sketch) -> float:
    """Return the estimated share of runs that two sessions have in common, 0 to 1."""
    smallest = sorted({*one.runs, *other.runs})[:_SKETCH]
    if not smallest:
        return 1.0
    common = set(one.runs) & set(other.runs)
    return sum(value in common for value in smallest) / len(smallest)


class Relatives:
    """The sessions seen so far, and those among them that a further one is related to."""

    def __init__(self) -> None:
        self._sketches: dict[str, Sketch] = {}
        self._by_run: dict[int, list[str]] = {}
        self._by_message: dict[int, str] = {}

    def add(self, sketch: Sketch) -> None:
        """Remember a session."""
        self._sketches[sketch.session_id] = sketch
        for run in sketch.runs[:_PROBES]:
            self._by_run.setdefault(run, []).append(sketch.session_id)
        for message in sketch.messages:
            self._by_message.setdefault(message, sketch.session_id)

    def of(self, sketch: Sketch) -> Sequence[Relation]:
        """Return the relations of a session to those remembered, in the order of their ids."""
        near = {name for run in sketch.runs[:_PROBES] for name in self._by_run.get(run, ())}
        sources = {
            self._by_message[message] for message in sketch.messages if message in self._by_message
        }
        relations = []
        for name in sorted(near | sources):
            share = likeness(sketch, self._sketches[name])
            if share >= ALIKE or name in sources:
                relations.append(Relation(name, share, name in sources))
        return relations


def _run_hashes(words: list[str]) -> list[int]:
    """Return the smallest hashes of the runs of ``words``, in order, each once."""
    import numpy as np

    if len(words) <= _RUN:
        return [_hash(words)]
    hashes = np.array([zlib.crc32(word.encode("utf-8", "replace")) for word in words], np.uint64)
    runs = np.zeros(len(hashes) - _RUN + 1, np.uint64)
    with np.errstate(over="ignore"):
        for offset in range(_RUN):
            runs = (runs + hashes[offset : offset + len(runs)]) * np.uint64(_MIX)
            runs ^= runs >> np.uint64(29)
    return [int(value) for value in np.unique(runs)[:_SKETCH]]


def _hash(parts: list[str]) -> int:
    data = "\n".join(parts).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def _words(session: Session) -> Iterator[str]:
    for turn in session.turns:
        yield from turn.prompt.lower().split()
        for message in turn.messages:
            yield from message.text.lower().split()
            for call in message.calls:
                yield call.name
                yield from call.input.lower().split()


def _message_hashes(session: Session) -> Iterator[int]:
    for turn in session.turns:
        for message in turn.messages:
            if message.id:
                content = [message.id, message.text, *(call.input for call in message.calls)]
                yield _hash(content)
