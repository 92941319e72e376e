"""The shared state as tables of a database: the same statements in SQLite and in Postgres."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct, structs

NAMED = "DEBRIEF_STATE_URL"
"""The setting that says where the state is."""
DAY = 86_400.0
_A_PAGE = 200
"""Answers that are copied at a time."""
_FORGOTTEN = 7 * DAY
"""Seconds after its last sign of life in which nobody asks any more who held a lease."""


class Lease(Struct, frozen=True, kw_only=True):
    """Who works on something."""

    name: str
    """Of what is worked on."""
    run: str
    token: str
    """Of this taking alone."""
    process: str
    """Of whoever took it, as ``debrief.state.processes`` writes it."""
    since: float
    """Seconds since 1970, by the database's clock, as all times here."""
    beat: float
    """When it was last heard of."""
    now: float
    """When this was read."""
    up: float = 0.0
    """Since when the database has been there: before that, nobody could be heard."""

    @property
    def silence(self) -> float:
        """Return the seconds in which it was not heard of, though it could have been."""
        return self.now - max(self.beat, self.up)


class Size(Struct, frozen=True):
    """What the answers come to."""

    answers: int
    bytes: int


class State(ABC):
    """Answers by key, what runs have spent, and leases; safe in threads and processes.

    Every method is one statement and one transaction, so a process that dies at any moment
    leaves all of it or nothing.
    """

    place: str
    """Where it is, for people: without a password."""
    prefix = ""
    """Before the names of the tables."""
    clock: str
    """The SQL of the time now, in seconds since 1970."""
    up = "0.0"
    """The SQL of the time since when the database has been there; 0 when it is never away."""

    @abstractmethod
    def _rows(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a statement that returns rows."""

    @abstractmethod
    def _change(self, statement: str, values: Mapping[str, Any]) -> int:
        """Run a statement that changes rows, and return how many it changed."""

    @abstractmethod
    def compact(self) -> None:
        """Give the room of what was dropped back."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    def get(self, key: str) -> bytes | None:
        """Return what was kept under a key."""
        rows = self._rows(self._sql(_GET), {"key": key})
        if not rows:
            return None
        (value,) = rows[0]
        return value.encode() if isinstance(value, str) else bytes(value)

    def put(self, key: str, value: bytes) -> None:
        """Keep something under a key."""
        self._change(self._sql(_PUT), {"key": key, "value": value})

    def take_over(self, other: State) -> int:
        """Keep the answers of another state too, each as old as it is there; return how many.

        What is kept here already stays, so a copy that was broken off goes on with the rest.
        """
        new, after = 0, ""
        while rows := other._rows(other._sql(_PAGE), {"after": after, "most": _A_PAGE}):
            for key, value, kept in rows:
                data = value.encode() if isinstance(value, str) else bytes(value)
                new += self._change(self._sql(_ADOPT), {"key": key, "value": data, "kept": kept})
            after = str(rows[-1][0])
        return new

    def reserve(
        self, run: str, usd: float, *, max_calls: int | None, max_usd: float | None
    ) -> bool:
        """Set a call and what it may cost aside for a run, if both limits allow; in one step."""
        values = {"run": run, "usd": usd, "max_calls": max_calls, "max_usd": max_usd}
        self._change(self._sql(_OPEN_ACCOUNT), values)
        return self._change(self._sql(_RESERVE), values) == 1

    def settle(self, run: str, usd: float) -> None:
        """Put what a call really took in place of what was set aside: add the difference."""
        self._change(self._sql(_SETTLE), {"run": run, "usd": usd})

    def spent(self, run: str) -> tuple[int, float]:
        """Return the calls and the USD of a run."""
        rows = self._rows(self._sql(_SPENT), {"run": run})
        return (int(rows[0][0]), float(rows[0][1])) if rows else (0, 0.0)

    def take(
        self, name: str, *, run: str, token: str, process: str, dead: Lease | None = None
    ) -> bool:
        """Take a lease, if nobody has it; whoever has it by this very token takes it again.

        Args:
            name: of what is to be worked on.
            run: who wants it.
            token: of this taking.
            process: who wants it.
            dead: a holder from whom it is taken over, if nothing was heard of him since.
        """
        values = {"name": name, "run": run, "token": token, "process": process}
        values["dead"] = dead.token if dead is not None else ""
        beat = dead.beat if dead is not None else 0.0
        return self._change(self._sql(_TAKE), {**values, "beat": beat}) == 1

    def beat(self, process: str) -> set[str]:
        """Say that a process is alive; return the tokens of what it still holds."""
        self._change(self._sql(_BEAT), {"process": process})
        rows = self._rows(self._sql(_HELD), {"process": process})
        return {str(row[0]) for row in rows}

    def release(self, token: str) -> None:
        """Give a lease back; nothing happens when somebody else took it over."""
        self._change(self._sql(_RELEASE), {"token": token})

    def lease(self, name: str) -> Lease | None:
        """Return who holds a lease, alive or dead; None when nobody does."""
        found = self._leases("name = :value", name)
        return found[0] if found else None

    def leases_of(self, run: str) -> list[Lease]:
        """Return what a run holds, alive or dead."""
        return self._leases("run = :value", run)

    def due(self, chore: str, every: float) -> bool:
        """Tell one asker in so many seconds, and no other, that a chore is his to do."""
        return self._change(self._sql(_DUE), {"chore": chore, "every": every}) == 1

    def prune(self, *, days: float, size: int) -> Size:
        """Drop the oldest answers, and what is known of runs and leases that are long over.

        Args:
            days: answers kept longer than this go.
            size: of the answers that may stay, in bytes; the newest stay.

        Returns:
            What was dropped.
        """
        before = self.size()
        self._change(self._sql(_DROP_OLD), {"age": days * DAY})
        if self.size().bytes > size:
            self._change(self._sql(_DROP_MANY), {"size": size})
        self._change(self._sql(_DROP_ACCOUNTS), {"age": days * DAY})
        self._change(self._sql(_DROP_LEASES), {"age": _FORGOTTEN})
        after = self.size()
        return Size(max(0, before.answers - after.answers), max(0, before.bytes - after.bytes))

    def size(self) -> Size:
        """Return what the answers come to."""
        ((answers, size),) = self._rows(self._sql(_SIZE), {})
        return Size(int(answers), int(size))

    def _leases(self, condition: str, value: str) -> list[Lease]:
        rows = self._rows(self._sql(_LEASES) + condition, {"value": value})
        names = structs.fields(Lease)
        return [Lease(**{f.name: v for f, v in zip(names, row, strict=True)}) for row in rows]

    def _sql(self, statement: str) -> str:
        return _formed(statement, self.prefix, self.clock, self.up)


@cache
def _formed(statement: str, prefix: str, clock: str, up: str) -> str:
    return statement.format(s=prefix, now=clock, up=up)


_GET = "SELECT value FROM {s}answers WHERE key = :key"
_PUT = """\
INSERT INTO {s}answers (key, value, kept) VALUES (:key, :value, {now})
ON CONFLICT (key) DO UPDATE SET value = excluded.value, kept = excluded.kept"""
_PAGE = "SELECT key, value, kept FROM {s}answers WHERE key > :after ORDER BY key LIMIT :most"
_ADOPT = """\
INSERT INTO {s}answers (key, value, kept) VALUES (:key, :value, :kept)
ON CONFLICT (key) DO NOTHING"""
_OPEN_ACCOUNT = """\
INSERT INTO {s}spending (run, calls, usd, since) VALUES (:run, 0, 0, {now})
ON CONFLICT (run) DO NOTHING"""
_RESERVE = """\
UPDATE {s}spending SET calls = calls + 1, usd = usd + :usd WHERE run = :run
AND (:max_calls IS NULL OR calls < :max_calls) AND (:max_usd IS NULL OR usd + :usd <= :max_usd)"""
_SETTLE = "UPDATE {s}spending SET usd = usd + :usd WHERE run = :run"
_SPENT = "SELECT calls, usd FROM {s}spending WHERE run = :run"
_TAKE = """\
INSERT INTO {s}leases AS held (name, run, token, process, since, beat)
VALUES (:name, :run, :token, :process, {now}, {now})
ON CONFLICT (name) DO UPDATE SET run = excluded.run, token = excluded.token,
process = excluded.process, since = excluded.since, beat = excluded.beat
WHERE held.token = :token OR (held.token = :dead AND held.beat <= :beat)"""
_BEAT = "UPDATE {s}leases SET beat = {now} WHERE process = :process"
_HELD = "SELECT token FROM {s}leases WHERE process = :process"
_RELEASE = "DELETE FROM {s}leases WHERE token = :token"
_LEASES = "SELECT name, run, token, process, since, beat, {now}, {up} FROM {s}leases WHERE "
_DUE = """\
INSERT INTO {s}chores AS done (chore, at) VALUES (:chore, {now})
ON CONFLICT (chore) DO UPDATE SET at = excluded.at WHERE done.at < {now} - :every"""
_DROP_OLD = "DELETE FROM {s}answers WHERE kept < {now} - :age"
_DROP_MANY = """\
DELETE FROM {s}answers WHERE key IN (SELECT key FROM (
SELECT key, SUM(LENGTH(value)) OVER (ORDER BY kept DESC, key) AS total FROM {s}answers
) AS summed WHERE total > :size)"""
_DROP_ACCOUNTS = "DELETE FROM {s}spending WHERE since < {now} - :age"
_DROP_LEASES = "DELETE FROM {s}leases WHERE beat < {now} - :age"
_SIZE = "SELECT COUNT(*), COALESCE(SUM(LENGTH(value)), 0) FROM {s}answers"
