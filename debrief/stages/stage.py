"""Declare a stage once: what it reads, how its rows are made, and what is shown of them.

The asset, its column schema, dependencies and code version, the digest that says whether a
partition is up to date, the order of the report, and what forgetting sweeps follow from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

from debrief.errors import ModelError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.stages.run import StageRun
from debrief.stages.shown import Shown

Row = TypeVar("Row", bound=msgspec.Struct)
ALL = "all"
"""The only partition of a stage that is made of all weeks together."""
_VERSION_LENGTH = 16


class Filled(Struct, Generic[Row], frozen=True):
    """A partition after its stage ran."""

    rows: list[Row]
    skipped: bool
    """Nothing that the rows are made from has changed, so that none was made."""
    fresh: int = 0
    """Rows that were not there before, or not so."""


def _nothing(run: StageRun, partition: str) -> object:
    return None


def _is_always_final(run: StageRun, partition: str, rows: Sequence[msgspec.Struct]) -> bool:
    return True


def _is_never_off(run: StageRun) -> str:
    return ""


class FilledTable(Struct, Generic[Row], frozen=True, kw_only=True):
    """A table that is filled partition by partition, each only when its inputs changed."""

    table: str
    row_type: type[Row]
    made_from: Callable[[StageRun, str], object] = _nothing
    """Returns what a partition's rows depend on; of a ``Stage``, beside the stages it reads."""
    make: Callable[[StageRun, str, list[Row]], Iterable[Row]] | None = None
    """Returns a partition's rows, given those that are stored; None where the asset makes them."""
    is_final: Callable[[StageRun, str, Sequence[Row]], bool] = _is_always_final
    """Says of a partition's rows whether they need not be made again from the same inputs."""
    why_off: Callable[[StageRun], str] = _is_never_off
    """Says why the stage is off, so that its rows stay as they are; empty where it is on."""
    calls_models: bool = False
    """In a dry run, rows are made and thrown away, to count the calls."""
    is_scoped: bool = False
    """It makes rows of the sessions of the run's scope alone."""

    def inputs(self, run: StageRun, partition: str) -> str:
        """Return the digest of all that a partition's rows depend on."""
        return digest_of(self.made_from(run, partition))

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
        return list(self.rows(run, partition, stored)) == stored

    def rows(self, run: StageRun, partition: str, stored: list[Row]) -> Iterable[Row]:
        """Make a partition's rows."""
        assert self.make is not None
        return self.make(run, partition, stored)

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
        rows = list(self.rows(run, partition, stored))
        # Rows of only some sessions are not all of the partition's.
        is_whole = is_same or not (self.is_scoped and run.scope.where)
        final = inputs if is_whole and self.is_final(run, partition, rows) else ""
        written = lake.write(self.table, partition, rows, self.row_type, lambda: final)
        return Filled(rows, skipped=False, fresh=_fresh(stored, rows) if written.changed else 0)

    def rehearse(self, run: StageRun, partition: str, stored: list[Row]) -> None:
        """Make rows and throw them away, so that what is asked is counted."""
        with suppress(ModelError):
            deque(self.rows(run, partition, stored), maxlen=0)


class Stage(FilledTable[Row], Generic[Row], frozen=True, kw_only=True):
    """A table of the lake that is an asset."""

    asset: str = ""
    """The asset's name; the table's by default."""
    doc: str
    """What the UI says of it."""
    group: str
    version: Callable[[], object] = tuple
    """Returns what the rows are made by beside the code that the stages before it share: numbers
    that are raised by hand, and the words of prompts."""
    reads: tuple[Stage[Any] | Read, ...] = ()
    partitions: Literal["week", "all", "pair"] = "week"
    shown: Callable[[StageRun, str, list[Row]], Shown] = lambda run, partition, rows: Shown()
    """Returns what the UI and the terminal show of a partition."""
    page: str = ""
    """The page that shows its rows; the sessions of the week by default."""
    pool: str = ""
    """Steps of one pool run one at a time, over all runs of an instance."""
    kinds: frozenset[str] = frozenset({"python", "jsonl"})
    may_quote: bool = False
    """A row may hold words of sessions without naming them."""
    holds_files: bool = False
    """A row of another session may hold files of a repository into which the sessions' work went.
    Such a row goes as a whole: running it again makes it anew."""

    @property
    def name(self) -> str:
        """Return the asset's name."""
        return self.asset or self.table

    @property
    def read_stages(self) -> tuple[Stage[Any], ...]:
        """Return the stages that are read."""
        return tuple(read.stage if isinstance(read, Read) else read for read in self.reads)

    def inputs(self, run: StageRun, partition: str) -> str:
        """Return the digest of all that a partition's rows depend on."""
        version = run.once(f"version of {self.table}", lambda: digest_of(self.version()))
        found = [
            read.part(run, partition)
            if isinstance(read, Read)
            else read.state(run.lake, partition, weekly=self.partitions == "week")
            for read in self.reads
        ]
        return digest_of(version, found, self.made_from(run, partition))

    def state(self, lake: Lake, partition: str, *, weekly: bool) -> object:
        """Return digests of this stage's rows as another stage sees them.

        Args:
            lake: with the rows.
            partition: of the other stage.
            weekly: the other stage is made week by week, so that it sees its own week of this one.
        """
        is_own = weekly and self.partitions == "week"
        partitions = [partition] if is_own else lake.partitions(self.table)
        return [upstream(lake, self.table, week=each) for each in partitions]

    def code_version(self) -> str:
        """Return the version of the code that makes the rows, and those before them.

        Dagster does not follow staleness through a dependency on all weeks.
        """
        before = [stage.code_version() for stage in self.read_stages]
        return digest_of(self.name, self.version(), before)[:_VERSION_LENGTH]


class Read(Struct, frozen=True):
    """A stage that another one reads in part: rows are made again only when that part changed."""

    stage: Stage[Any]
    part: Callable[[StageRun, str], object] = _nothing
    """Returns the part; None where whatever changes it also changes another stage that is read."""


def upstream(lake: Lake, *tables: str, week: str) -> str:
    """Return a digest of what the named tables hold of a week."""
    return digest_of([getattr(lake.stamp(table, week), "digest", None) for table in tables])


def _fresh(stored: Iterable[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> int:
    encode = msgspec.msgpack.Encoder().encode
    before = {encode(row) for row in stored}
    return sum(encode(row) not in before for row in rows)
