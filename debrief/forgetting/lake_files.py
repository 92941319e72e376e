"""Find and delete what a lake holds of sessions: table rows, training lines, other files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.forgetting.pruning import pruned, pruned_lines, pruned_row, quotes_any
from debrief.forgetting.signs import Signs
from debrief.forgetting.subject import Subject, Swept
from debrief.lake import DAMAGED_SUFFIX, SUFFIXES, Lake
from debrief.lake.rows import SUFFIX, read_values
from debrief.outcomes.store import (
    LABELS,
    Label,
    Roll,
    labelled_sessions,
)
from debrief.sessions.model import Session
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import SESSIONS_TABLE
from debrief.snapshots.model import NAMES, PromptName
from debrief.tables import TABLES, LakeTable
from debrief.training.held import DECISIONS, HeldDecision
from debrief.training.manifest import MANIFEST, manifest_pairs, write_manifest
from debrief.training.model import INDEX, LINES, LineRow, TrainingSetRow, training_path

_ROWS_AT_ONCE = 64
_LEFT_TO_OTHERS = {SESSIONS_TABLE, LABELS, LINES, INDEX, DECISIONS}
"""Swept by functions of their own."""


def sweep_tables(subject: Subject, act: bool) -> Iterator[Swept]:
    """Swept rows that name the sessions, or hold their words, out of most tables.

    The sessions' own table is for last, those of training sets go with their files.
    """
    lake, signs = subject.lake, subject.signs
    for name, table in TABLES.items():
        count = 0
        for partition in lake.partitions(name) if name not in _LEFT_TO_OTHERS else ():
            count += _sweep_partition(lake, name, partition, table, signs, act)
        if count:
            yield Swept(name, count, "row")


def _sweep_partition(
    lake: Lake, name: str, partition: str, table: LakeTable, signs: Signs, act: bool
) -> int:
    if table.rows is Session:
        is_theirs = any(row.id in signs.ids for row in lake.read(name, partition, _Id))
        if is_theirs and act:  # each has a partition of its own
            lake.drop(name, partition)
        return int(is_theirs)
    try:
        rows = list(lake.read(name, partition, table.rows))
    except msgspec.ValidationError:  # of another version: nobody can tell what to take out of it
        is_theirs = _holds_partition(lake, name, partition, signs)
        if is_theirs and act:
            lake.drop(name, partition)
        return int(is_theirs)
    left = [
        pruned_row(row, signs, may_quote=table.may_quote and not _is_kept_transcript(row))
        for row in rows
    ]
    if table.holds_files:
        left = [row if row and not quotes_any(row, signs) else None for row in left]
    changed = sum(new is not old for new, old in zip(left, rows, strict=True))
    if changed and act:
        stamp = lake.stamp(name, partition)
        inputs = stamp.inputs if stamp and table.keeps_stamp else ""
        _store(lake, name, partition, [row for row in left if row is not None], table.rows, inputs)
    return changed


def _is_kept_transcript(row: Struct) -> bool:
    """Return whether a row of the scan is of a session: it goes with that one, and not for a folder
    that both have."""
    return isinstance(row, ScanEntry) and bool(row.session_id)


class _Id(Struct, frozen=True):
    id: str


def _store(
    lake: Lake,
    table: str,
    partition: str,
    rows: Sequence[Struct],
    row_type: type[Struct],
    inputs: str = "",
) -> None:
    """Replace a partition; without rows it is removed, and the next run makes it anew."""
    if rows:
        lake.write(table, partition, rows, row_type, lambda: inputs)
    else:
        lake.drop(table, partition)


def sweep_sessions(subject: Subject, act: bool) -> Iterator[Swept]:
    """Swept the sessions themselves out of their table; the weeks that held them become stale."""
    lake, signs, count = subject.lake, subject.signs, 0
    for week in lake.partitions(SESSIONS_TABLE):
        ids = [row.id for row in lake.read(SESSIONS_TABLE, week, _Id)]
        gone = signs.ids.intersection(ids)
        count += len(gone)
        if gone and act:
            if len(gone) == len(ids):
                lake.drop(SESSIONS_TABLE, week)
            else:
                rows = lake.read(SESSIONS_TABLE, week, Session, ("id", {*ids} - gone))
                lake.write(SESSIONS_TABLE, week, rows, Session)
    if count:
        yield Swept(SESSIONS_TABLE, count, "row")


def sweep_labels(subject: Subject, act: bool) -> Iterator[Swept]:
    """Take out what is said of the sessions, and what a person says of any, decided, or calls
    prompts."""
    lake, signs, person = subject.lake, subject.signs, subject.chosen.person
    roll = Roll(labelled_sessions(lake))

    def is_theirs(row: Label | PromptName | HeldDecision) -> bool:
        if person and row.rater == person:
            return True
        # A plan's id stands for the latest session of it.
        return isinstance(row, Label) and not signs.ids.isdisjoint(
            (row.session_id, roll.find(row.session_id))
        )

    kinds: tuple[tuple[str, type[Label | PromptName | HeldDecision]], ...] = (
        (LABELS, Label),
        (NAMES, PromptName),
        (DECISIONS, HeldDecision),
    )
    for table, row_type in kinds:
        count = 0
        for partition in lake.partitions(table):
            rows = list(lake.read(table, partition, row_type))
            left = [row for row in rows if not is_theirs(row)]
            count += len(rows) - len(left)
            if act and len(left) < len(rows):
                _store(lake, table, partition, left, row_type)
        if count:
            yield Swept(table, count, "row")


def sweep_training(subject: Subject, act: bool) -> Iterator[Swept]:
    """Swept lines out of the files below ``training/``, and bring their tables in line.

    The card of a set says what was in it until the next run writes another.
    """
    lake, signs = subject.lake, subject.signs
    lines, changed, removed = 0, set[str](), set[str]()
    for name in lake.names("training", ".jsonl"):
        gone = take_lines(lake, name, signs, act)
        if gone:
            lines += gone
            changed.add(name)
    for partition in lake.partitions(INDEX):
        try:
            of_set = next(lake.read(INDEX, partition, TrainingSetRow))
            rows = list(lake.read(LINES, partition, LineRow))
        except msgspec.ValidationError:  # of another version, whose sets nothing reads
            tables = (LINES, INDEX)
            if act and any(_holds_partition(lake, table, partition, signs) for table in tables):
                for table in tables:
                    lake.drop(table, partition)
            continue
        left = [row for row in rows if pruned_row(row, signs, may_quote=False) is not None]
        new = pruned_row(of_set, signs, may_quote=False)
        path = training_path(of_set.task, of_set.fingerprint)
        if act and (path in changed or len(left) < len(rows) or new is not of_set):
            _restore_set(lake, partition, of_set, left, signs)
            if lake.stamp(INDEX, partition) is None:
                removed.add(partition)
    named = manifest_pairs(lake)
    if removed and named is not None:
        write_manifest(lake, [pair for pair in named if "/".join(pair) not in removed])
    if lines:
        yield Swept("training", lines, "line")


def take_lines(place: Lake, name: str, signs: Signs, act: bool) -> int:
    """Swept the sessions' lines out of a file of JSON lines; return how many they are.

    Args:
        place: a lake, or the place of an export.
        name: of the file.
        signs: of the sessions.
        act: False only counts.
    """
    with place.open_bytes(name) as file:
        theirs = [_is_theirs(line, signs) for line in file or ()]
    gone = sum(theirs)
    if gone and act and all(theirs):
        place.remove(name)
    elif gone and act:
        with place.open_bytes(name) as file, place.create(name) as creation:
            lines = zip(file or (), theirs, strict=True)
            creation.file.writelines(line for line, is_theirs in lines if not is_theirs)
    return gone


class _Line(Struct, frozen=True):
    metadata: dict[str, Any] = {}


def _is_theirs(line: bytes, signs: Signs) -> bool:
    """Return whether a JSON line is of one of the sessions.

    One of another session stays, whatever words it has in common with theirs.
    """
    with suppress(msgspec.DecodeError):
        metadata = msgspec.json.decode(line, type=_Line).metadata
        if "session_id" in metadata:
            return pruned(metadata, signs, may_quote=False) is None
    with suppress(msgspec.DecodeError):
        value = msgspec.json.decode(line)
        return bool(pruned(value, signs, may_quote=True) != value)
    return signs.are_in(line.decode("utf-8", "replace"))


def _restore_set(
    lake: Lake, partition: str, of_set: TrainingSetRow, left: list[LineRow], signs: Signs
) -> None:
    """Write the rows of a training set for the lines that are in its file now.

    Its offsets have moved; its inputs are emptied, so that the next run makes it anew.
    """
    path = training_path(of_set.task, of_set.fingerprint)
    known = {row.digest: row for row in left}
    rows, offset, content = [], 0, hashlib.sha256()
    with lake.open_bytes(path) as file:
        for line in file or ():
            row = known.get(hashlib.sha256(line).hexdigest())
            if row is not None:
                rows.append(replace(row, offset=offset))
            offset += len(line)
            content.update(line)
    skipped = [
        replace(group, sessions=ids, count=len(ids))
        for group in of_set.left_out
        if (ids := tuple(session for session in group.sessions if session not in signs.ids))
    ]
    if not rows:
        for name in (path, training_path(of_set.task, of_set.fingerprint, ".card.md")):
            lake.remove(name)
    if not rows and not skipped:
        for table in (LINES, INDEX):
            lake.drop(table, partition)
        return
    digest, train = content.hexdigest(), sum(row.split == "train" for row in rows)
    lake.write(LINES, partition, rows, LineRow, lambda: digest)
    sessions = {row.session_id for row in rows if not row.parent_session}
    new = replace(
        of_set,
        considered=len(sessions) + sum(group.count for group in skipped),
        sessions=len(sessions),
        samples=len(rows),
        train=train,
        eval=len(rows) - train,
        tokens=sum(row.tokens for row in rows),
        left_out=tuple(skipped),
        lines_digest=digest,
    )
    lake.write(INDEX, partition, [new], TrainingSetRow)


def sweep_files(subject: Subject, act: bool) -> Iterator[Swept]:
    """Swept what is left out of a lake's other files.

    Lines go out of pages; a file of another kind, and a table that is not known, goes as a whole.
    So do a killed writer's unfinished files, which nothing reads.
    """
    lake, signs = subject.lake, subject.signs
    for name in lake.names():
        top, suffix = name.partition("/")[0], Path(name).suffix
        is_swept = name.endswith(SUFFIXES) and top in TABLES
        if top.startswith(".") or is_swept:
            continue
        if (suffix == ".jsonl" and top == "training") or name == MANIFEST:
            continue
        if suffix == ".md" and top in ("reports", "training"):
            page = (lake.read_bytes(name) or b"").decode("utf-8", "replace")
            text, gone = pruned_lines(page, signs)
            if gone and act:
                lake.write_bytes(name, text.encode())
            if gone:
                yield Swept(name, gone, "line")
        elif name.endswith(DAMAGED_SUFFIX) or holds(lake, name, signs):
            # Nobody can tell what else a damaged file holds.
            if act:
                lake.remove(name)
            yield Swept(name, 1, "file")
    if act and "://" not in lake.url:
        for folder in Path(lake.url).glob("[!.]*"):
            if folder.name not in (LABELS, NAMES):  # which pages may be writing at this moment
                for leftover in folder.glob("**/.*.????????"):
                    leftover.unlink(missing_ok=True)


def _holds_partition(lake: Lake, table: str, partition: str, signs: Signs) -> bool:
    return any(holds(lake, f"{table}/{partition}{suffix}", signs) for suffix in SUFFIXES)


def holds(place: Lake, name: str, signs: Signs) -> bool:
    """Return whether a file of a place names one of the sessions or holds words of one."""
    if Path(name).suffix in (".jsonl", ".md"):
        return take_lines(place, name, signs, act=False) > 0
    with place.open_bytes(name) as file:
        if file is None:
            return False
        if name.endswith(".parquet"):
            import pyarrow.parquet as pq

            batches = pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE)
            return any(_is_in(batch.to_pylist(), signs) for batch in batches)
        data = file.read()
    if name.endswith(SUFFIX):
        return any(_is_in([row], signs) for row in read_values(data))
    with suppress(msgspec.DecodeError):
        return _is_in([msgspec.json.decode(data)], signs)
    return signs.are_in(data.decode("utf-8", "replace"))


def _is_in(values: list[Any], signs: Signs) -> bool:
    return bool(pruned(values, signs, may_quote=True) != values)
