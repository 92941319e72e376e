"""Choose which sessions of its weeks a run takes (``--where``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from debrief.conditions import Where
from debrief.lake import Lake
from debrief.sessions.model import Session, SessionHead
from debrief.snapshots.model import SessionMetadataRow


class Scope(Struct, frozen=True):
    """The sessions of a run's weeks that are taken, and whether again."""

    where: Where = Where()
    force: bool = False

    def ids(self, lake: Lake, week: str) -> set[str]:
        """Return the ids of a week's sessions that the conditions hold for."""
        return {name for name, values in values_by_session(lake, week) if self.where.takes(values)}

    def sessions(self, lake: Lake, week: str) -> Iterator[Session]:
        """Yield a week's sessions that the conditions hold for."""
        only = ("id", self.ids(lake, week)) if self.where else None
        return lake.read("raw_sessions", week, Session, only=only)


def values_by_session(lake: Lake, week: str) -> Iterator[tuple[str, dict[str, set[str]]]]:
    """Yield each session of a week with the values that conditions compare, by field.

    A task is the one that the session is filed under, or the one that its transcript names.
    """
    filed = {row.session_id: row for row in lake.read("session_metadata", week, SessionMetadataRow)}
    for head in lake.read("raw_sessions", week, SessionHead):
        row = filed.get(head.id)
        yield (
            head.id,
            {
                "session": {head.id},
                "source": {head.source},
                "tool": {head.tool},
                "model": {*head.models, *_of(row, "model")},
                "task": {head.task, *_of(row, "task")},
                "repository": {head.repository, *_of(row, "repository")},
                "fingerprint": set(_of(row, "prompt_fingerprint")),
            },
        )


def _of(row: SessionMetadataRow | None, field: str) -> Iterable[str]:
    value = getattr(row, field, None)
    return (value,) if value is not None else ()
