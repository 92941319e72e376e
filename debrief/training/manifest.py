"""Which training sets are current: those of one configuration, each session in one of them.

The configuration is the judges who judged the lake last, and gave a judgement.
``training/manifest.json`` names its sets, and whatever reads training sets reads that first. All
others go to ``training/former/<day>/``, where nobody who loads ``training/*/*.jsonl`` finds them,
and from there in time.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date, timedelta

import msgspec
from msgspec import Struct

from debrief.errors import InputError
from debrief.judging.model import JUDGE_SETS
from debrief.lake import Lake
from debrief.sessions.store import SESSIONS_TABLE
from debrief.snapshots.model import UNKNOWN
from debrief.training.model import INDEX, LINES, Exclusion, TrainingSetRow, training_path
from debrief.training.selection import NO_SET, Members, Pair, observed_pairs
from debrief.training.store import training_set_of

MANIFEST = "training/manifest.json"
FORMER = "training/former"
_JUDGES = f"{JUDGE_SETS}/current.json"
_SUFFIXES = (".jsonl", ".card.md")


class _CurrentJudges(Struct, frozen=True):
    eval_fingerprint: str


class _Named(Struct, frozen=True):
    task: str
    fingerprint: str


class _Id(Struct, frozen=True):
    id: str


class _Manifest(Struct, frozen=True):
    sets: tuple[_Named, ...]


class StoredSets(Struct, frozen=True):
    """The current training sets of a lake."""

    sets: tuple[TrainingSetRow, ...]
    """By task and fingerprint."""
    earlier: tuple[Pair, ...]
    """Those that an earlier version made: their lines passed another last gate, or have another
    form."""


class LakeCounts(Struct, frozen=True, kw_only=True):
    """What became of the sessions of a lake in its current training sets."""

    sessions: int
    trained: int
    """Those with a line."""
    left_out: Counter[Exclusion]
    """The others by reason; with ``trained`` they come to all sessions."""
    empty: tuple[TrainingSetRow, ...]
    """Sets in which no session was left, the greatest first."""
    unreviewed: int = 0
    """Sessions with a line that nobody gave a verdict."""


class Settled(Struct, frozen=True):
    """What came of files that the manifest does not name."""

    moved: int
    """Sets that are no longer current."""
    expired: int
    """Files of former sets that were removed."""


def note_judges(lake: Lake, eval_fingerprint: str, *, has_answered: bool = True) -> None:
    """Write down by which judges the lake is judged from now on.

    Args:
        lake: that they judged.
        eval_fingerprint: of the judges.
        has_answered: they gave a judgement. Judges that only failed do not take the place of
            others, whose training sets would give way to sets without judgements.
    """
    if has_answered or lake.read_bytes(_JUDGES) is None:
        lake.write_bytes(_JUDGES, _encoded(_CurrentJudges(eval_fingerprint)))


def current_pairs(lake: Lake, weeks: Iterable[str] | None = None) -> dict[Pair, Members]:
    """Return the pairs observed in ``weeks`` (all, when None) under the current judges.

    A session is in one of them, and in none while only other judges have judged it. One that
    nobody judged is in that whose eval fingerprint is ``unknown``.

    Raises:
        InputError: several sets of judges have judged, and no version noted which was last.
    """
    observed = observed_pairs(lake, weeks)
    judges = {pair: pair[1].rpartition("-")[2] for pair in observed}
    data = lake.read_bytes(_JUDGES)
    if data is not None:
        known = {msgspec.json.decode(data, type=_CurrentJudges).eval_fingerprint, UNKNOWN}
        return {pair: found for pair, found in observed.items() if judges[pair] in known}
    if len({*judges.values()} - {UNKNOWN}) > 1:
        reason = "was judged by several sets of judges, and nobody noted which of them is current"
        raise InputError(lake.url, reason, "debrief run notes it.")
    return observed


def manifest_pairs(lake: Lake) -> tuple[Pair, ...] | None:
    """Return the pairs of the current sets, by task and fingerprint; some may not be made yet.

    None where no version that writes a manifest has made sets.
    """
    data = lake.read_bytes(MANIFEST)
    if data is None:
        return None
    return tuple(
        (named.task, named.fingerprint) for named in msgspec.json.decode(data, type=_Manifest).sets
    )


def stored_sets(lake: Lake) -> StoredSets:
    """Return the sets that the manifest names; without one, all are an earlier version's."""
    named = manifest_pairs(lake)
    keys = dict.fromkeys(lake.partitions(INDEX))
    if named is None:
        return StoredSets((), tuple(map(_pair_of, keys)))
    made = [pair for pair in named if "/".join(pair) in keys]
    rows = {pair: training_set_of(lake, *pair) for pair in made}
    sets = tuple(row for row in rows.values() if row is not None)
    return StoredSets(sets, tuple(pair for pair, row in rows.items() if row is None))


def counts_in(lake: Lake) -> LakeCounts:
    """Count the sessions of a lake by what became of them in its current training sets."""
    sets = stored_sets(lake).sets
    weeks = lake.partitions(SESSIONS_TABLE)
    sessions = sum(1 for week in weeks for _ in lake.read(SESSIONS_TABLE, week, _Id))
    reasons = sum((row.reasons for row in sets), Counter[Exclusion]())
    trained = sum(row.sessions for row in sets)
    reasons[NO_SET] = sessions - trained - reasons.total()
    return LakeCounts(
        sessions=sessions,
        trained=trained,
        left_out=+reasons,
        unreviewed=sum(row.unreviewed for row in sets),
        empty=tuple(
            sorted((row for row in sets if not row.samples), key=lambda row: -row.considered)
        ),
    )


def settle_sets(lake: Lake, pairs: Collection[Pair], today: date, keep_days: float) -> Settled:
    """Write the manifest, move the files of all other sets, and remove what was moved long ago.

    The manifest goes first: readers go by it. What ended half way, the next call goes on with.

    Args:
        lake: with the sets.
        pairs: the current ones, as ``current_pairs`` returns them.
        today: in UTC.
        keep_days: how long the files of former sets stay.
    """
    write_manifest(lake, pairs)
    current = {training_path(*pair, suffix) for pair in pairs for suffix in _SUFFIXES}
    moved, expired = set[str](), 0
    for name in lake.names("training"):
        _, *folders, file = name.split("/")
        if len(folders) == 1 and file.endswith(_SUFFIXES) and name not in current:
            _move(lake, name, f"{FORMER}/{today}/{folders[0]}/{file}")
            moved.add(name.removesuffix(".jsonl").removesuffix(".card.md"))
        elif name.startswith(f"{FORMER}/") and _is_before(folders[1:], today, keep_days):
            lake.remove(name)
            expired += 1
    for table in (LINES, INDEX):
        for key in lake.partitions(table):
            if _pair_of(key) not in pairs:
                lake.drop(table, key)
    return Settled(len(moved), expired)


def write_manifest(lake: Lake, pairs: Iterable[Pair]) -> None:
    """Write the manifest."""
    manifest = _Manifest(tuple(_Named(*pair) for pair in sorted(pairs)))
    lake.write_bytes(MANIFEST, _encoded(manifest))


def _move(lake: Lake, name: str, target: str) -> None:
    with lake.open_bytes(name) as file, lake.create(target) as creation:
        creation.keep = file is not None
        if file is not None:
            shutil.copyfileobj(file, creation.file)
    lake.remove(name)


def _is_before(folders: list[str], today: date, keep_days: float) -> bool:
    """Return whether a former set's folders begin with a day that is that long ago."""
    with suppress(ValueError):
        return (
            today - date.fromisoformat(folders[0]) > timedelta(days=keep_days) if folders else False
        )
    return False


def _pair_of(key: str) -> Pair:
    task, _, fingerprint = key.partition("/")
    return task, fingerprint


def _encoded(value: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
