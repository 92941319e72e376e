"""Metrics: of a lake, of an instance, and a real scrape read by Prometheus' own parser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import httpx
import pytest
from dagster import DagsterRunStatus
from prometheus_client.parser import text_string_to_metric_families

from debrief.errors import ConfigurationError, DebriefError
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.training.manifest import write_manifest
from debrief.training.model import TrainingSetRow
from pipelines.metrics import (
    InstanceMetrics,
    LakeMetrics,
    Metrics,
    Sample,
    Source,
    exposition,
    make_exporter,
)
from tests.grown import fill_lake
from tests.snapshots.scenario import head
from tests.training.scenario import judgement
from tests.waiting import LONG

WEEKS = dg.StaticPartitionsDefinition(["2026-11-02", "2026-11-09"])


@dg.asset(partitions_def=WEEKS)
def scores() -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(
        metadata={"calls": 3, "failed": 1, "made_now": 2, "input_tokens": 70, "cost_usd": 0.25}
    )


@dg.job
def breaks() -> None:
    @dg.op
    def broken() -> None:
        raise dg.Failure("on purpose", allow_retries=False)

    broken()


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as found:
        yield found


def parsed(text: bytes) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the figures by name and values of labels, in the order of the labels' names."""
    return {
        (sample.name, tuple(v for _, v in sorted(sample.labels.items()))): sample.value
        for metric in text_string_to_metric_families(text.decode())
        for sample in metric.samples
    }


def scraped(source: InstanceMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    return parsed(exposition(Metrics({"dagster": source.collect})))


def test_runs_calls_costs_and_failures_are_told(instance: dg.DagsterInstance) -> None:
    source = InstanceMetrics(instance, [scores.key], ["breaks"])
    for count, week in enumerate(WEEKS.get_partition_keys(), 1):
        dg.materialize([scores], instance=instance, partition_key=week)
        assert scraped(source)["debrief_calls_total", ("scores",)] == 3 * count
    breaks.execute_in_process(instance=instance, raise_on_error=False)
    found = scraped(source)
    assert found["debrief_runs", ("success",)] == 2
    assert found["debrief_runs", ("failure",)] == 1
    assert found["debrief_failures_total", ("scores",)] == 2
    assert found["debrief_made_rows_total", ("scores",)] == 4
    assert found["debrief_call_tokens_total", ("input", "scores")] == 140
    assert found["debrief_spent_usd_total", ("scores",)] == 0.5
    assert found["debrief_last_run_timestamp_seconds", ("breaks", "failure")] > 0


def test_pools_daemons_and_the_queue_are_told(instance: dg.DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots("language_model", 2)
    instance.create_run_for_job(breaks, status=DagsterRunStatus.STARTED)
    found = scraped(InstanceMetrics(instance, [], []))
    assert found["debrief_pool_slots", ("language_model",)] == 2
    assert found["debrief_pool_used", ("language_model",)] == 0
    assert found["debrief_runs", ("started",)] == 1
    assert found["debrief_oldest_queued_run_seconds", ()] == 0
    assert found["debrief_backfills_under_way", ()] == 0
    assert found["debrief_daemon_healthy", ("SENSOR",)] == 0


def test_a_run_that_waits_for_a_worker_is_told_of_like_one_in_the_queue(
    instance: dg.DagsterInstance,
) -> None:
    instance.create_run_for_job(breaks, status=DagsterRunStatus.STARTING)
    time.sleep(0.01)
    found = scraped(InstanceMetrics(instance, [], []))
    assert found["debrief_oldest_queued_run_seconds", ()] > 0


def one(value: float) -> list[Sample]:
    return [(("debrief_sessions", f'quo"te\n{value}'), value)]


def test_a_scrape_is_answered_from_the_last_look_until_that_is_old() -> None:
    now, looks = [0.0], list[float]()

    def source() -> list[Sample]:
        looks.append(now[0])
        return one(1.0)

    metrics = Metrics({"it": source}, interval=30.0, clock=lambda: now[0])
    for moment in (0.0, 10.0, 29.0, 30.0, 31.0):
        now[0] = moment
        exposition(metrics)
    assert looks == [0.0, 30.0]


def test_a_source_that_fails_keeps_its_figures_and_is_told_of() -> None:
    state = {"fails": False}
    now = [0.0]

    def source() -> list[Sample]:
        if state["fails"]:
            raise DebriefError("database", "is away")
        return one(7.0)

    metrics = Metrics({"it": source, "other": lambda: []}, interval=1.0, clock=lambda: now[0])
    exposition(metrics)
    state["fails"], now[0] = True, 5.0
    found = parsed(exposition(metrics))
    assert 7.0 in found.values()
    assert found["debrief_source_up", ("it",)] == 0
    assert found["debrief_source_up", ("other",)] == 1
    assert metrics.errors() == {"it": "database: is away."}


def test_the_exporter_answers_and_health_says_what_cannot_be_told() -> None:
    def broken() -> list[Sample]:
        raise DebriefError("lake", "cannot be read")

    with served({"it": lambda: one(1.0)}) as url:
        statuses = {
            path: httpx.get(f"{url}{path}", trust_env=False, timeout=LONG).status_code
            for path in ("/metrics", "/health", "/", "/metrics/../etc")
        }
        assert list(statuses.values()) == [200, 200, 404, 404], statuses
        found = parsed(httpx.get(f"{url}/metrics", trust_env=False, timeout=LONG).content)
        assert found["debrief_sessions", ('quo"te\n1.0',)] == 1.0
        with pytest.raises(ConfigurationError, match="--port"):
            make_exporter(Metrics({}), "127.0.0.1", int(url.rpartition(":")[2]))
    with served({"lake": broken}) as url:
        answer = httpx.get(f"{url}/health", trust_env=False, timeout=LONG)
    assert answer.status_code == 503
    assert json.loads(answer.text) == {"status": "failing", "lake": "lake: cannot be read."}


class served:  # noqa: N801  read as a word in a with statement
    """A running exporter."""

    def __init__(self, sources: dict[str, Source]) -> None:
        self.server = make_exporter(Metrics(sources), "127.0.0.1", 0)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self) -> str:
        self.thread.start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


LAST = "2026-11-09"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(str(tmp_path))
    fill_lake(found, LAST, weeks=10, sessions=30)
    return found


def metrics(lake: Lake) -> dict[tuple[str, ...], float]:
    return dict(LakeMetrics(lake).collect())


def evaluation(number: int, **fields: object) -> JudgeEvaluation:
    return judgement(head(f"s{number}"), **fields)  # type: ignore[arg-type]


def test_sessions_rows_tokens_and_costs_add_up(lake: Lake) -> None:
    found = metrics(lake)
    assert found["debrief_sessions", "claude-code"] == 10
    assert found["debrief_rows", "judge_evaluations", "ok"] == 30
    assert found["debrief_tokens", "session_scores", "input"] == 30 * 20_000
    assert found["debrief_cost_usd", "judge_evaluations"] == pytest.approx(30 * 0.004)


def test_failures_and_unknown_prices_are_counted_and_not_taken_for_nothing(lake: Lake) -> None:
    rows = [
        evaluation(1, cost_usd=0.5, input_tokens=9),
        evaluation(2, cost_usd=None, input_tokens=9),
        evaluation(3, status="failed", failure="no answer"),
        evaluation(4, cost_usd=None),
    ]
    lake.write("judge_evaluations", LAST, rows, JudgeEvaluation)
    found = metrics(lake)
    assert found["debrief_rows", "judge_evaluations", "failed"] == 1
    assert found["debrief_cost_usd", "judge_evaluations"] == pytest.approx(27 * 0.004 + 0.5)
    assert found["debrief_cost_unknown_rows", "judge_evaluations"] == 1


def test_a_partition_is_read_again_only_when_it_changed(lake: Lake, tmp_path: Path) -> None:
    reads = []

    class Counted(Lake):
        def read(self, *arguments, **options):  # type: ignore[no-untyped-def]
            reads.append(arguments)
            return super().read(*arguments, **options)

    source = LakeMetrics(Counted(str(tmp_path)))
    before = dict(source.collect())
    assert (dict(source.collect()), len(reads)) == (before, 30)
    lake.write("judge_evaluations", LAST, [evaluation(1)], JudgeEvaluation)
    after = dict(source.collect())
    assert len(reads) == 31
    assert before["debrief_rows", "judge_evaluations", "ok"] == 30
    assert after["debrief_rows", "judge_evaluations", "ok"] == 28
    assert after["debrief_sessions", "droid"] == before["debrief_sessions", "droid"]


def test_training_sets_and_their_samples(lake: Lake) -> None:
    row = TrainingSetRow(
        task="t", fingerprint="f", considered=9, samples=5, train=4, eval=1, tokens=10,
        lines_digest="", card_digest="",
    )  # fmt: skip
    for number in range(2):
        lake.write("training_index", f"t{number}/f", [row], TrainingSetRow)
    write_manifest(lake, [("t0", "f"), ("t1", "f")])
    lake.write("training_index", "former/f", [row], TrainingSetRow)
    found = metrics(lake)
    assert (found["debrief_training_sets",], found["debrief_training_samples",]) == (2, 10)


def test_an_empty_lake_has_metrics_too(tmp_path: Path) -> None:
    found = metrics(Lake(str(tmp_path / "none")))
    assert found["debrief_training_sets",] == 0
    assert found["debrief_cost_usd", "session_scores"] == 0
