"""What transcripts say at their beginning, and which of them belong to one session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import orjson
from msgspec import Struct

from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.finding import HEAD
from debrief.sessions.readers.jsonl import Record
from debrief.sessions.readers.moments import moment

_TIME = re.compile(rb'(?<!\\)"timestamp"\s*:\s*"([^"\\]{1,40})"')


class Head(Struct, frozen=True, gc=False):
    """What the beginning of a transcript tells."""

    id: str
    started: datetime | None = None
    parent: str = ""
    """The session whose subagent this one is; empty for a person's own."""
    root: str = ""
    """The id of the first message, where copies under another session's id would keep it."""


def head_records(head: bytes) -> list[Record]:
    """Return the records at a file's beginning, those left out that cannot be decoded."""
    records = []
    for line in head.split(b"\n"):
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if type(record) is dict:
            records.append(record)
    return records


def first_time(head: bytes) -> datetime | None:
    """Return the first ``timestamp`` in a beginning, whose last record may be cut off."""
    return first_moment(found.decode(errors="replace") for found in _TIME.findall(head))


def is_whole(head: bytes) -> bool:
    """Return whether a beginning is a whole file."""
    return len(head) < HEAD


def first_moment(times: Iterable[Any]) -> datetime | None:
    """Return the first of ``times`` that is one."""
    return next((at for at in map(moment, times) if at is not None), None)


def grouped(
    source: str,
    heads: Iterable[tuple[str, Head]],
    beside: Callable[[str], tuple[str, ...]] = lambda path: (),
) -> Iterator[Transcript]:
    """Yield one transcript a session: a child whose parent is among ``heads`` completes it.

    Args:
        heads: (path, head) of every file of the source, in path order.
        beside: the files that belong to a path, such as its settings.
    """
    heads = list(heads)
    own = {head.id: path for path, head in reversed(heads) if head.id}
    parents = {head.id: head.parent for _, head in heads if head.parent}
    children: dict[str, list[str]] = {}
    for path, head in heads:
        root = _root(head, parents, own)
        if root:
            children.setdefault(own[root], []).append(path)
    attached = {path for paths in children.values() for path in paths}
    for path, _ in heads:
        if path in attached:
            continue
        parts = children.get(path, [])
        companions = [*beside(path), *(file for part in parts for file in (part, *beside(part)))]
        yield Transcript(source=source, path=path, companions=tuple(companions))


def _root(head: Head, parents: dict[str, str], own: dict[str, str]) -> str:
    """Return the topmost session at hand above ``head``; empty for none, and for a circle."""
    root, seen = "", {head.id}
    parent = head.parent
    while parent and parent in own:
        if parent in seen:
            return ""
        root = parent
        seen.add(parent)
        parent = parents.get(parent, "")
    return root
