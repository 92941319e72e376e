"""Backups of the recorder's database, and their restoration, with Postgres's own programs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from debrief.errors import InputError
from debrief.recorder.postgres import programs_folder
from debrief.recorder.storage.connecting import address_of, explained, make_engine
from debrief.recorder.storage.rows import StorageError

_CONTENTS = ("benchmarks", "tokens", "sessions", "tasks")
_TABLES = (*_CONTENTS, "store", "alembic_version")
_PLAIN = ("--no-owner", "--no-privileges")
_SCHEMAS = ("dagster", "debrief_state")
"""Of Dagster's tables and of the shared state, when they are in the same database."""
_NEW_HISTORY = """
DO $$ BEGIN
    IF to_regclass('public.store') IS NOT NULL THEN
        UPDATE public.store SET id = left(md5(gen_random_uuid()::text), 8);
    END IF;
END $$;
"""


def backup(url: str, file: Path) -> int:
    """Write everything that the database holds to a file, of one moment, while it is in use.

    The file is in ``pg_dump``'s custom form, compressed, and readable by its owner alone; it is
    there only when it is whole.

    Returns:
        The file's size in bytes.

    Raises:
        InputError: the file exists, or its folder cannot be written.
        StorageError: the database is away, or cannot be dumped.
    """
    if file.exists():
        raise InputError(str(file), "exists", "Name another file, or remove it.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        raise InputError(str(file.parent), f"cannot be written: {error.strerror}") from None
    new = Path(name)
    try:
        os.close(handle)
        _run(url, "pg_dump", *_PLAIN, "--format=custom", f"--file={new}")
        _read("is no backup", "--list", str(new))
        os.link(new, file)
        return file.stat().st_size
    except FileExistsError:
        raise InputError(str(file), "exists", "Name another file, or remove it.") from None
    finally:
        new.unlink()


def restore(url: str, file: Path, *, replace: bool = False) -> None:
    """Bring the database to what a backup holds, in one transaction: all of it, or nothing.

    The database is left at the backup's revision. Cursors that were given before are refused
    from then on, so that nobody goes on from a place that another row has now.

    Args:
        url: of the database.
        file: made by ``backup``.
        replace: drop what the database holds; without it, it has to be empty.

    Raises:
        InputError: the file is no backup, is damaged, or the database is not empty.
        StorageError: the database is away, or refuses.
    """
    if not file.is_file():
        raise InputError(str(file), "is not there")
    contents = _read("is no backup", "--list", str(file))
    schemas = [name for name in _SCHEMAS if f" SCHEMA - {name} " in contents]
    if not replace and (existing := _existing(url, schemas)):
        raise InputError(
            "the database",
            f"is not empty: there are {', '.join(existing)}",
            "With --replace, what it holds is dropped for what the backup holds.",
        )
    drop = "".join(f"DROP TABLE IF EXISTS public.{name} CASCADE;" for name in _TABLES)
    drop += "".join(f"DROP SCHEMA IF EXISTS {name} CASCADE;" for name in schemas)
    with tempfile.TemporaryDirectory(prefix="debrief-restore-") as folder:
        script = f"{folder}/restore.sql"
        _read("is damaged", *_PLAIN, f"--file={script}", str(file))
        before = f"SET LOCAL lock_timeout = '60s'; {drop}"
        steps = ("-c", before, "-f", script, "-c", _NEW_HISTORY)
        options = ("--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1")
        try:
            _run(url, "psql", *options, *steps)
        except StorageError as error:
            raise StorageError("the database", error.reason, "Nothing was changed.") from None


def _existing(url: str, schemas: Sequence[str]) -> list[str]:
    """Return the recorder's tables that have rows, and those of some schemas that exist."""
    import sqlalchemy as sa

    engine = make_engine(url)
    try:
        with explained(), engine.connect() as connection:
            inspector = sa.inspect(connection)
            query = "SELECT EXISTS (SELECT FROM public.{})"
            tables = [
                name
                for name in sorted(_CONTENTS)
                if inspector.has_table(name, schema="public")
                and connection.exec_driver_sql(query.format(name)).scalar()
            ]
            existing = set(inspector.get_schema_names())
            return tables + [f"the schema {name}" for name in schemas if name in existing]
    finally:
        engine.dispose()


def _read(problem: str, *arguments: str) -> str:
    """Return what ``pg_restore`` prints of a backup; the file is the last of its arguments."""
    try:
        return _run(None, "pg_restore", *arguments)
    except StorageError as error:
        reason = f"{problem}: {error.reason}"
        raise InputError(arguments[-1], reason, "Nothing was changed.") from None


def _run(url: str | None, name: str, *arguments: str) -> str:
    """Run a client program; a password goes into its environment, where nobody else sees it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    environment["LC_ALL"] = "C"
    database = []
    if url is not None:
        address = address_of(url).set(drivername="postgresql")
        environment["PGPASSWORD"] = str(address.password or address.query.get("password") or "")
        plain = address.difference_update_query(["password"])._replace(password=None)
        database = [f"--dbname={plain.render_as_string(hide_password=False)}"]
    done = subprocess.run(
        [str(programs_folder() / name), *database, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["gave no reason"]
        raise StorageError(name, lines[-1].rstrip("."), "See: debrief database status")
    return done.stdout.decode()
