"""Migrate a database to a revision, forwards or back."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from debrief.errors import InputError
from debrief.recorder.errors import RevisionError

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

_MIGRATION_LOCK = 0x6465627269656601
"""Advisory lock: one process migrates at a time."""

_SCRIPTS = Path(__file__).parents[1] / "migrations"


def head() -> str:
    """Return the revision that this version of Debrief works with."""
    return _revisions()[-1]


@functools.cache
def _revisions() -> tuple[str, ...]:
    """Return all revisions, the first one first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return tuple(script.revision for script in scripts)[::-1]


def current(connection: Connection) -> str | None:
    """Return the database's revision; None if it has no tables yet."""
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


def migrate(connection: Connection, revision: str = "head") -> tuple[str | None, str | None]:
    """Migrate the database to ``revision``, inside the connection's transaction.

    Args:
        connection: in a transaction that the caller commits; all or nothing of it happens.
        revision: ``head``, ``base`` (nothing is left), or a revision's id.

    Returns:
        The revisions before and after.

    Raises:
        RevisionError: the database was made by a newer version.
        InputError: there is no such revision.
    """
    import sqlalchemy as sa
    from alembic import command

    config = _config()
    revisions = _revisions()
    if revision not in {"head", "base", *revisions}:
        raise InputError(
            revision,
            "is not a revision of the database",
            f"There are: {', '.join(revisions)}, base.",
        )
    connection.execute(
        sa.text("SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO '5min'")
    )
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
    before = current(connection)
    if before is not None and before not in revisions:
        raise _newer(before)
    target = revisions[-1] if revision == "head" else revision
    config.attributes["connection"] = connection
    if before is not None and (target == "base" or target < before):
        command.downgrade(config, target)
    elif target not in ("base", before):
        command.upgrade(config, target)
    return before, current(connection)


def require(revision: str | None) -> None:
    """Make sure that a database's revision is the one that this version works with.

    Raises:
        RevisionError: it is an older one, a newer one, or none.
    """
    if revision is not None and revision not in _revisions():
        raise _newer(revision)
    if revision != head():
        state = "has no tables yet" if revision is None else f"has revision {revision}"
        raise RevisionError(
            "the recorder's database",
            f"{state}, and this version works with {head()}",
            "Run: debrief database migrate",
        )


def _newer(revision: str) -> RevisionError:
    return RevisionError(
        "the recorder's database",
        f"has revision {revision}, which this version of Debrief does not know",
        "Upgrade Debrief to the version that made it, or migrate the database back with that "
        f"version: debrief database migrate --to {head()}",
    )


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    return config
