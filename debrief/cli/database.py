"""``debrief database``: the recorder's database, looked after."""

from __future__ import annotations

from pathlib import Path

from debrief.cli.console import console
from debrief.recorder.backup import backup, restore
from debrief.recorder.postgres import database_url
from debrief.recorder.storage.connecting import address_of
from debrief.recorder.storage.migrating import head
from debrief.recorder.storage.store import RecordStore
from debrief.settings import load_settings


def show_status(database: str) -> None:
    """Print where the database is, its revision, and what it holds.

    Raises:
        StorageError: it is away, or not as this version needs it.
    """
    url = database or database_url(load_settings())
    out = console()
    shown = address_of(url).set(drivername="postgresql").difference_update_query(["password"])
    out.print(f"database  {shown.render_as_string()}", soft_wrap=True)
    with RecordStore(url) as store:
        out.print(f"revision  {store.revision() or 'none'} (this version works with {head()})")
        store.check()
        counts = store.counts()
    out.print(f"tasks     {counts.tasks}")
    out.print(f"sessions  {counts.sessions}, of them {counts.ready} ready")
    out.print(f"size      {counts.size / 1e6:,.1f} MB")


def migrate(database: str, revision: str) -> None:
    """Bring the database to a revision.

    Raises:
        StorageError: it is away, or a newer version made it.
        InputError: there is no such revision.
    """
    with RecordStore(database or database_url(load_settings())) as store:
        before, after = store.migrate(revision)
    if before == after:
        console().print(f"The database has revision {after or 'none'}; there is nothing to do.")
    else:
        console().print(f"Migrated the database from {before or 'none'} to {after or 'none'}.")


def back_up(database: str, file: Path) -> None:
    """Write a backup.

    Raises:
        InputError: the file exists or cannot be written.
        StorageError: the database is away.
    """
    size = backup(database or database_url(load_settings()), file)
    console().print(f"Wrote {file}, {size:,} bytes", soft_wrap=True)


def bring_back(database: str, file: Path, replace: bool) -> None:
    """Restore a backup, and migrate what it holds to this version's revision.

    Raises:
        InputError: the file is no backup, or the database is not empty.
        StorageError: the database is away, or refuses.
    """
    url = database or database_url(load_settings())
    restore(url, file, replace=replace)
    with RecordStore(url) as store:
        store.migrate()
        count = store.count()
    sessions = "1 session" if count == 1 else f"{count:,} sessions"
    console().print(f"Restored {file}: {sessions}", soft_wrap=True)
