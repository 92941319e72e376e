"""Which sessions of a lake are copies, forks or continuations of one another.

Being related is passed on from earlier to later: a fork of a fork goes back to what the first one
goes back to. What a session goes back to depends on earlier ones alone, so that one which starts
later changes nothing about it, not even as a relative of two that are no relatives themselves.

Candidates are found by bands of their signatures (locality-sensitive hashing), so that ten
thousand sessions take seconds, and checked by their whole signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.training.traits import SIGNATURE_BYTES, TRAITS, SessionTraits, traits_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRAITS_TABLE = "training_traits"
DUPLICATE = 0.85
"""Likeness from which two sessions are the same work twice."""
ALIKE = 0.6
"""Likeness from which two sessions must not be on both sides of a split."""

_ROWS_A_BAND = 4
"""Of 256: two sessions of likeness 0.6 miss each other in all 64 bands once in seven thousand."""
_ALL_PAIRS = 12
_CHUNK = 20_000


class OriginSession(Struct, frozen=True, kw_only=True, gc=False):
    """A session without an earlier relative."""

    session_id: str
    repository: str
    started: datetime


class Kin(Struct, frozen=True, kw_only=True):
    """A session's place among its relatives."""

    heads: tuple[OriginSession, ...]
    """The sessions that it goes back to, in order: itself when it has no earlier relative, and
    several when it brings families together."""
    copy_groups: tuple[str, ...]
    """The earliest sessions that it is a copy of, or a copy of a copy; itself as a rule."""


class Kinship:
    """The families of a lake's sessions."""

    def __init__(self, traits: Iterable[SessionTraits]) -> None:
        ordered = sorted(traits, key=lambda row: (row.started, row.session_id))
        known = [row for row in ordered if row.answered]
        families: dict[int, set[int]] = {}
        copies: dict[int, set[int]] = {}
        for earlier, later in _sharing_messages(known):
            families.setdefault(later, set()).add(earlier)
        for earlier, later, likeness in _alike(known):
            families.setdefault(later, set()).add(earlier)
            if likeness >= DUPLICATE:
                copies.setdefault(later, set()).add(earlier)
        heads, groups = _origins(len(known), families), _origins(len(known), copies)
        origins = [
            OriginSession(session_id=row.session_id, repository=row.repository, started=row.started)
            for row in known
        ]
        self._kin = {
            row.session_id: Kin(
                heads=tuple(origins[head] for head in heads[number]),
                copy_groups=tuple(known[group].session_id for group in groups[number]),
            )
            for number, row in enumerate(known)
        }

    def of(self, session_id: str) -> Kin | None:
        """Return a session's place; None for one that is not known or was never answered."""
        return self._kin.get(session_id)


def _origins(count: int, earlier: Mapping[int, set[int]]) -> list[tuple[int, ...]]:
    """Return for each number what it goes back to through smaller ones; itself without any."""
    found: list[tuple[int, ...]] = []
    for number in range(count):
        before = {found[other] for other in earlier.get(number, ())}
        if len(before) == 1:
            found += before
        else:
            found.append(tuple(sorted({one for many in before for one in many})) or (number,))
    return found


def _sharing_messages(rows: Sequence[SessionTraits]) -> list[tuple[int, int]]:
    import numpy as np

    counts = [len(row.message_marks) // 8 for row in rows]
    marks = np.frombuffer(b"".join(row.message_marks for row in rows), np.uint64)
    owners = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
    found: set[tuple[int, int]] = set()
    for members in _equal(marks, owners):
        found.update(pairwise(members))
    return sorted(found)


def _alike(rows: Sequence[SessionTraits]) -> list[tuple[int, int, float]]:
    """Return the pairs (earlier, later) with at least ``ALIKE`` in common, and how much."""
    import numpy as np

    if len(rows) < 2:
        return []
    matrix = np.frombuffer(b"".join(row.signature for row in rows), np.uint32)
    matrix = matrix.reshape(len(rows), SIGNATURE_BYTES // 4)
    numbers = np.arange(len(rows), dtype=np.int64)
    candidates: set[tuple[int, int]] = set()
    for start in range(0, matrix.shape[1], _ROWS_A_BAND):
        for members in _equal(_mixed(matrix[:, start : start + _ROWS_A_BAND]), numbers):
            first = members[:_ALL_PAIRS]
            candidates.update((a, b) for n, a in enumerate(first) for b in first[n + 1 :])
            # Of many that are alike the others need only be seen beside two of them.
            candidates.update(pairwise(members[_ALL_PAIRS - 1 :]))
            candidates.update((members[0], other) for other in members[_ALL_PAIRS:])
    pairs = np.array(sorted(candidates), np.int64).reshape(-1, 2)
    found: list[tuple[int, int, float]] = []
    for start in range(0, len(pairs), _CHUNK):
        part = pairs[start : start + _CHUNK]
        shares = (matrix[part[:, 0]] == matrix[part[:, 1]]).mean(axis=1)
        close = shares >= ALIKE
        found += [
            (int(a), int(b), float(share))
            for (a, b), share in zip(part[close], shares[close], strict=True)
        ]
    return found


def _mixed(band: NDArray[np.uint32]) -> NDArray[np.uint64]:
    import numpy as np

    mixed = np.zeros(len(band), np.uint64)
    with np.errstate(over="ignore"):
        for column in band.T:
            mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
    return mixed


def _equal(keys: NDArray[np.uint64], owners: NDArray[np.int64]) -> Iterable[list[int]]:
    """Yield the owners of each key that several have, in order, each once."""
    import numpy as np

    order = np.argsort(keys, kind="stable")
    keys, owners = keys[order], owners[order]
    if not len(keys):
        return
    ends = np.flatnonzero(np.append(keys[1:] != keys[:-1], True)) + 1
    start = 0
    for end in ends.tolist():
        if end - start > 1:
            members = np.unique(owners[start:end])
            if len(members) > 1:
                yield [int(number) for number in members]
        start = end


class TrainingIndex(Struct, frozen=True, kw_only=True):
    """What training sets are chosen by."""

    traits: dict[str, SessionTraits]
    """By session id; signatures left out."""
    kinship: Kinship

    def session_digest(self, session_id: str) -> str:
        """Return the digest of a session; empty for one that is not known."""
        traits = self.traits.get(session_id)
        return traits.session_digest if traits else ""


def read_index(lake: Lake) -> TrainingIndex:
    """Return the traits and kinship of all sessions.

    Traits of weeks that changed are read anew, and all when our version of them or the MinHash
    library's is another, which are not comparable.
    """
    from rensa import RMinHash

    version = f"{TRAITS}.{RMinHash.ALGORITHM_VERSION}"
    found: dict[str, SessionTraits] = {}
    for week in lake.partitions("raw_sessions"):
        raw, stamp = lake.stamp("raw_sessions", week), lake.stamp(TRAITS_TABLE, week)
        inputs = digest_of(version, raw.digest if raw else "")
        if stamp is None or stamp.inputs != inputs:
            rows = [
                replace(traits_of(session), version=version)
                for session in lake.read("raw_sessions", week, Session)
            ]
            rows.sort(key=lambda row: row.session_id)
            lake.write(TRAITS_TABLE, week, rows, SessionTraits, lambda: inputs)  # noqa: B023
        for row in lake.read(TRAITS_TABLE, week, SessionTraits):
            found[row.session_id] = row
    kinship = Kinship(found.values())
    plain = {name: replace(row, signature=b"", message_marks=b"") for name, row in found.items()}
    return TrainingIndex(traits=plain, kinship=kinship)
