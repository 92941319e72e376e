"""A team's instance, backed up and brought back as ``docs/operations.md`` says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import dagster as dg
import pytest

from debrief.lake import Lake
from debrief.recorder.postgres import EmbeddedPostgres, programs_folder
from debrief.recorder.storage.rows import CursorError
from debrief.recorder.storage.store import RecordStore
from debrief.redaction.redactor import Redactor, load_key
from debrief.sessions.model import SessionHead
from debrief.settings import Settings, load_settings
from pipelines.instance import open_instance
from tests.grown import fill_lake
from tests.postgres import database, in_dagster_schema
from tests.recorder.records import TEXT, row, task

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0bC1dE2"


COMMANDS = re.findall(
    r"^\$ ((?:pg_dump|pg_restore|psql) .*)$", OPERATIONS.read_text(), re.MULTILINE
)


def run_as_told(url: str, folder: Path, *programs: str) -> None:
    """Run the page's commands with some programs, in their order, on files of a folder."""
    path = f"{programs_folder()}:{os.environ['PATH']}"
    for command in COMMANDS:
        if command.startswith(programs):
            subprocess.run(
                command.replace("/backups/", ""),
                shell=True,
                check=True,
                capture_output=True,
                cwd=folder,
                env={**os.environ, "DATABASE_URL": url, "PATH": path},
            )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"DEBRIEF_HOME": str(tmp_path / "home")})


def opened(settings: Settings, url: str, monkeypatch: pytest.MonkeyPatch) -> dg.DagsterInstance:
    """Return the instance in a database."""
    monkeypatch.setenv("DAGSTER_HOME", "")
    return open_instance(
        settings.model_copy(update={"dagster_database_url": in_dagster_schema(url)})
    )


def test_runs_records_lake_and_key_come_back_on_another_machine(
    settings: Settings,
    tmp_path: Path,
    postgres_server: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["2026-11-09"]))
    def thing() -> None: ...

    with database(postgres_server, "template0") as first, RecordStore(first) as store:
        store.migrate()
        token = store.add_token("ci", ("read",))[1]
        store.add_task(task())
        stored = store.add_session(row())
        cursor = store.sessions().cursor
        with opened(settings, first, monkeypatch) as instance:
            dg.materialize([thing], instance=instance, partition_key="2026-11-09")
        fill_lake(Lake(settings.lake), "2026-11-09", weeks=2, sessions=6)
        hidden = Redactor(load_key(settings.home)).redact(f"token {SECRET}").text
        run_as_told(first, tmp_path, "pg_dump")
        shutil.make_archive(str(tmp_path / "home-backup"), "gztar", settings.home)

    elsewhere = tmp_path / "elsewhere"
    shutil.unpack_archive(str(tmp_path / "home-backup.tar.gz"), elsewhere)
    restored = load_settings({"DEBRIEF_HOME": str(elsewhere)})
    with database(postgres_server, "template0") as second:
        run_as_told(second, tmp_path, "pg_restore", "psql")
        with RecordStore(second) as store:
            assert store.find_token(token) is not None
            assert store.sessions().items == (stored,)
            assert store.record_text(stored.id) == TEXT
            with pytest.raises(CursorError, match="before it was restored"):
                store.sessions(cursor=cursor)
        with opened(restored, second, monkeypatch) as instance:
            assert instance.get_materialized_partitions(thing.key) == {"2026-11-09"}
            assert instance.get_runs_count() == 1
            assert dg.materialize([thing], instance=instance, partition_key="2026-11-09").success
    lake = Lake(restored.lake)
    assert (
        sum(
            len(list(lake.read("raw_sessions", w, SessionHead)))
            for w in lake.partitions("raw_sessions")
        )
        == 6
    )
    assert Redactor(load_key(restored.home)).redact(f"token {SECRET}").text == hidden
