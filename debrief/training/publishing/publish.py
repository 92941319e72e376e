"""Export of stored training sets, line by line: decoded, converted to a form, encoded."""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.lake import Creation, Lake
from debrief.redaction import contains_secret
from debrief.rubrics.model import Rubric
from debrief.scoring.model import SCORE_NAMES
from debrief.training.model import Split, Status
from debrief.training.publishing.columns import ParquetFile
from debrief.training.publishing.folder import (
    SIDES,
    Published,
    PublishedFolder,
    PublishedSet,
    published_card,
)
from debrief.training.publishing.form import (
    Form,
    Rubrics,
    StoredLine,
    decoded,
    encoded,
    with_single_calls,
)
from debrief.training.publishing.forms import form_named
from debrief.training.publishing.preference import pairs_of
from debrief.training.store import INDEX, LINES, LineRow, TrainingSetRow, training_path

_SINGLE_CALLS = "Calls made at once stand one after the other, each before its result."


class ExportOptions(Struct, frozen=True, kw_only=True):
    """Which sets and lines are exported, and how."""

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
    """Calls made at once become one after the other."""


def publish(lake: Lake, target: str, options: ExportOptions) -> Published:
    """Export stored training sets to a folder that ``load_dataset`` takes as splits.

    Args:
        lake: with the training sets.
        target: a folder or an fsspec URL (``s3://…``).
        options: which sets, in which form.

    Raises:
        InputError: there is no such form or set, the folder holds something else, a stored file
            is not what was written, or a line breaks the rules of who reads it.
    """
    form = form_named(options.form)
    if options.single_calls:
        form = replace(form, note=f"{form.note} {_SINGLE_CALLS}")
    rows = _stored_sets(lake, options)
    folder = PublishedFolder(target, form, parquet=options.parquet)
    rubrics = _rubrics(lake)
    for row in rows:
        _publish_set(lake, folder, row, form, rubrics, options)
    return folder.finish()


def _stored_sets(lake: Lake, options: ExportOptions) -> list[TrainingSetRow]:
    rows = [
        row
        for partition in lake.partitions(INDEX)
        for row in lake.read(INDEX, partition, TrainingSetRow)
        if options.task in ("", row.task) and options.fingerprint in ("", row.fingerprint)
    ]
    if not rows:
        chosen = f"{options.task or 'any task'}, {options.fingerprint or 'any fingerprint'}"
        raise InputError(
            lake.url,
            f"holds no training set of {chosen}",
            "Make some with debrief run, or look at what there is below training/.",
        )
    return sorted(rows, key=lambda row: (row.task, row.fingerprint))


def _rubrics(lake: Lake) -> dict[str, Rubric]:
    """Return the rubrics whose texts may be exported: lines have passed the gate for secrets, and
    these stand beside them."""
    return {
        f"{name}/{rubric.key}": rubric
        for name in SCORE_NAMES
        for rubric in lake.read("rubrics", name, Rubric)
        if not contains_secret(msgspec.json.encode(rubric))
    }


def _publish_set(
    lake: Lake,
    folder: PublishedFolder,
    row: TrainingSetRow,
    form: Form,
    rubrics: Rubrics,
    options: ExportOptions,
) -> None:
    """Write the files of both sides of a set, and its card; on an error, none is replaced."""
    path = f"{row.task}/{row.fingerprint}"
    created: list[Creation] = []
    with ExitStack() as stack:
        sides = {
            side: _SideFiles(stack, folder.place, f"{path}/{side}", form, parquet=options.parquet)
            for side in SIDES
        }
        for side, line in _made_lines(lake, row, form, rubrics, options):
            sides[side].add(encoded(line))
        for one in sides.values():
            created += one.close()
    made = PublishedSet(
        task=row.task,
        fingerprint=row.fingerprint,
        lines={side: one.lines for side, one in sides.items()},
        size=sum(one.size for one in sides.values()),
    )
    card = lake.read_bytes(training_path(row.task, row.fingerprint, ".card.md"))
    if card is not None:
        text = published_card(
            card.decode(),
            made,
            form.name,
            min_overall_quality=options.min_overall_quality,
            status=options.status,
        )
        with folder.place.create(f"{path}/card.md", durable=False) as creation:
            creation.file.write(text.encode())
        created.append(creation)
    files = [creation.name for creation in created]
    folder.add(made, files, changed=any(creation.changed for creation in created))


class _SideFiles:
    """The files of one side of a set."""

    def __init__(
        self, stack: ExitStack, place: Lake, name: str, form: Form, *, parquet: bool
    ) -> None:
        self.lines = 0
        self.size = 0
        self._jsonl = stack.enter_context(place.create(f"{name}.jsonl", durable=False))
        self._created = [self._jsonl]
        self._table: ParquetFile | None = None
        if parquet:
            created = stack.enter_context(place.create(f"{name}.parquet", durable=False))
            self._created.append(created)
            self._table = ParquetFile(created.file, form.columns)

    def add(self, line: bytes) -> None:
        self.size += self._jsonl.file.write(line)
        self.lines += 1
        if self._table:
            self._table.add(line)

    def close(self) -> list[Creation]:
        """Finish the files and return them: none of them if there was no line."""
        if self._table:
            self._table.close()
        for creation in self._created:
            creation.keep = self.lines > 0
        return self._created if self.lines else []


def _made_lines(
    lake: Lake, row: TrainingSetRow, form: Form, rubrics: Rubrics, options: ExportOptions
) -> Iterator[tuple[Split, object]]:
    """Yield the lines of one stored set that are exported, converted, with their sides."""
    path = training_path(row.task, row.fingerprint)
    rows = [
        line
        for line in lake.read(LINES, f"{row.task}/{row.fingerprint}", LineRow)
        if line.quality >= options.min_overall_quality and options.status in (None, line.status)
    ]
    with lake.open_bytes(path) as stored, tempfile.TemporaryFile() as copy:
        file = stored or io.BytesIO()
        if form.convert is not None:
            for line in rows:
                source = _stored_line(lake, path, file, line, options)
                try:
                    for made in form.convert(source, rubrics):
                        yield line.split, made
                except ValueError as error:
                    culprit = f"session {line.session_id} as {form.name}"
                    raise InputError(culprit, str(error)) from error
        elif form.pair is not None:
            # Pairs are read from anywhere, which an object store is slow at.
            shutil.copyfileobj(file, copy)
            for side in SIDES:
                firsts = (line for line in rows if line.split == side and line.window == 1)
                for one, other, same_prompt in pairs_of(firsts):
                    better = _stored_line(lake, path, copy, one, options)
                    worse = _stored_line(lake, path, copy, other, options)
                    made = form.pair(better, worse, same_prompt)
                    if made is not None:
                        yield side, made


def _stored_line(
    lake: Lake, path: str, file: IO[bytes], row: LineRow, options: ExportOptions
) -> StoredLine:
    file.seek(row.offset)
    data = file.read(row.size)
    if hashlib.sha256(data).hexdigest() != row.digest:
        raise InputError(
            lake.path(path),
            "is not what was written",
            "Make the training set again: debrief backfill --stage training_sets.",
        )
    line = decoded(data)
    return with_single_calls(line) if options.single_calls else line
