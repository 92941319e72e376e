"""Which sessions of its weeks a run takes, and whether it makes again what is up to date."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

import dagster as dg
from msgspec import Struct
from pydantic import Field

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.sessions.model import Session, SessionHead
from debrief.snapshots.model import SessionMetadataRow

FIELDS = ("tool", "model", "task", "repository", "source", "fingerprint", "session")
"""What can be asked for. A session may have several models: one of them has to answer."""

_EXAMPLE = f"Write FIELD=VALUE, such as tool=droid or task=late-*. Fields: {', '.join(FIELDS)}."


class Where(Struct, frozen=True):
    """Conditions of which each must hold; without any, every session is meant."""

    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Field and patterns of which one has to fit, ``*`` and ``?`` as in file names."""

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def __str__(self) -> str:
        return ";".join(f"{field}={','.join(patterns)}" for field, patterns in self.conditions)

    def takes(self, facts: Mapping[str, Iterable[str]]) -> bool:
        """Return whether a session is meant.

        Args:
            facts: what is known of it, by field; a field that is not there fits nothing.
        """
        return all(
            any(
                fnmatchcase(value, pattern)
                for value in facts.get(field, ())
                for pattern in patterns
            )
            for field, patterns in self.conditions
        )

    def of(self, *fields: str) -> "Where":
        """Return the conditions on these fields alone."""
        return Where(tuple(each for each in self.conditions if each[0] in fields))


def parse_where(texts: Iterable[str]) -> "Where":
    """Read conditions, several in a text being parted by semicolons.

    Raises:
        InputError: a text is no condition.
    """
    conditions: list[tuple[str, tuple[str, ...]]] = []
    for text in texts:
        for part in text.split(";"):
            field, equals, values = part.strip().partition("=")
            patterns = tuple(value.strip() for value in values.split(",") if value.strip())
            if not equals or not patterns:
                raise InputError(f"--where {text}", f"{part!r} is no condition", _EXAMPLE)
            if field.strip() not in FIELDS:
                raise InputError(f"--where {text}", f"{field.strip()!r} is no field", _EXAMPLE)
            conditions.append((field.strip(), patterns))
    return Where(tuple(conditions))


class Scope(Struct, frozen=True):
    """The sessions of a run's weeks that are taken, and whether again."""

    where: Where = Where()
    force: bool = False

    def ids(self, lake: Lake, week: str) -> set[str]:
        """Return the ids of a week's sessions that the conditions hold for."""
        return {name for name, facts in facts_of(lake, week) if self.where.takes(facts)}

    def sessions(self, lake: Lake, week: str) -> Iterator[Session]:
        """Yield a week's sessions that the conditions hold for."""
        only = ("id", self.ids(lake, week)) if self.where else None
        return lake.read("raw_sessions", week, Session, only=only)


class ScopeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """What a run is narrowed down to, and what it makes again though nothing changed."""

    where: list[str] = Field(
        default=[],
        description=(
            "Conditions on sessions such as `tool=droid` or `task=late-*`; all must hold. The "
            "other sessions' rows stay as they are."
        ),
    )
    force: bool = Field(default=False, description="Make again what is up to date too.")

    def open(self) -> Scope:
        """Return the scope.

        Raises:
            InputError: a condition cannot be read.
        """
        return Scope(parse_where(self.where), self.force)


def facts_of(lake: Lake, week: str) -> Iterator[tuple[str, dict[str, set[str]]]]:
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
