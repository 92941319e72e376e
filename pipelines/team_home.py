"""What ``debrief up`` runs on: a folder in ``DEBRIEF_HOME``, and Dagster's tables in Postgres."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from debrief.settings import Settings

FOLDER = "up"
SCHEMA = "dagster"
"""Of Dagster's tables, beside the recorder's in one database."""
URL = "DAGSTER_DATABASE_URL"
CONFIGURATION = "dagster.yaml"
_LAKE = "lake"
_OURS = "# Written by Debrief; a file without this line is left alone."
_MOST_RUNS = 8


def team_home(settings: Settings) -> Path:
    """Return the folder that is ``DAGSTER_HOME`` under ``debrief up``, unless one is named."""
    return (settings.dagster_home or settings.home / FOLDER).absolute()


def is_team_home(settings: Settings) -> bool:
    """Return whether ``debrief up`` was used for the lake of these settings."""
    told = team_home(settings) / _LAKE
    return told.is_file() and told.read_text(encoding="utf-8") == settings.lake


def prepare_team_home(settings: Settings, location: dict[str, Any]) -> Path:
    """Write the folder's configuration, and the workspace that names where the code is served.

    Args:
        settings: whose home and lake.
        location: an entry of ``load_from`` in a workspace file.
    """
    home = team_home(settings)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_configuration(settings, home)
    write(home / "workspace.yaml", {"load_from": [location]})
    (home / _LAKE).write_text(settings.lake, encoding="utf-8")
    return home


def write_configuration(settings: Settings, home: Path) -> None:
    """Write ``dagster.yaml`` into a folder, unless it has one that somebody else wrote."""
    from assets.handing_out import in_queue
    from pipelines.queue import queue_configuration

    path = home / CONFIGURATION
    if path.exists() and not is_ours(home):
        return
    write(path, queue_configuration() if in_queue(settings) else _configuration())


def is_ours(home: Path) -> bool:
    """Return whether a folder's ``dagster.yaml`` was written by Debrief."""
    try:
        return (home / CONFIGURATION).read_text(encoding="utf-8").startswith(_OURS)
    except FileNotFoundError:
        return False


def _configuration() -> dict[str, Any]:
    import yaml

    configuration: dict[str, Any] = yaml.safe_load(
        packaged_configuration().read_text(encoding="utf-8")
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    configuration["concurrency"]["runs"]["max_concurrent_runs"] = min(cores or 1, _MOST_RUNS)
    return configuration


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file of Debrief's own, in one step: others may be reading it."""
    import yaml

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(f"{_OURS}\n{yaml.safe_dump(content, sort_keys=False)}", encoding="utf-8")
    new.replace(path)


def packaged_configuration() -> Path:
    """Return the ``dagster.yaml`` that comes along, in the repository or in the wheel."""
    here = Path(__file__).resolve().parent
    source = here.parent / "deploy" / CONFIGURATION
    return source if source.is_file() else here / CONFIGURATION


def dagster_database_url(settings: Settings) -> str:
    """Return the address of Dagster's tables: ``DAGSTER_DATABASE_URL``, else a schema of their own.

    The schema is in the database that ``DATABASE_URL`` names, else in the embedded server's, in
    which this process then has a share.

    Raises:
        StorageError: the embedded server cannot be started.
    """
    from debrief.recorder.postgres import database_url

    return settings.dagster_database_url or in_schema(database_url(settings))


def in_schema(url: str) -> str:
    """Return the address of a database in which tables are looked for in ``SCHEMA``.

    Raises:
        ConfigurationError: ``url`` is not a Postgres address.
    """
    from debrief.recorder.storage.connecting import address_of

    parsed = address_of(url).set(drivername="postgresql")
    former = parsed.query.get("options", "")
    options = " ".join([former] if isinstance(former, str) else former)
    chosen = f"{options} -csearch_path={SCHEMA}".strip()
    query = {**parsed.query, "options": chosen}
    return parsed.set(query=query).render_as_string(hide_password=False)


def make_schema(url: str) -> None:
    """Make the schema that an address speaks of, if it speaks of one."""
    import psycopg2
    from psycopg2 import errors, sql

    from debrief.recorder.storage.connecting import address_of

    address = address_of(url).set(drivername="postgresql")
    if f"search_path={SCHEMA}" not in str(address.query.get("options", "")):
        return
    dsn = address.render_as_string(hide_password=False)
    connection = psycopg2.connect(dsn, connect_timeout=10)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
    except errors.UniqueViolation:
        pass  # Somebody else makes it at this moment.
    finally:
        connection.close()
