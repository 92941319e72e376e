"""The sessions to forget, where to look for them, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from debrief.forgetting.choosing import Chosen
from debrief.forgetting.signs import Signs
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient
from debrief.recorder.storage.store import RecordStore
from debrief.settings import Settings


class Subject(Struct, frozen=True):
    """Some sessions that are to be forgotten, and where to look for them."""

    settings: Settings
    lake: Lake
    chosen: Chosen
    signs: Signs
    langfuse: LangfuseClient | None = None
    """None where no server is configured."""
    records: RecordStore | None = None
    """None where there is no recorder's database."""


class Swept(Struct, frozen=True):
    """What a sweep takes from one place."""

    where: str
    """A table, a file, a folder, a server."""
    count: int
    what: str
    """Of what: ``row``, ``line``, ``file`` …"""


Sweep = Callable[[Subject, bool], Iterator[Swept]]
"""Yields what a place holds of the sessions, and takes it away if told to."""
