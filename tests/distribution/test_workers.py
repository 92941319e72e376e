"""Runs carried out by workers that share nothing with their launcher but what is on a network."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import fsspec
import pytest
from dagster import DagsterInstance
from msgspec import Struct

from debrief.lake import Lake
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.sessions.model import Session
from debrief.settings import load_settings
from pipelines.definitions import defs
from pipelines.distribution import Failed, carry_out, describe, pieces_of
from pipelines.instance import open_instance
from pipelines.ranges import range_tags
from resources.attendance import PARENT_TAG
from tests.distribution.cluster import Cluster, cluster
from tests.object_store import known
from tests.pipelines.test_run import conversation, write

WRONG = "2026-11-09"
WEEKS = ("2026-10-26", "2026-11-02")
TABLES = ("raw_sessions", "session_metadata", "judge_evaluations", "session_scores")


class Done(Struct, frozen=True):
    """What two workers made of two weeks, and what a run on one machine makes of them."""

    cluster: Cluster
    instance: DagsterInstance
    failed: list[Failed]
    runs: list[dg.DagsterRun]
    distributed: dict[str, bytes]
    local: dict[str, bytes]
    told: list[str]


@pytest.fixture(scope="module")
def done(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: EmbeddedPostgres
) -> Iterator[Done]:
    root = tmp_path_factory.mktemp("cluster")
    with cluster(root / "machines", postgres_server) as made, known(made.store):
        for name in ("one", "two"):
            made.worker(name, DEBRIEF_OFFLINE="1")
        transcripts = f"s3://{made.bucket}/transcripts"
        _fill(root / "transcripts", made.bucket)
        with pytest.MonkeyPatch.context() as told:
            environment = made.environment(root / "launcher", {"DEBRIEF_OFFLINE": "1"})
            for name, value in environment.items():
                told.setenv(name, value)
            told.setenv("DEBRIEF_SESSIONS", transcripts)
            lines = _Lines()
            log = logging.getLogger("debrief.progress")
            log.setLevel(logging.INFO)
            log.addHandler(lines)
            runs: list[dg.DagsterRun] = []
            with open_instance(load_settings()) as instance:
                nowhere = {"resources": {"lake": {"config": {"url": "nosuch://lake"}}}}
                pieces = [
                    *pieces_of("sessions_job", [(week, week) for week in WEEKS], {}, {}),
                    *pieces_of("sessions_job", [(WRONG, WRONG)], {}, nowhere),
                ]
                failed = carry_out(instance, pieces, ended=runs.append)
                told.setenv("DEBRIEF_LAKE", f"s3://{made.bucket}/local")
                _on_this_machine()
                yield Done(
                    made,
                    instance,
                    failed,
                    runs,
                    _content(made.lake),
                    _content(f"s3://{made.bucket}/local"),
                    lines.told,
                )
            log.removeHandler(lines)


def test_every_week_is_done_as_a_run_on_one_machine_does_it_byte_for_byte(done: Done) -> None:
    assert len(done.failed) == 1, describe(done.failed)
    assert sum(run.is_success for run in done.runs) == 2
    assert {f"{table}/{week}.parquet" for table in TABLES for week in WEEKS} <= set(
        done.distributed
    )
    assert done.distributed == done.local
    assert any("3 runs wait for workers" in line for line in done.told)
    assert any("(3 of 3)" in line for line in done.told)


def test_a_week_is_known_by_where_its_transcripts_are_for_all_and_not_by_a_workers_copy(
    done: Done,
) -> None:
    (session,) = Lake(done.cluster.lake).read("raw_sessions", WEEKS[1], Session)
    (transcript,) = session.transcripts
    assert transcript.path == f"s3://{done.cluster.bucket}/transcripts/november.jsonl"


def test_the_work_was_done_by_workers_with_homes_of_their_own(done: Done) -> None:
    homes = {machine.home for machine in done.cluster.machines}
    worked = [home for home in homes if list((home / ".debrief" / "mirror").rglob("*.jsonl"))]
    assert worked
    assert not (done.cluster.root.parent / "launcher" / ".debrief" / "dagster" / "storage").exists()


def test_a_run_that_fails_is_named_with_its_reason(done: Done) -> None:
    told = describe(done.failed)
    assert told.startswith(f"sessions_job {WRONG} … {WRONG} (run ")
    assert "nosuch://lake: is no place that is known" in told


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


def _fill(folder: Path, bucket: str) -> None:
    folder.mkdir()
    write(folder, "november.jsonl", conversation("november"))
    october = [line.replace("2026-11-03", "2026-10-27") for line in conversation("october")]
    write(folder, "october.jsonl", october)
    fsspec.filesystem("s3").put(str(folder), f"{bucket}/transcripts", recursive=True)


def _on_this_machine() -> None:
    with DagsterInstance.ephemeral() as instance:
        for week in WEEKS:
            result = defs.resolve_job_def("sessions_job").execute_in_process(
                instance=instance, tags={**range_tags(week, week), PARENT_TAG: ""}
            )
            assert result.success


def _content(url: str) -> dict[str, bytes]:
    lake = Lake(url)
    names = [name for table in (*TABLES, "scan", "extracted_rubrics") for name in lake.names(table)]
    return {name: lake.read_bytes(name) or b"" for name in names}
