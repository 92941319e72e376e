"""A folder of exported sets that ``load_dataset`` takes as splits: its files, README and cards.

It is ``<task>/<fingerprint>/{train,eval}.jsonl`` with the set's card beside them, or one file of a
side for all sets, whose lines say which set they are of; and a ``README.md`` whose header gives
loaders the splits and types. A folder belongs to one form. Exporting again replaces what has
changed and removes what is no longer there; the same sets give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.files import write_folder
from debrief.lake import Creation, Lake
from debrief.markdown import counted, plain
from debrief.redaction import refuse_secrets
from debrief.reports import Markdown, report
from debrief.training.model import Split
from debrief.training.publishing.form import (
    Columns,
    Form,
    as_features,
    check_lines,
    check_parquet,
    encoded,
    with_readable_numbers,
    write_parquet,
)

SIDES: tuple[Split, ...] = ("train", "eval")
ALL = "default"
"""The configuration that holds all sets."""


class PublishedSet(Struct, frozen=True, kw_only=True):
    """What was exported of one training set."""

    task: str
    fingerprint: str
    lines: dict[Split, int]
    size: int
    """Bytes of JSONL."""

    @property
    def name(self) -> str:
        """The name under which a loader knows it."""
        return f"{self.task}.{self.fingerprint}"

    @property
    def count(self) -> int:
        """Its lines on both sides."""
        return sum(self.lines.values())


class DataFile(Struct, frozen=True, kw_only=True):
    """A file of lines."""

    config: str
    """The set that it is of; empty for one of all sets."""
    side: Split
    path: str
    """Relative to the folder."""
    lines: int
    size: int


_SIZES = (("n<1K", 1_000), ("1K<n<10K", 10_000), ("10K<n<100K", 100_000), ("100K<n<1M", 10**6))


def header(
    data: Sequence[DataFile], features: list[dict[str, Any]], licence: str
) -> dict[str, Any]:
    """Return what a dataset's page tells loaders and the Hub."""
    lines = sum(data_file.lines for data_file in data)
    size = next((name for name, end in _SIZES if lines < end), "1M<n<10M")
    header: dict[str, Any] = {"license": licence.lower()} if licence else {}
    header |= {"task_categories": ["text-generation"], "size_categories": [size]}
    header |= {"tags": ["coding-agents", "tool-use"], "configs": [], "dataset_info": []}
    groups = {ALL: list(data)}
    for data_file in data:
        if data_file.config:
            groups.setdefault(data_file.config, []).append(data_file)
    for name, group in groups.items():
        files, splits = [], []
        for side in SIDES:
            of_side = [data_file for data_file in group if data_file.side == side]
            if of_side:
                files.append({"split": side, "path": [data_file.path for data_file in of_side]})
                size_of_side = sum(data_file.size for data_file in of_side)
                count = sum(data_file.lines for data_file in of_side)
                splits.append({"name": side, "num_bytes": size_of_side, "num_examples": count})
        default = {"default": True} if name == ALL else {}
        header["configs"].append({"config_name": name, "data_files": files, **default})
        info = {"config_name": name, "features": features, "splits": splits}
        header["dataset_info"].append(info)
    return header


def page(
    head: dict[str, Any],
    form: Form,
    sets: Sequence[PublishedSet],
    data: Sequence[DataFile],
    notes: Markdown,
    *,
    parquet: bool,
) -> str:
    """Return the page of a folder: for people, and in its header for loaders and the Hub.

    Args:
        head: the header.
        form: of the files.
        sets: that are in the folder.
        data: its files of lines.
        notes: the page's other parts, how lines were chosen and what they are.
        parquet: there are Parquet files beside the JSONL.
    """
    import yaml

    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    rows = [
        (
            Markdown(f"`{plain(made.task)}`"),
            Markdown(f"`{plain(made.fingerprint)}`"),
            str(made.lines["train"]),
            str(made.lines["eval"]),
            f"{made.size:,}",
            Markdown(f"[card]({made.task}/{made.fingerprint}/card.md)") if made.count else "",
        )
        for made in sets
    ]
    named = next((data_file.config for data_file in data if data_file.config), ALL)
    body = report(
        "export",
        form=Markdown(form.name),
        reader=Markdown(form.reader),
        note=Markdown(form.note),
        parquet=parquet,
        sets=rows,
        named=Markdown(named),
        notes=notes,
    )
    return f"---\n{text}---\n{body}"


MANIFEST = ".debrief.json"
_UNFINISHED = re.compile(r"\..+\.(jsonl?|parquet|md)\.[0-9a-f]{8}")
"""As ``files.atomic`` names what it writes."""


class Published(Struct, frozen=True, kw_only=True):
    """The outcome of an export."""

    target: str
    form: Form
    sets: tuple[PublishedSet, ...]
    files: tuple[DataFile, ...]
    """Empty when no set has a line in the form: then nothing was written."""
    warnings: tuple[str, ...]
    changed: bool
    """False when the folder held the same before."""
    unlicensed: int = 0
    """Stored lines among those that were taken whose repositories' licence is not known."""
    decontaminated: str = ""
    """What a search for benchmarks' problems came to; empty without one."""
    account: str = ""
    """What became of the sessions of the sets, in a sentence."""


class _Manifest(Struct, kw_only=True, omit_defaults=True):
    form: str
    files: list[str] = []
    unfinished: bool = False
    """It is being written, or whoever wrote it was killed."""


class OwnFolder:
    """A folder of files in one form that is being written; for one use.

    Args:
        target: a folder or an fsspec URL.
        form: what its files are.

    Raises:
        InputError: it holds something else.
    """

    def __init__(self, target: str, form: str) -> None:
        self.place = Lake(target)
        self.changed = False
        """It does not hold the same as before."""
        self._form_name = form
        self._before = _manifest(self.place, form)
        self._files: list[str] = []
        self._listed, self._is_begun = set(self._before.files), False

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the folder.

        Raises:
            InputError: there is a secret in it.
        """
        refuse_secrets(name, data)
        self._begin([name])
        self._files.append(name)
        self.changed |= self.place.write_bytes(name, data).changed

    def write_folder(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write a folder of the folder, whole or not at all.

        Args:
            name: of the folder; ``target`` has to be one of this machine.
            files: by path within it; they have passed the gate for secrets.
        """
        if not self.holds(name, files):
            self._begin(f"{name}/{path}" for path in files)
            write_folder(Path(self.place.path(name)), files, replace=True)
            self.changed = True
        self._files += [f"{name}/{path}" for path in files]

    def holds(self, name: str, files: Mapping[str, bytes]) -> bool:
        """Return whether a folder of the folder has just these files."""
        folder = Path(self.place.path(name))
        there = {path for path in folder.rglob("*") if path.is_file()} if folder.is_dir() else ()
        expected = {folder / path: data for path, data in files.items()}
        return expected.keys() == set(there) and all(
            path.read_bytes() == data for path, data in expected.items()
        )

    def _begin(self, names: Iterable[str]) -> None:
        """Note files before they change: what a killed export left is known as ours, and as half
        an export."""
        listed = self._listed.union(names)
        if not self._is_begun or listed != self._listed:
            self._listed, self._is_begun = listed, True
            half = _Manifest(form=self._form_name, files=sorted(listed), unfinished=True)
            _write_manifest(self.place, half)

    def close(self) -> None:
        """Remove what is no longer among its files, and note which these are."""
        for name in set(self._before.files) - set(self._files):
            _remove(self.place, name)
            self.changed = True
        _write_manifest(self.place, _Manifest(form=self._form_name, files=sorted(self._files)))


class PublishedFolder(OwnFolder):
    """A folder of sets in one form that is being written; a context, for one use.

    Args:
        target: a folder or an fsspec URL.
        form: of the sets.
        parquet: there are Parquet files beside the JSONL.
        one_file: the lines of all sets are in one file of each side.
        licence: of the whole, for its page; an SPDX identifier, empty when not known.

    Raises:
        InputError: it holds something else.
    """

    def __init__(
        self,
        target: str,
        form: Form,
        *,
        parquet: bool = False,
        one_file: bool = False,
        licence: str = "",
    ) -> None:
        super().__init__(target, form.name)
        self._target = target
        self._form = form
        self._parquet = parquet
        self._licence = licence
        self._sets: list[PublishedSet] = []
        self._data: list[DataFile] = []
        self.as_text = 0
        """Numbers that loaders refuse, and that are written as text."""
        columns = self._columns_of(one_file)
        self._columns = columns
        self._joined = self._sink("") if one_file else None

    def __enter__(self) -> PublishedFolder:
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        if kind is not None and self._joined:
            self._joined.__exit__(kind, *error)

    def write_set(
        self, task: str, fingerprint: str, lines: Iterable[tuple[Split, dict[str, Any]]]
    ) -> PublishedSet:
        """Write the lines of a set, each with its side; on an error, no file is replaced.

        They have passed the gate for secrets when they were stored.
        """
        sink = self._joined or self._sink(f"{task}/{fingerprint}/")
        before = dict(sink.sizes)
        counts: dict[Split, int] = dict.fromkeys(SIDES, 0)
        columns = {"task": task, "fingerprint": fingerprint} if self._joined else {}
        with ExitStack() as stack:
            if not self._joined:
                stack.enter_context(sink)
            for side, line in lines:
                counts[side] += 1
                made_line = encoded(line if self._form.is_closed else {**line, **columns})
                data, as_text = with_readable_numbers(made_line)
                self.as_text += as_text
                sink.write(side, data)
        size = sum(sink.sizes[side] - before[side] for side in SIDES)
        made = PublishedSet(task=task, fingerprint=fingerprint, lines=counts, size=size)
        self._sets.append(made)
        if not self._joined:
            self._add(made.name, sink)
        return made

    def _sink(self, prefix: str) -> _Sink:
        return _Sink(self.place, prefix, self._columns, self._parquet, self._begin)

    def _add(self, config: str, sink: _Sink) -> None:
        for side in SIDES:
            if lines := sink.counts[side]:
                path, size = f"{sink.prefix}{side}.jsonl", sink.sizes[side]
                self._data.append(
                    DataFile(config=config, side=side, path=path, lines=lines, size=size)
                )
        self._files += sink.written
        self.changed |= sink.changed

    def _columns_of(self, one_file: bool) -> Columns:
        joined = one_file and not self._form.is_closed
        beside = {"task": "string", "fingerprint": "string"} if joined else {}
        return {**self._form.columns, **beside}

    def finish(self, notes: Markdown) -> Published:
        """Write what loaders need to find the sets, and remove what is no longer among them.

        Nothing is written when no set has a line.

        Args:
            notes: parts of the page, how lines were chosen and what they are.
        """
        form = self._form
        if self._joined:
            with self._joined as sink:
                pass
            self._add("", sink)
        if self._data:
            data = {
                f"{data_file.config or ALL}.{data_file.side}": data_file.path
                for data_file in self._data
            }
            self.write("README.md", self._page(notes).encode())
            for name, content in form.extra_files(data).items():
                self.write(name, content)
            self.close()
        return Published(
            target=self._target,
            form=form,
            sets=tuple(self._sets),
            files=tuple(self._data),
            warnings=tuple(_warnings(form, self._sets, self._data)),
            changed=self.changed,
        )

    def _page(self, notes: Markdown) -> str:
        features = as_features(self._columns)
        head = header(self._data, features, self._licence)
        return page(head, self._form, self._sets, self._data, notes, parquet=self._parquet)


class _Sink:
    """The files of lines below a prefix, one of each side, that are being written; a context.

    ``before`` is called with their names before the first of them is there.
    """

    def __init__(
        self,
        place: Lake,
        prefix: str,
        columns: Columns,
        parquet: bool,
        before: Callable[[Iterable[str]], None],
    ) -> None:
        self.prefix = prefix
        self._before = before
        self.counts: dict[Split, int] = dict.fromkeys(SIDES, 0)
        self.sizes: dict[Split, int] = dict.fromkeys(SIDES, 0)
        self.written: list[str] = []
        self.changed = False
        self._columns = columns
        self._parquet = parquet
        self._place = place
        self._stack = ExitStack()
        self._creations: dict[str, Creation] = {}

    def __enter__(self) -> _Sink:
        return self

    def write(self, side: Split, line: bytes) -> None:
        """Add a line."""
        self.counts[side] += 1
        self.sizes[side] += self._creation(f"{side}.jsonl").file.write(line)

    def _creation(self, name: str) -> Creation:
        if name not in self._creations:
            place = self._place.create(f"{self.prefix}{name}", durable=False)
            self._creations[name] = self._stack.enter_context(place)
        return self._creations[name]

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            if kind is None:
                self._check()
                if self._creations:
                    self._before(creation.name for creation in self._creations.values())
        except BaseException as failure:
            self._stack.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._stack.__exit__(kind, *error)
        self.written += [creation.name for creation in self._creations.values()]
        self.changed = any(creation.changed for creation in self._creations.values())

    def _check(self) -> None:
        """Read back what was written, and write it as Parquet where that is asked for."""
        for side in SIDES:
            if not self.counts[side]:
                continue
            name = f"{self.prefix}{side}.jsonl"
            lines = self._creation(f"{side}.jsonl").file
            lines.seek(0)
            check_lines(name, lines, self._columns)
            if self._parquet:
                lines.seek(0)
                rows = self._creation(f"{side}.parquet").file
                write_parquet(lines, rows, self._columns)
                check_parquet(f"{self.prefix}{side}.parquet", rows, self.counts[side])


def exported_files(folder: Path) -> list[str]:
    """Return the files of an export, relative to its local folder."""
    return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest).files


def files_of(place: Lake) -> set[str]:
    """Return the files of whatever export is in a place; none where there is none."""
    return set(_read_manifest(place).files)


def is_unfinished(place: Lake) -> bool:
    """Return whether an export to a place was killed, or is under way."""
    return _read_manifest(place).unfinished


def _read_manifest(place: Lake, form: str = "") -> _Manifest:
    """Return the manifest of a place; an empty one where there is none that can be read."""
    try:
        return msgspec.json.decode(place.read_bytes(MANIFEST) or b"", type=_Manifest)
    except msgspec.DecodeError:
        return _Manifest(form=form)


def remove_unfinished(place: Lake) -> None:
    """Remove what killed exports to a place have begun to write."""
    for depth in ("", "*/", "*/*/") if "://" not in place.url else ():
        for path in Path(place.url).glob(f"{depth}.*.????????"):
            if _UNFINISHED.fullmatch(path.name):
                path.unlink(missing_ok=True)


def remove_files(place: Lake, names: Iterable[str]) -> None:
    """Remove some files of an export, and take them out of its list, where it has one."""
    gone = set(names)
    for name in gone:
        _remove(place, name)
    if (data := place.read_bytes(MANIFEST)) is not None:
        manifest = msgspec.json.decode(data, type=_Manifest)
        manifest.files = [name for name in manifest.files if name not in gone]
        _write_manifest(place, manifest)


def _remove(place: Lake, name: str) -> None:
    """Remove a file, and the folders below the place's top that are empty then."""
    place.remove(name)
    for folder in Path(name).parents[:-1] if "://" not in place.url else ():
        with suppress(OSError):  # others are in it
            Path(place.path(str(folder))).rmdir()


def _write_manifest(place: Lake, manifest: _Manifest) -> None:
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    place.write_bytes(MANIFEST, data + b"\n")


def _manifest(place: Lake, form: str) -> _Manifest:
    if place.read_bytes(MANIFEST) is None and place.read_bytes("README.md") is not None:
        raise InputError(place.url, "holds a README.md that is not ours", "Name an empty folder.")
    manifest = _read_manifest(place, form)
    if manifest.form != form:
        reason = f"holds an export as {manifest.form}"
        raise InputError(place.url, reason, "A folder is for one format: name another.")
    return manifest


def _warnings(form: Form, sets: Iterable[PublishedSet], data: Sequence[DataFile]) -> Iterator[str]:
    for data_file in data:
        if data_file.lines < form.min_lines:
            asked = f"{form.reader} asks for {form.min_lines}"
            yield f"{data_file.path}: {counted(data_file.lines, 'line')}, and {asked}"
    if not data:
        yield f"no line as {form.name}: nothing was written"
    elif empty := sum(not made.count for made in sets):
        yield f"{counted(empty, 'set')} without a line as {form.name}"
