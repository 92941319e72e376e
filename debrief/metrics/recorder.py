"""Figures of the recorder's database."""

from __future__ import annotations

from collections.abc import Iterator

from debrief.metrics.figures import Family, family
from debrief.recorder.storage.store import RecordStore


def recorder_families(store: RecordStore) -> Iterator[Family]:
    """Yield what a recorder's database holds.

    Raises:
        StorageError: it is away, or not migrated.
    """
    counts = store.counts()
    drafts = counts.sessions - counts.ready
    yield family(
        "debrief_recorder_sessions",
        "Recorded sessions by status.",
        ("status",),
        [(("ready",), float(counts.ready)), (("draft",), float(drafts))],
    )
    yield family(
        "debrief_database_bytes",
        "Size of the database that holds recorded sessions, Dagster's tables included.",
        (),
        [((), float(counts.size))],
    )
