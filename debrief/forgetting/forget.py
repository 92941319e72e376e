"""The steps of ``debrief forget``: choose sessions, find every trace, leave a tombstone, delete.

It can be killed at any moment. The tombstones come first, so nothing is read in again; a session's
own row goes last, so the same command finds what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from debrief.errors import InputError
from debrief.forgetting.choosing import Choice, Chosen, Sources, choose, mirrors_of, parts_of
from debrief.forgetting.elsewhere import exports_of
from debrief.forgetting.places import BEFORE, LAST, SweptPlace
from debrief.forgetting.signs import Signs
from debrief.forgetting.subject import Subject
from debrief.langfuse.fetcher import SOURCE as LANGFUSE
from debrief.outcomes.labels import labels_from_csv
from debrief.sessions.model import Session
from debrief.sessions.scanning import local_entry
from debrief.sessions.store import SESSIONS_TABLE
from debrief.snapshots.capture import HOME
from debrief.state import existing_state

_AT_ONCE = 100_000_000
"""Bytes of transcripts whose words are looked for in one pass: about as much memory."""
What = Literal[
    "transcript",
    "capture",
    "object",
    "on_server",
    "labels_file",
    "other_machine",
    "pushed",
    "old_answers",
]


class Holding(Struct, frozen=True, kw_only=True):
    """What one place holds, or held, of the sessions."""

    place: str
    """Name of the ``SweptPlace``."""
    where: str
    count: int
    what: str
    """``row``, ``line``, ``file`` …"""


class Remaining(Struct, frozen=True, kw_only=True):
    """What is out of reach, or not ours to take."""

    what: What
    """``transcript``: a tool's own file, which is only read. ``capture``: a file of a capture that
    lies among transcripts, and not in the session's repository. ``object``: one in a store.
    ``on_server``: a session's original on a Langfuse server. ``labels_file``: a CSV file of
    somebody's. ``other_machine``: an export there. ``pushed``: a dataset of a hub. ``old_answers``:
    quoting nothing, and nobody noted what they are about."""
    where: str = ""
    count: int = 1


class ForgetReceipt(Struct, frozen=True, kw_only=True):
    """What was, or would be, forgotten."""

    sessions: tuple[str, ...]
    """Ids, in order."""
    relatives: tuple[str, ...] = ()
    """Of these, the copies and forks that hold a part of the others."""
    weeks: tuple[str, ...] = ()
    """That held them, and are stale now."""
    person: str = ""
    found: tuple[Holding, ...] = ()
    remaining: tuple[Remaining, ...] = ()
    is_done: bool = False
    """False: it was only looked for."""


def forget(
    choice: Choice,
    sources: Sources,
    more: Sequence[SweptPlace] = (),
    agrees: Callable[[ForgetReceipt], bool] = lambda receipt: True,
) -> ForgetReceipt:
    """Forget sessions: take them, and all that holds their words, away from every place.

    Args:
        choice: which sessions.
        sources: the lake and the servers.
        more: places that the library does not know, such as an orchestrator's storage.
        agrees: asked with what was found, before anything is changed.

    Raises:
        InputError: nothing is known of what is asked for.
        DebriefError: a place is away. What was taken away before stays so; the same again goes on.
    """
    chosen = choose(choice, sources)
    places = (*BEFORE, *more, *LAST)
    receipt = ForgetReceipt(
        sessions=tuple(sorted(chosen.ids)),
        relatives=tuple(sorted(chosen.relatives)),
        weeks=tuple(sorted(_weeks(sources, chosen))),
        person=chosen.person,
        found=tuple(_swept(_subjects(chosen, sources), places, act=False)),
        remaining=tuple(_remaining(chosen, sources)),
    )
    if not agrees(receipt):
        return receipt
    sources.forgotten.bury(
        sources.lake,
        sessions={*chosen.ids, *choice.sessions},  # as typed, so that the same can be typed again
        entries=chosen.entries,
        paths=chosen.paths,
        people=[chosen.person] if chosen.person else [],
    )
    found = tuple(_swept(_subjects(chosen, sources), places, act=True))
    return ForgetReceipt(
        sessions=receipt.sessions,
        relatives=receipt.relatives,
        weeks=receipt.weeks,
        person=receipt.person,
        found=found,
        remaining=tuple(_remaining(chosen, sources)),
        is_done=True,
    )


def _subjects(chosen: Chosen, sources: Sources) -> Iterator[Subject]:
    """Yield the chosen sessions, some at a time, with their words."""
    for part in parts_of(chosen, _AT_ONCE):
        signs = Signs(part.ids, part.others, part.paths)
        weeks = _weeks(sources, part)
        for week in weeks:
            for session in sources.lake.read(SESSIONS_TABLE, week, Session, ("id", part.ids)):
                signs.learn(session)
        yield Subject(
            settings=sources.settings,
            lake=sources.lake,
            chosen=part,
            signs=signs,
            langfuse=sources.langfuse,
            records=sources.records,
        )


class _Id(Struct, frozen=True):
    id: str


def _weeks(sources: Sources, chosen: Chosen) -> list[str]:
    """Return the weeks whose rows hold some of the sessions."""
    return [
        week
        for week in sources.lake.partitions(SESSIONS_TABLE)
        if any(row.id in chosen.heads for row in sources.lake.read(SESSIONS_TABLE, week, _Id))
    ]


def _swept(
    subjects: Iterable[Subject], places: Sequence[SweptPlace], *, act: bool
) -> Iterator[Holding]:
    """Sweep all places; yield what was found, added up over the parts."""
    counts: dict[tuple[str, str, str], int] = {}
    for subject in subjects:
        for place in places:
            for change in place.sweep(subject, act):
                key = place.name, change.where, change.what
                counts[key] = counts.get(key, 0) + change.count
    for (name, where, what), count in counts.items():
        yield Holding(place=name, where=where, count=count, what=what)


def _remaining(chosen: Chosen, sources: Sources) -> Iterator[Remaining]:
    """Yield what holds the sessions and is not taken away."""
    mirrors = tuple(origin.here for origin in mirrors_of(sources.settings))
    origins = mirrors_of(sources.settings)
    paths = {
        file.path for entry in chosen.entries for file in entry.files if not entry.is_on_server
    } | {ref.path for head in chosen.heads.values() for ref in head.transcripts}
    for path in sorted(paths):
        if "://" in path:
            yield Remaining(what="object", where=path)
        elif Path(path).is_file() and not path.startswith(mirrors):
            yield Remaining(what="transcript", where=path)
    for entry in chosen.kept_entries:
        parts = Path(entry.path).parts
        if not entry.session_id and HOME in parts and not chosen.ids.isdisjoint(parts):
            yield Remaining(what="capture", where=entry.path)
    for entry in chosen.entries:
        local = local_entry(entry, origins)
        if entry.is_part and any(file.path.startswith(mirrors) for file in local.files):
            yield Remaining(what="transcript", where=local.path)
    on_server = sum(head.source == LANGFUSE for head in chosen.heads.values())
    if on_server:
        yield Remaining(what="on_server", where=sources.settings.langfuse_host, count=on_server)
    for file in sources.settings.labels:
        with suppress(InputError):
            labels = labels_from_csv(file).labels
            theirs = sum(
                label.session_id in chosen.ids
                or bool(chosen.person and label.rater == chosen.person)
                for label in labels
            )
            if theirs:
                yield Remaining(what="labels_file", where=str(file), count=theirs)
    for export in exports_of(sources.lake):
        if not export.is_here:
            yield Remaining(what="other_machine", where=f"{export.host}:{export.target}")
        if export.pushed_to:
            yield Remaining(what="pushed", where=export.pushed_to)
    state = existing_state(sources.settings)
    if state is not None and (count := sum(1 for _ in state.unattributed())):
        yield Remaining(what="old_answers", where=state.location, count=count)
