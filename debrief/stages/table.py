"""Fill a stage's table partition by partition, each only when its inputs changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from debrief.errors import ModelError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.stages.run import StageRun

Row = TypeVar("Row", bound=msgspec.Struct)


class Filled(Struct, Generic[Row], frozen=True):
    """A partition after its stage ran."""

    rows: list[Row]
    skipped: bool
    """Nothing that the rows are made from has changed, so that none was made."""
    fresh: int = 0
    """Rows that were not there before, or not so."""


def _is_always_final(run: StageRun, partition: str, rows: Sequence[msgspec.Struct]) -> bool:
    return True


def _is_never_off(run: StageRun) -> str:
    return ""


class TableStage(Struct, Generic[Row], frozen=True, kw_only=True):
    """A stage whose rows are one table of the lake."""

    table: str
    row_type: type[Row]
    inputs: Callable[[StageRun, str], str]
    """Returns the digest of all that a partition's rows depend on."""
    make: Callable[[StageRun, str, list[Row]], Iterable[Row]]
    """Returns a partition's rows, given those that are stored."""
    is_final: Callable[[StageRun, str, Sequence[Row]], bool] = _is_always_final
    """Says of a partition's rows whether they need not be made again from the same inputs."""
    why_off: Callable[[StageRun], str] = _is_never_off
    """Says why the stage is off, so that its rows stay as they are; empty where it is on."""
    calls_models: bool = False
    """In a dry run, rows are made and thrown away, to count the calls."""
    is_scoped: bool = False
    """It makes rows of the sessions of the run's scope alone."""

    def is_due(self, run: StageRun, partition: str) -> bool:
        """Return whether ``fill`` would make a partition's rows, were they final or not."""
        stamp = run.lake.stamp(self.table, partition)
        return run.scope.force or stamp is None or stamp.inputs != self.inputs(run, partition)

    def is_current(self, run: StageRun, partition: str) -> bool:
        """Return whether ``fill`` would leave a partition as it is.

        Rows that are not final are made to find that out, unless it takes a model.
        """
        if not self.is_due(run, partition) or self.why_off(run):
            return True
        stamp = run.lake.stamp(self.table, partition)
        if stamp is None or stamp.inputs or run.scope.force:
            return False
        if self.calls_models and run.evaluators.models is not None:
            return False
        stored = list(run.lake.read(self.table, partition, self.row_type))
        return list(self.make(run, partition, stored)) == stored

    def fill(self, run: StageRun, partition: str) -> Filled[Row]:
        """Make a partition's rows, unless they were made from the same inputs before."""
        lake, inputs = run.lake, self.inputs(run, partition)
        stamp = lake.stamp(self.table, partition)
        stored = list(lake.read(self.table, partition, self.row_type))
        is_same = stamp is not None and stamp.inputs == inputs
        if is_same and not run.scope.force:
            return Filled(stored, skipped=True)
        if self.calls_models and run.evaluators.dry_run:
            if run.evaluators.models is not None:
                self.rehearse(run, partition, stored)
            return Filled(stored, skipped=False)
        rows = list(self.make(run, partition, stored))
        # Rows of only some sessions are not all of the partition's.
        is_whole = is_same or not (self.is_scoped and run.scope.where)
        final = inputs if is_whole and self.is_final(run, partition, rows) else ""
        written = lake.write(self.table, partition, rows, self.row_type, lambda: final)
        return Filled(rows, skipped=False, fresh=_fresh(stored, rows) if written.changed else 0)

    def rehearse(self, run: StageRun, partition: str, stored: list[Row]) -> None:
        """Make rows and throw them away, so that what is asked is counted."""
        with suppress(ModelError):
            deque(self.make(run, partition, stored), maxlen=0)


def upstream(lake: Lake, *tables: str, week: str) -> str:
    """Return a digest of what the named tables hold of a week."""
    return digest_of([getattr(lake.stamp(table, week), "digest", None) for table in tables])


def _fresh(stored: Iterable[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> int:
    encode = msgspec.msgpack.Encoder().encode
    before = {encode(row) for row in stored}
    return sum(encode(row) not in before for row in rows)
