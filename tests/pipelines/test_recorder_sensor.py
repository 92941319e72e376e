"""New records as they come, and the whole way of one: from a worktree to a training set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import dagster as dg
import httpx
import msgspec
import orjson
import pytest

from debrief.lake import Lake
from debrief.recorder.checks import ReadyRule
from debrief.recorder.client import RecorderClient
from debrief.recorder.local_session import StopOptions
from debrief.recorder.service.ingest import Ingest
from debrief.recorder.storage.store import RecordStore
from debrief.redaction import Redactor
from debrief.sessions.model import Session
from debrief.training.formats import validate_line
from debrief.training.model import SampleLine
from pipelines.automation import new_sessions
from pipelines.definitions import defs
from resources import Stages
from tests.recorder.records import build, upload_of
from tests.recorder.service.helpers import KEY, ensure_task, running
from tests.recorder.session_scenario import a_shop, add_pnpm
from tests.waiting import LONG

WEEK, NEXT = "2026-11-02", "2026-11-09"


@pytest.fixture
def store(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RecordStore]:
    """The database of a machine whose only sessions are recorded ones."""
    told = {
        "DATABASE_URL": postgres_url,
        "DEBRIEF_HOME": str(tmp_path / "home"),
        "DEBRIEF_LAKE": str(tmp_path / "lake"),
        "DEBRIEF_SESSIONS": str(tmp_path / "transcripts"),
        "DEBRIEF_NO_MODEL": "1",
        "DEBRIEF_RECORDER": "1",
    }
    for name in ("LANGFUSE_HOST", "DEBRIEF_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "transcripts").mkdir()
    with RecordStore(postgres_url) as store:
        store.migrate()
        ensure_task(store)
        yield store


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def add(store: RecordStore, **meta: Any) -> UUID:
    record = build(**{"session_id": uuid4(), **meta})
    store.add_session(Ingest(Redactor(KEY), ReadyRule()).check(upload_of(record)))
    return record.meta.session_id


def tick(instance: dg.DagsterInstance, before: Any = None) -> Any:
    """Evaluate the sensor after ``before``, as its daemon does."""
    resources = {"stages": Stages()}
    context = dg.build_sensor_context(
        instance=instance, cursor=before and before.cursor, resources=resources
    )
    with context:
        return new_sessions.evaluate_tick(context)


def weeks_of(told: Any) -> list[str]:
    (request,) = told.run_requests
    start, end = (f"dagster/asset_partition_range_{name}" for name in ("start", "end"))
    return sorted({request.tags[start], request.tags[end]})


def test_new_records_ask_for_their_weeks_once(
    store: RecordStore, instance: dg.DagsterInstance
) -> None:
    add(store)
    add(
        store,
        started_at=datetime(2026, 11, 9, 8, tzinfo=UTC),
        stopped_at=datetime(2026, 11, 9, 9, tzinfo=UTC),
    )
    first = tick(instance)
    assert weeks_of(first) == [WEEK, NEXT]
    assert tick(instance).run_requests[0].run_key == first.run_requests[0].run_key
    assert tick(instance, first).run_requests == []
    add(store)
    assert weeks_of(tick(instance, first)) == [WEEK]


def test_a_status_that_goes_to_and_fro_asks_every_time(
    store: RecordStore, instance: dg.DagsterInstance
) -> None:
    id = add(store)
    told = tick(instance)
    keys = {told.run_requests[0].run_key}
    for status in ("ready", "draft", "ready"):
        store.set_status(id, "ready" if status == "ready" else "draft")
        told = tick(instance, told)
        keys.add(told.run_requests[0].run_key)
    assert len(keys) == 4


def test_a_database_that_is_away_asks_for_its_week_once_and_loses_nothing(
    store: RecordStore,
    instance: dg.DagsterInstance,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add(store)
    told = tick(instance)
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    away = tick(instance, told)
    assert WEEK not in weeks_of(away)
    assert tick(instance, away).run_requests == []
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    add(store)
    assert WEEK in weeks_of(tick(instance, away))


def take(instance: dg.DagsterInstance, told: Any) -> None:
    """Do what a tick asked for."""
    (request,) = told.run_requests
    job = defs.resolve_job_def("whole_graph")
    result = job.execute_in_process(
        instance=instance, run_config=request.run_config, tags=request.tags
    )
    assert result.success
    for pair in instance.get_dynamic_partitions("pair"):
        following = defs.resolve_job_def("training_sets_job")
        assert following.execute_in_process(instance=instance, partition_key=pair).success


def names_of(tools: list[dict[str, Any]]) -> set[str]:
    return {tool["function"]["name"] for tool in tools}


def test_from_a_worktree_to_a_training_set(
    store: RecordStore,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", add_pnpm(tmp_path))
    shop = a_shop(tmp_path)
    shop.start(system="Work carefully.")
    shop.run("pnpm", "lint")
    shop.change()
    shop.run("pnpm", "test")
    with running(store) as api:
        with RecorderClient(api.url, api.tokens["write"]) as server:
            shop.stop(server, StopOptions())
        (stored,) = store.sessions().items
        assert (stored.verified, stored.validated, stored.not_ready) == (True, True, [])
        store.set_status(stored.id, "ready")
        told = {"Authorization": f"Bearer {api.tokens['export']}"}
        curl = httpx.get(
            f"{api.url}/export.jsonl?format=messages&taskId=cart", headers=told, timeout=LONG
        )
    exported = orjson.loads(curl.content)

    take(instance, tick(instance))

    lake = Lake(str(tmp_path / "lake"))
    (week,) = lake.partitions("raw_sessions")
    (session,) = lake.read("raw_sessions", week, Session)
    assert (session.id, session.task, session.status) == (str(stored.id), "cart", "ready")
    assert session.growth == 4
    (path,) = (tmp_path / "lake" / "training" / "cart").glob("*.jsonl")
    (line,) = path.read_bytes().splitlines()
    assert validate_line(line) == []
    made = orjson.loads(line)
    assert made["messages"] == exported["messages"]
    assert names_of(made["tools"]) == names_of(exported["tools"])
    metadata = msgspec.json.decode(line, type=SampleLine).metadata
    assert metadata.base_commit == stored.base_ref == exported["metadata"]["base_commit"]
    assert (metadata.status, metadata.source) == ("ready", "recorder")
    assert (metadata.prompt_origin, metadata.prompts[0].text) == ("recorded", "Work carefully.")
    assert (metadata.scoring_model, metadata.verdict, metadata.reviewed) == ("", "", False)
    assert session.recorded
