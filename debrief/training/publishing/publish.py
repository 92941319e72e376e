"""Publishing: stored training sets as a folder that ``load_dataset`` takes as splits.

The folder is ``<task>/<fingerprint>/{train,eval}.jsonl`` with the set's card beside them, and a
``README.md`` whose header tells a loader the splits and types. It belongs to one form: publishing
again replaces what has changed and takes away what is no longer there; the same sets give the
same bytes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.rubrics.model import Rubric
from debrief.scoring.model import SCORE_NAMES
from debrief.training.model import Split, Status
from debrief.training.publishing import preference, sharegpt
from debrief.training.publishing.forms import Form, Rubrics, form_named
from debrief.training.publishing.pages import readme
from debrief.training.publishing.parquet import write_parquet
from debrief.training.store import INDEX, LINES, LineRow, TrainingSetRow, training_path

MANIFEST = ".debrief.json"
SIDES: tuple[Split, ...] = ("train", "eval")


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


class Published(Struct, frozen=True, kw_only=True):
    """What came of publishing."""

    target: str
    form: Form
    sets: tuple[PublishedSet, ...]
    warnings: tuple[str, ...]
    changed: bool
    """False when the folder held the same before."""


class _Manifest(Struct, kw_only=True):
    form: str
    files: list[str] = []


def publish(lake: Lake, target: str, wanted: Wanted) -> Published:
    """Publish stored training sets.

    Args:
        lake: with the training sets.
        target: a folder or an fsspec URL (``s3://…``).
        wanted: which sets, in which form.

    Raises:
        InputError: there is no such form or set, the folder holds something else, a stored file
            is not what was written, or a line breaks the rules of who reads it.
    """
    form = form_named(wanted.form)
    rows = _stored_sets(lake, wanted)
    place = Lake(target)
    before = _manifest(place, form)
    rubrics = _rubrics(lake) if form.name == "reward" else {}
    sets: list[PublishedSet] = []
    files: list[str] = []
    changed = False
    for row in rows:
        with tempfile.TemporaryDirectory() as scratch:
            made = _Set(lake, row, form, rubrics, wanted, Path(scratch))
            sets.append(made.write())
            for name, source in made.files():
                files.append(name)
                changed |= place.write_file(name, source).changed
    page = readme(form, sets, parquet=wanted.parquet).encode()
    files.append("README.md")
    changed |= place.write_bytes("README.md", page).changed
    if form.name == "sharegpt":
        files.append("dataset_info.json")
        changed |= place.write_bytes("dataset_info.json", _dataset_info(sets)).changed
    for name in set(before.files) - set(files):
        place.remove(name)
        changed = True
    manifest = msgspec.json.encode(_Manifest(form=form.name, files=sorted(files)))
    place.write_bytes(MANIFEST, msgspec.json.format(manifest, indent=1) + b"\n")
    return Published(
        target=target,
        form=form,
        sets=tuple(sets),
        warnings=tuple(_warnings(form, sets)),
        changed=changed,
    )


class _Set:
    """One training set on its way to its files."""

    def __init__(
        self,
        lake: Lake,
        row: TrainingSetRow,
        form: Form,
        rubrics: Rubrics,
        wanted: Wanted,
        scratch: Path,
    ) -> None:
        self._lake = lake
        self._row = row
        self._form = form
        self._rubrics = rubrics
        self._wanted = wanted
        self._scratch = scratch
        self._counts: dict[Split, int] = dict.fromkeys(SIDES, 0)
        self._size = 0

    def write(self) -> PublishedSet:
        """Write the files of both sides to the scratch folder."""
        with ExitStack() as stack:
            sinks = {side: stack.enter_context(self._path(side).open("wb")) for side in SIDES}
            made = self._paired() if self._form.convert is None else self._converted()
            for side, line in made:
                sinks[side].write(line)
                self._counts[side] += 1
                self._size += len(line)
        if self._wanted.parquet:
            for side in SIDES:
                if self._counts[side]:
                    target = self._path(side, ".parquet")
                    write_parquet(self._path(side), target, self._form.columns)
        return PublishedSet(
            task=self._row.task,
            fingerprint=self._row.fingerprint,
            lines=self._counts,
            size=self._size,
        )

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield the finished files with their places in the folder."""
        folder = f"{self._row.task}/{self._row.fingerprint}"
        for side in SIDES:
            for suffix in (".jsonl", ".parquet"):
                path = self._path(side, suffix)
                if self._counts[side] and path.exists():
                    yield f"{folder}/{path.name}", path
        card = self._lake.read_bytes(
            training_path(self._row.task, self._row.fingerprint, ".card.md")
        )
        if card is not None:
            path = self._scratch / "card.md"
            path.write_bytes(card)
            yield f"{folder}/card.md", path

    def _path(self, side: Split, suffix: str = ".jsonl") -> Path:
        return self._scratch / f"{side}{suffix}"

    def _converted(self) -> Iterator[tuple[Split, bytes]]:
        convert = self._form.convert
        if convert is None:
            return
        for row, line in self._stored():
            if not self._is_wanted(row):
                continue
            for made in convert(line, self._rubrics):
                if not self._form.as_stored:
                    self._refuse_problems(row.session_id, made)
                yield row.split, made

    def _paired(self) -> Iterator[tuple[Split, bytes]]:
        entrants: dict[Split, list[preference.Entrant]] = {side: [] for side in SIDES}
        places: list[tuple[int, int, str]] = []
        for number, (row, line) in enumerate(self._stored()):
            places.append((row.offset, row.size, row.session_id))
            if self._is_wanted(row) and row.window == 1:
                entrant = preference.entrant_of(number, line, row.quality)
                entrants[row.split].append(entrant)
        with self._lake.open_bytes(self._name) as file:
            if file is None:
                return
            for side in SIDES:
                for pair in preference.pairs_of(entrants[side]):
                    better, worse = (
                        _at(file, places[number]) for number in (pair.chosen, pair.rejected)
                    )
                    made = preference.pair_line(better, worse, same_prompt=pair.same_prompt)
                    self._refuse_problems(places[pair.chosen][2], made)
                    yield side, made

    @property
    def _name(self) -> str:
        return training_path(self._row.task, self._row.fingerprint)

    def _stored(self) -> Iterator[tuple[LineRow, bytes]]:
        """Yield the stored lines in order; what is read must be what was written."""
        content = hashlib.sha256()
        partition = f"{self._row.task}/{self._row.fingerprint}"
        with self._lake.open_bytes(self._name) as file:
            if file is not None:
                for row in self._lake.read(LINES, partition, LineRow):
                    line = file.read(row.size)
                    content.update(line)
                    yield row, line
                content.update(file.read(1))
        if content.hexdigest() != self._row.lines_digest:
            raise InputError(
                self._lake.path(self._name),
                "is not what was written",
                "Make the training set again: debrief backfill --stage training_sets.",
            )

    def _is_wanted(self, row: LineRow) -> bool:
        wanted = self._wanted
        return row.quality >= wanted.min_overall_quality and wanted.status in (None, row.status)

    def _refuse_problems(self, session_id: str, line: bytes) -> None:
        for problem in self._form.problems(line):
            raise InputError(f"session {session_id} as {self._form.name}", problem)


def _at(file: IO[bytes], place: tuple[int, int, str]) -> bytes:
    file.seek(place[0])
    return file.read(place[1])


def _stored_sets(lake: Lake, wanted: Wanted) -> list[TrainingSetRow]:
    found: list[TrainingSetRow] = []
    for name in lake.names(INDEX, ".parquet"):
        partition = name.removeprefix(f"{INDEX}/").removesuffix(".parquet")
        found += [
            row
            for row in lake.read(INDEX, partition, TrainingSetRow)
            if wanted.task in ("", row.task) and wanted.fingerprint in ("", row.fingerprint)
        ]
    if not found:
        chosen = f"{wanted.task or 'any task'}, {wanted.fingerprint or 'any fingerprint'}"
        raise InputError(
            lake.url,
            f"holds no training set of {chosen}",
            "Make some with debrief run, or look at what there is below training/.",
        )
    return sorted(found, key=lambda row: (row.task, row.fingerprint))


def _manifest(place: Lake, form: Form) -> _Manifest:
    data = place.read_bytes(MANIFEST)
    if data is None:
        if place.read_bytes("README.md") is not None:
            raise InputError(
                place.url, "holds a README.md that is not ours", "Name an empty folder."
            )
        return _Manifest(form=form.name)
    try:
        manifest = msgspec.json.decode(data, type=_Manifest)
    except msgspec.DecodeError:
        return _Manifest(form=form.name)
    if manifest.form != form.name:
        raise InputError(
            place.url,
            f"holds training sets as {manifest.form}",
            "A folder is for one format: name another.",
        )
    return manifest


def _rubrics(lake: Lake) -> dict[str, Rubric]:
    return {
        f"{name}/{rubric.key}": rubric
        for name in SCORE_NAMES
        for rubric in lake.read("rubrics", name, Rubric)
    }


def _dataset_info(sets: Iterable[PublishedSet]) -> bytes:
    """Return what LLaMA-Factory reads to find the files."""
    info = {
        f"{made.name}.{side}": {
            "file_name": f"{made.task}/{made.fingerprint}/{side}.jsonl",
            **sharegpt.DATASET_INFO,
        }
        for made in sets
        for side in SIDES
        if made.lines[side]
    }
    return msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n"


def _warnings(form: Form, sets: Iterable[PublishedSet]) -> Iterator[str]:
    for made in sets:
        for side in SIDES:
            count = made.lines[side]
            if 0 < count < form.fewest:
                yield (
                    f"{made.name}: {count} {side} lines, and {form.reader} asks for {form.fewest}"
                )
        if not any(made.lines.values()):
            yield f"{made.name}: no line as {form.name}"
