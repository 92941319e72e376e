"""Backups of the recorder's database, and their restoration, with Postgres's own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from debrief.errors import InputError
from debrief.recorder.errors import StorageError
from debrief.recorder.postgres import programs_folder
from debrief.recorder.storage.connecting import address_of, explained, make_engine

_CONTENTS = ("benchmarks", "tokens", "sessions", "tasks")
_TABLES = (*_CONTENTS, "store", "alembic_version")
_PLAIN = ("--no-owner", "--no-privileges")
_SCHEMAS = ("dagster", "debrief_state")
"""Of Dagster's tables and of the shared state, when they are in the same database."""
_CHUNK = 1 << 20
_NEW_HISTORY = b"""
DO $$ BEGIN
    IF to_regclass('public.store') IS NOT NULL THEN
        UPDATE public.store SET id = left(md5(gen_random_uuid()::text), 8);
    END IF;
END $$;
COMMIT;
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
        with os.fdopen(handle, "wb") as out:
            _run(url, "pg_dump", [*_PLAIN, "--format=custom"], out)
            os.fsync(out.fileno())
        _listed(new)
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
    contents = _listed(file)
    schemas = [name for name in _SCHEMAS if f" SCHEMA - {name} " in contents]
    if not replace and (existing := _existing(url, schemas)):
        raise InputError(
            "the database",
            f"is not empty: there are {', '.join(existing)}",
            "With --replace, what it holds is dropped for what the backup holds.",
        )
    drop = "".join(f"DROP TABLE IF EXISTS public.{name} CASCADE;\n" for name in _TABLES)
    drop += "".join(f"DROP SCHEMA IF EXISTS {name} CASCADE;\n" for name in schemas)
    with tempfile.TemporaryFile() as damaged, tempfile.TemporaryFile() as refused:
        script = _started(None, "pg_restore", [*_PLAIN, "--file=-", str(file)], errors=damaged)
        into = _started(url, "psql", ["-X", "-q", "-v", "ON_ERROR_STOP=1"], errors=refused)
        assert script.stdout is not None
        assert into.stdin is not None
        try:
            with suppress(BrokenPipeError):
                into.stdin.write(f"BEGIN;\nSET LOCAL lock_timeout = '60s';\n{drop}".encode())
                shutil.copyfileobj(script.stdout, into.stdin, _CHUNK)
            script.stdout.close()
            if into.poll() is None and script.wait():
                raise InputError(str(file), f"is damaged: {_end(damaged)}", "Nothing was changed.")
            with suppress(BrokenPipeError):
                into.stdin.write(_NEW_HISTORY)
                into.stdin.close()
            if into.wait():
                raise StorageError("the database", _end(refused), "Nothing was changed.")
        finally:
            # Without its COMMIT, what psql was given is undone.
            for process in (into, script):
                process.kill()
                process.wait()


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


def _listed(file: Path) -> str:
    """Return what a backup holds, as ``pg_restore`` lists it."""
    try:
        return _run(None, "pg_restore", ["--list", str(file)])
    except StorageError as error:
        raise InputError(str(file), f"is no backup: {error.reason}") from None


def _run(url: str | None, name: str, arguments: Sequence[str], out: IO[bytes] | None = None) -> str:
    with tempfile.TemporaryFile() as errors:
        process = _started(url, name, arguments, errors=errors, out=out)
        output, _ = process.communicate()
        if process.returncode:
            raise StorageError(name, _end(errors), "See: debrief database status")
    return output.decode() if output else ""


def _started(
    url: str | None,
    name: str,
    arguments: Sequence[str],
    *,
    errors: IO[bytes],
    out: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a client program; a password goes into its environment, where nobody else sees it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    environment["LC_ALL"] = "C"
    database = []
    if url is not None:
        address, password = _without_password(url)
        database = [f"--dbname={address}"]
        if password:
            environment["PGPASSWORD"] = password
    return subprocess.Popen(
        [str(programs_folder() / name), *database, *arguments],
        stdin=subprocess.PIPE,
        stdout=out or subprocess.PIPE,
        stderr=errors,
        env=environment,
    )


def _without_password(url: str) -> tuple[str, str]:
    address = address_of(url).set(drivername="postgresql")
    inner = address.query.get("password")
    password = str(address.password or inner or "")
    plain = address.difference_update_query(["password"])._replace(password=None)
    return plain.render_as_string(hide_password=False), password


def _end(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else "gave no reason"
