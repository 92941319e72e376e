"""Publishing: stored training sets as a folder that ``load_dataset`` takes as splits.

The folder is ``<task>/<fingerprint>/{train,eval}.jsonl`` with the set's card beside them, and a
``README.md`` whose header tells a loader the splits and types. It belongs to one form: publishing
again replaces what has changed and takes away what is no longer there; the same sets give the
same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.redaction import contains_secret
from debrief.rubrics.model import Rubric
from debrief.scoring.model import SCORE_NAMES
from debrief.training.publishing import sharegpt
from debrief.training.publishing.forms import Form, form_named
from debrief.training.publishing.one_set import SIDES, PublishedSet, SetPublisher, Wanted
from debrief.training.publishing.pages import readme
from debrief.training.publishing.single_calls import NOTE as SINGLE_CALLS
from debrief.training.store import INDEX, TrainingSetRow

MANIFEST = ".debrief.json"


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
    if wanted.single_calls:
        form = replace(form, note=f"{form.note} {SINGLE_CALLS}")
    rows = _stored_sets(lake, wanted)
    folder = PublishedFolder(target, form, parquet=wanted.parquet)
    rubrics = _rubrics(lake) if form.name == "reward" else {}
    for row in rows:
        made = SetPublisher(lake, folder.place, row, form, rubrics, wanted)
        folder.add(made.publish(), made.files, changed=made.changed)
    return folder.finish()


class PublishedFolder:
    """A folder of sets in one form, on its way to be loaded; of no use twice.

    Args:
        target: a folder or an fsspec URL.
        form: of the sets.
        parquet: there are Parquet files beside the JSONL.

    Raises:
        InputError: it holds something else.
    """

    def __init__(self, target: str, form: Form, *, parquet: bool = False) -> None:
        self.place = Lake(target)
        self._target = target
        self._form = form
        self._parquet = parquet
        self._before = _manifest(self.place, form)
        self._sets: list[PublishedSet] = []
        self._files: list[str] = []
        self._changed = False

    def add(self, made: PublishedSet, files: Iterable[str], *, changed: bool) -> None:
        """Tell of a set that was written below the folder, and of its files."""
        self._sets.append(made)
        for name in files:
            self.keep(name, changed=changed)

    def keep(self, name: str, *, changed: bool) -> None:
        """Tell of a file that was written below the folder."""
        self._files.append(name)
        self._changed |= changed

    def finish(self) -> Published:
        """Write what tells a loader of the sets, and take away what is no longer among them."""
        place, form, sets = self.place, self._form, self._sets
        page = readme(form, sets, parquet=self._parquet).encode()
        self._files.append("README.md")
        self._changed |= place.write_bytes("README.md", page).changed
        if form.name == "sharegpt":
            self._files.append("dataset_info.json")
            self._changed |= place.write_bytes("dataset_info.json", _dataset_info(sets)).changed
        for name in set(self._before.files) - set(self._files):
            place.remove(name)
            self._changed = True
        manifest = msgspec.json.encode(_Manifest(form=form.name, files=sorted(self._files)))
        place.write_bytes(MANIFEST, msgspec.json.format(manifest, indent=1) + b"\n")
        return Published(
            target=self._target,
            form=form,
            sets=tuple(sets),
            warnings=tuple(_warnings(form, sets)),
            changed=self._changed,
        )


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
    """Return the rubrics whose texts may leave the machine; lines have passed the gate, and these
    stand beside them."""
    return {
        f"{name}/{rubric.key}": rubric
        for name in SCORE_NAMES
        for rubric in lake.read("rubrics", name, Rubric)
        if not contains_secret(msgspec.json.encode(rubric))
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
