"""A team's instance, backed up and brought back as ``docs/operations.md`` says."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import dagster as dg
import psycopg2
import pytest

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.recorder.backup import backup, restore
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage.store import RecordStore
from debrief.redaction.redactor import Redactor, load_key
from debrief.sessions.model import SessionHead
from debrief.settings import Settings, load_settings
from pipelines import instance as instances
from tests.grown import fill_lake
from tests.postgres import database

SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0bC1dE2"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"DEBRIEF_HOME": str(tmp_path / "home")})


def opened(settings: Settings, url: str, monkeypatch: pytest.MonkeyPatch) -> dg.DagsterInstance:
    """Return the instance in a database, made ready as ``debrief up`` does."""
    home = instances.prepare_team_home(settings, settings.home / "code.sock")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv(instances.URL, instances.in_schema(url))
    instances.main()
    return dg.DagsterInstance.get()


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
        with opened(settings, first, monkeypatch) as instance:
            dg.materialize([thing], instance=instance, partition_key="2026-11-09")
        fill_lake(Lake(settings.lake), "2026-11-09", weeks=2, sessions=6)
        hidden = Redactor(load_key(settings.home)).redact(f"token {SECRET}").text
        backup(first, tmp_path / "state.backup")
        shutil.make_archive(str(tmp_path / "home-backup"), "gztar", settings.home)

    elsewhere = tmp_path / "elsewhere"
    shutil.unpack_archive(str(tmp_path / "home-backup.tar.gz"), elsewhere)
    restored = load_settings({"DEBRIEF_HOME": str(elsewhere)})
    with database(postgres_server, "template0") as second:
        restore(second, tmp_path / "state.backup")
        with RecordStore(second) as store:
            assert store.find_token(token) is not None
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


def test_an_instance_in_use_is_replaced_only_when_told_so(
    settings: Settings,
    tmp_path: Path,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RecordStore(postgres_url) as store:
        store.migrate()
    with opened(settings, postgres_url, monkeypatch):
        backup(postgres_url, tmp_path / "state.backup")
    with pytest.raises(InputError, match="is not empty: there are the schema dagster"):
        restore(postgres_url, tmp_path / "state.backup")
    with closing(psycopg2.connect(postgres_url)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE dagster.left_over (x int)")
        connection.commit()
    restore(postgres_url, tmp_path / "state.backup", replace=True)
    with closing(psycopg2.connect(postgres_url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('dagster.left_over'), to_regclass('dagster.runs')")
        assert cursor.fetchone() == (None, "dagster.runs")
