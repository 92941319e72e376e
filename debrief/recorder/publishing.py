"""Records as a folder that trainers load, split by repository and time, without the pipeline.

Two passes: the first makes each record's line and reads off what relates it to others, the
second writes every set in its order. Lines wait in a scratch file between, so that memory holds
a kilobyte a record. What belongs together is kept on one side by the rules of the training sets.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO

from msgspec import Struct

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.markdown import plain, table
from debrief.recorder.conversion import line_of, recording_of
from debrief.recorder.exporting import EXPORT_FORMS, StoredRecord, one_line
from debrief.redaction import contains_secret
from debrief.snapshots.fingerprint import comparison_key
from debrief.snapshots.model import UNKNOWN
from debrief.training.kinship import Kinship
from debrief.training.model import Split
from debrief.training.publishing.folder import SIDES, Published, PublishedFolder, PublishedSet
from debrief.training.publishing.form import Form
from debrief.training.publishing.forms import form_named, in_form
from debrief.training.samples import SECRET_FOUND
from debrief.training.selection import Candidate, TrainingOptions, select
from debrief.training.splitting import side_of
from debrief.training.traits import SessionTraits, traits_of

RECORD_SUFFIX = ".record.jsonl"


class PublishedRecords(Struct, frozen=True, kw_only=True):
    """What came of publishing records."""

    records: int
    """That were there."""
    left_out: dict[str, str]
    """Reasons by session id."""
    published: Published | None = None
    """The sets; None where the records were written as they are."""
    files: dict[str, int] = {}
    """Records by file, where they were written as they are."""
    changed: bool
    """False when the folder held the same before."""


class _Waiting(Struct, frozen=True, kw_only=True, gc=False):
    """A line in the scratch file."""

    key: tuple[str, str]
    """Task and fingerprint of its set."""
    offset: int
    size: int


def publish_records(
    records: Iterable[StoredRecord],
    target: str,
    form: str,
    options: TrainingOptions,
    split: Split | None = None,
) -> PublishedRecords:
    """Write records to a folder that ``load_dataset`` takes as splits.

    Args:
        records: as a store or a server gives them out; of two with one id the later counts.
        target: a folder or an fsspec URL.
        form: ``messages``, ``trl``, ``openai`` or ``sharegpt``.
        options: which of them, and how many are held out.
        split: write this side alone.

    Raises:
        InputError: there is no such form, or the folder holds something else.
    """
    if form not in EXPORT_FORMS or form == "record":
        names = ", ".join(name for name in EXPORT_FORMS if name != "record")
        raise InputError(f"format {form}", "is none for a folder of sets", f"There are: {names}.")
    folder = PublishedFolder(target, form_named(form))
    with tempfile.TemporaryFile() as scratch:
        gathered = _Gathered(scratch, options)
        for record in records:
            gathered.add(record)
        chosen = gathered.chosen(split)
        for key in sorted(chosen):
            made, files, changed = _write(folder, form_named(form), key, chosen[key], gathered)
            folder.add(made, files, changed=changed)
    published = folder.finish()
    return PublishedRecords(
        records=gathered.count,
        left_out=gathered.left_out,
        published=published,
        changed=published.changed,
    )


def publish_as_records(
    records: Iterable[StoredRecord], target: str, split: Split | None = None
) -> PublishedRecords:
    """Write records as they are, ``<task>.record.jsonl`` a task, by start and id.

    Such a folder is a source of sessions; of two records with one id the later counts.
    """
    place = Lake(target)
    left_out: dict[str, str] = {}
    tasks: dict[str, dict[str, tuple[datetime, str, int, int]]] = defaultdict(dict)
    count = 0
    with tempfile.TemporaryFile() as scratch:
        for record in records:
            count += 1
            try:
                session = recording_of(record.text, str(record.id), record.status).session
                if contains_secret(record.text):
                    raise InputError(f"session {session.id}", SECRET_FOUND)
            except InputError as refusal:
                left_out[str(record.id)] = refusal.reason
                continue
            if split not in (None, side_of(session.repository, session.started)):
                continue
            line = one_line(record.text)
            waiting = (session.started, session.id, scratch.tell(), len(line))
            tasks[session.task][session.id] = waiting
            scratch.write(line)
        changed = False
        for task, waiting_lines in sorted(tasks.items()):
            with place.create(f"{task}{RECORD_SUFFIX}", durable=False) as creation:
                for _, _, offset, size in sorted(waiting_lines.values()):
                    scratch.seek(offset)
                    creation.file.write(scratch.read(size))
            changed |= creation.changed
    return PublishedRecords(
        records=count,
        left_out=left_out,
        files={f"{task}{RECORD_SUFFIX}": len(lines) for task, lines in sorted(tasks.items())},
        changed=changed,
    )


class _Gathered:
    """The lines of all records, and what decides which of them are taken."""

    def __init__(self, scratch: IO[bytes], options: TrainingOptions) -> None:
        self.count = 0
        self.left_out: dict[str, str] = {}
        self.verified: set[str] = set()
        """Records whose patch was seen to rebuild what was left behind."""
        self._scratch = scratch
        self._options = options
        self._traits: dict[str, SessionTraits] = {}
        self._candidates: dict[str, Candidate] = {}
        self._lines: dict[str, _Waiting] = {}

    def add(self, record: StoredRecord) -> None:
        """Make a record's line and remember what it is chosen by."""
        self.count += 1
        name = str(record.id)
        self.left_out.pop(name, None)
        try:
            recording = recording_of(record.text, name, record.status)
            session = recording.session
            side = side_of(session.repository, session.started, self._options.eval_share)
            line = line_of(recording, side)
        except InputError as refusal:
            self.left_out[name] = refusal.reason
            return
        if session.recorded and session.recorded.verified:
            self.verified.add(name)
        metadata = recording.metadata
        key = (metadata.task, comparison_key(metadata.prompt_fingerprint, UNKNOWN))
        self._lines[name] = _Waiting(key=key, offset=self._scratch.tell(), size=len(line))
        self._scratch.write(line)
        self._traits[name] = traits_of(session)
        self._candidates[name] = recording.candidate

    def chosen(self, split: Split | None) -> dict[tuple[str, str], list[Candidate]]:
        """Return what is taken, by set and in order."""
        selection = select(self._candidates.values(), self._options, Kinship(self._traits.values()))
        self.left_out |= selection.left_out
        found: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
        for candidate in selection.selected:
            if split in (None, candidate.split):
                found[self._lines[candidate.session_id].key].append(candidate)
        return found

    def line(self, candidate: Candidate) -> bytes:
        """Return a line from the scratch file."""
        waiting = self._lines[candidate.session_id]
        self._scratch.seek(waiting.offset)
        return self._scratch.read(waiting.size)


def _write(
    folder: PublishedFolder,
    form: Form,
    key: tuple[str, str],
    candidates: list[Candidate],
    gathered: _Gathered,
) -> tuple[PublishedSet, list[str], bool]:
    """Write one set, and return it with its files and whether one of them changed."""
    task, fingerprint = key
    top = f"{task}/{fingerprint}"
    counts: dict[Split, int] = dict.fromkeys(SIDES, 0)
    files: list[str] = []
    size, changed = 0, False
    for side in SIDES:
        with folder.place.create(f"{top}/{side}.jsonl", durable=False) as creation:
            for candidate in candidates:
                if candidate.split != side:
                    continue
                line = in_form(form.name, gathered.line(candidate))
                creation.file.write(line)
                counts[side] += 1
                size += len(line)
            creation.keep = counts[side] > 0
        if counts[side]:
            files.append(creation.name)
            changed |= creation.changed
    card = "\n".join(_card(key, candidates, gathered.verified)).encode()
    written = folder.place.write_bytes(f"{top}/card.md", card)
    files.append(f"{top}/card.md")
    made = PublishedSet(task=task, fingerprint=fingerprint, lines=counts, size=size)
    return made, files, changed or written.changed


def _card(key: tuple[str, str], candidates: list[Candidate], verified: set[str]) -> Iterator[str]:
    repositories = Counter(candidate.repository or "unknown" for candidate in candidates)
    ready = sum(candidate.status == "ready" for candidate in candidates)
    rebuilt = sum(candidate.session_id in verified for candidate in candidates)
    sides = Counter(candidate.split for candidate in candidates)
    days = [candidate.started.date() for candidate in candidates]
    yield f"# {key[0]} · {key[1]}"
    yield ""
    yield (
        f"{len(candidates)} recorded sessions of {min(days)} to {max(days)}: "
        f"{sides['train']} train, {sides['eval']} eval. {ready} are ready. Of {rebuilt}, applying "
        "the patch to the base commit was seen to give the very tree that was left behind. "
        "Nobody has judged or scored them."
    )
    yield ""
    yield (
        "A repository's sessions of one week are on one side of the split, and so are those that "
        "resemble each other."
    )
    yield ""
    rows = [(plain(name), str(count)) for name, count in sorted(repositories.items())]
    yield table(("repository", "sessions"), rows)
    yield ""
