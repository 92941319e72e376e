"""One stored training set on its way to its published files."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from typing import IO, TypeAlias
from zlib import crc32

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.lake import Creation, Lake
from debrief.training.model import Split, Status
from debrief.training.publishing import preference
from debrief.training.publishing.conversations import Line, Made, StoredLine
from debrief.training.publishing.forms import Form, Rubrics
from debrief.training.publishing.parquet import ParquetFile
from debrief.training.publishing.set_card import published_card
from debrief.training.publishing.single_calls import with_single_calls
from debrief.training.publishing.streams import (
    WRITTEN_AT_ONCE,
    ReadsAhead,
    WritesTogether,
    lines_anywhere,
    lines_in,
    reader,
)
from debrief.training.store import LINES, PlacedLine, TrainingSetRow, training_path
from debrief.training.validation import validate_line

SIDES: tuple[Split, ...] = ("train", "eval")
Parts: TypeAlias = Sequence[Line]
"""Of one finished line."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be published."""

    form: str = "messages"
    task: str = ""
    """Empty: every task."""
    fingerprint: str = ""
    """Empty: every fingerprint."""
    parquet: bool = False
    """Parquet files beside the JSONL."""
    min_overall_quality: float = 0.0
    status: Status | None = None
    """None: lines of any status."""
    single_calls: bool = False
    """Calls made at once are told one after the other."""


class PublishedSet(Struct, frozen=True, kw_only=True):
    """What came of one training set."""

    task: str
    fingerprint: str
    lines: dict[Split, int]
    size: int
    """Bytes of JSONL."""

    @property
    def name(self) -> str:
        """The name under which a loader knows it."""
        return f"{self.task}.{self.fingerprint}"


class SetPublisher:
    """Publishes one training set; of no use twice.

    Args:
        lake: with the training set.
        place: the folder that it goes to.
        row: the set.
        form: what its lines become.
        rubrics: whose texts stand beside scores.
        wanted: which lines.
    """

    def __init__(
        self,
        lake: Lake,
        place: Lake,
        row: TrainingSetRow,
        form: Form,
        rubrics: Rubrics,
        wanted: Wanted,
    ) -> None:
        self.files: list[str] = []
        """Those that make up the set now, relative to the folder."""
        self.changed = False
        self._lake = lake
        self._place = place
        self._row = row
        self._form = form
        self._rubrics = rubrics
        self._wanted = wanted
        self._name = training_path(row.task, row.fingerprint)

    def publish(self) -> PublishedSet:
        """Write the files of both sides, and the card beside them.

        Raises:
            InputError: the stored file is not what was written, or a line breaks the rules of
                who reads it; nothing of the set is replaced then.
        """
        counts: dict[Split, int] = dict.fromkeys(SIDES, 0)
        size = 0
        with ExitStack() as stack:
            created = {side: stack.enter_context(self._create(side, ".jsonl")) for side in SIDES}
            sinks = {side: WritesTogether(one.file) for side, one in created.items()}
            tables = self._tables(stack) if self._wanted.parquet else {}
            file = stack.enter_context(self._lake.open_bytes(self._name))
            for side, line in self._made(file, stack.enter_context(reader())):
                size += sinks[side].add(line)
                counts[side] += 1
                if tables:
                    tables[side][1].add(b"".join(line))
            for sink in sinks.values():
                sink.close()
            for _, table in tables.values():
                table.close()
            everything = [*created.items(), *((side, one) for side, (one, _) in tables.items())]
            for side, creation in everything:
                creation.keep = counts[side] > 0
        for side, creation in everything:
            if counts[side]:
                self._keep(creation.name, creation.changed)
        made = PublishedSet(
            task=self._row.task, fingerprint=self._row.fingerprint, lines=counts, size=size
        )
        self._publish_card(made)
        return made

    def _create(self, side: Split, suffix: str) -> AbstractContextManager[Creation]:
        return self._place.create(self._target(f"{side}{suffix}"), durable=False)

    def _tables(self, stack: ExitStack) -> dict[Split, tuple[Creation, ParquetFile]]:
        tables: dict[Split, tuple[Creation, ParquetFile]] = {}
        for side in SIDES:
            creation = stack.enter_context(self._create(side, ".parquet"))
            tables[side] = creation, ParquetFile(creation.file, self._form.columns)
        return tables

    def _publish_card(self, made: PublishedSet) -> None:
        name = training_path(self._row.task, self._row.fingerprint, ".card.md")
        stored = self._lake.read_bytes(name)
        if stored is not None:
            card = published_card(
                stored.decode(),
                name=made.name,
                form=self._form.name,
                lines=made.lines,
                min_overall_quality=self._wanted.min_overall_quality,
                status=self._wanted.status,
            )
            target = self._target("card.md")
            with self._place.create(target, durable=False) as creation:
                creation.file.write(card.encode())
            self._keep(target, creation.changed)

    def _keep(self, name: str, changed: bool) -> None:
        self.files.append(name)
        self.changed |= changed

    def _target(self, name: str) -> str:
        return f"{self._row.task}/{self._row.fingerprint}/{name}"

    def _made(self, file: IO[bytes] | None, worker: Executor) -> Iterator[tuple[Split, Parts]]:
        """Yield the finished lines; at the end, what was read must be what was written."""
        made = self._converted if self._form.convert is not None else self._paired
        try:
            same = yield from made(file, worker)
        except msgspec.DecodeError:
            same = False
        if not same:
            raise InputError(
                self._lake.path(self._name),
                "is not what was written",
                "Make the training set again: debrief backfill --stage training_sets.",
            )

    def _converted(
        self, file: IO[bytes] | None, worker: Executor
    ) -> Generator[tuple[Split, Parts], None, bool]:
        """Yield converted lines; return whether what was read is what was written."""
        convert = self._form.convert
        if convert is None:
            return True
        with lines_in(file) as at:
            lines = ReadsAhead(at, self._rows(), worker)
            for row, line in lines:
                if self._is_wanted(row):
                    told = self._told(line, row.outline)
                    for made in convert(told, self._rubrics):
                        yield row.split, self._checked(told, made)
            return crc32(at(lines.end, 1), lines.checksum) == self._row.lines_checksum

    def _paired(
        self, file: IO[bytes] | None, worker: Executor
    ) -> Generator[tuple[Split, Parts], None, bool]:
        """Yield pairs of lines; return whether what was read is what was written."""
        with ExitStack() as stack:
            at = stack.enter_context(lines_anywhere(file))
            kept = stack.enter_context(tempfile.TemporaryFile(buffering=WRITTEN_AT_ONCE))
            entrants: dict[Split, list[preference.Entrant]] = {side: [] for side in SIDES}
            places: list[tuple[int, int, int, int]] = []
            end = 0
            for number, row in enumerate(self._rows()):
                size = kept.write(row.outline)
                places.append((row.offset, row.size, end, size))
                end += size
                if self._is_wanted(row) and row.window == 1:
                    opening = row.opening or StoredLine(at(row.offset, row.size)).opening
                    entrants[row.split].append(
                        preference.Entrant(number=number, quality=row.quality, opening=opening)
                    )
            kept.flush()
            checksum = worker.submit(at.checksum)
            outlines = stack.enter_context(lines_in(kept))

            def told(number: int) -> StoredLine:
                offset, size, place, length = places[number]
                return self._told(at(offset, size), outlines(place, length))

            for side in SIDES:
                for pair in preference.pairs_of(entrants[side]):
                    better, worse = told(pair.chosen), told(pair.rejected)
                    made = preference.pair_line(better, worse, same_prompt=pair.same_prompt)
                    if made is not None:
                        yield side, self._checked(better, made)
            return checksum.result() == self._row.lines_checksum

    def _rows(self) -> Iterator[PlacedLine]:
        return self._lake.read(LINES, f"{self._row.task}/{self._row.fingerprint}", PlacedLine)

    def _told(self, line: Line, outline: Line) -> StoredLine:
        stored = StoredLine(line, outline)
        made = with_single_calls(stored) if self._wanted.single_calls else stored
        if made is not stored:
            self._checked(made, ((made.line,), validate_line(bytes(made.line))))
        return made

    def _is_wanted(self, row: PlacedLine) -> bool:
        wanted = self._wanted
        return row.quality >= wanted.min_overall_quality and wanted.status in (None, row.status)

    def _checked(self, stored: StoredLine, made: Made) -> Parts:
        line, problems = made
        for problem in problems:
            session_id = msgspec.json.decode(stored.session_id)
            raise InputError(f"session {session_id} as {self._form.name}", problem)
        return line
