"""Metrics of the instance, the lake and the recorder's database, served to Prometheus."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import dagster as dg
from dagster import DagsterRunStatus
from msgspec import Struct

from assets.reports import done_in
from debrief.errors import ConfigurationError, DebriefError
from debrief.lake import Lake
from debrief.recorder.storage.store import RecordStore
from debrief.settings import Settings
from debrief.training.manifest import manifest_pairs
from debrief.training.model import INDEX

if TYPE_CHECKING:
    from prometheus_client.core import Metric

INTERVAL = 30.0
"""Seconds for which a scrape gets what was read before."""
_PAGE = 1_000
_BACKFILLS = 200
METRICS: dict[str, tuple[str, ...]] = {
    "debrief_sessions": ("Sessions in the lake, by the tool they were held with.", "tool"),
    "debrief_unread_transcripts": ("Transcripts that are no session, or cannot be read.", "reason"),
    "debrief_rows": (
        "Rows in the lake by stage and status; failed ones are tried again by the next run.",
        *("stage", "status"),
    ),
    "debrief_tokens": ("Tokens that the rows in the lake took.", "stage", "kind"),
    "debrief_cost_usd": ("What the rows in the lake cost, as far as prices are known.", "stage"),
    "debrief_cost_unknown_rows": ("Rows that took tokens at a price nobody knows.", "stage"),
    "debrief_training_sets": ("Training sets.",),
    "debrief_training_samples": ("Samples in all training sets.",),
    "debrief_recorder_sessions": ("Recorded sessions by status.", "status"),
    "debrief_database_bytes": ("Size of the recorder's database, Dagster's tables included.",),
    "debrief_runs": ("Runs that the instance knows of, by status.", "status"),
    "debrief_last_run_timestamp_seconds": ("When the last run ended so.", "job", "status"),
    "debrief_last_run_seconds": ("How long the last run that succeeded took.", "job"),
    "debrief_oldest_queued_run_seconds": (
        "How long the oldest run has waited, in the queue or for a worker.",
    ),
    "debrief_backfills_under_way": ("Backfills that have runs to launch or to wait for.",),
    "debrief_pool_slots": ("Steps that a pool lets run.", "pool"),
    "debrief_pool_used": ("Steps of a pool that run.", "pool"),
    "debrief_pool_waiting": ("Steps that wait for a pool.", "pool"),
    "debrief_daemon_healthy": ("1 when a daemon was heard of lately and had no error.", "daemon"),
    "debrief_calls": ("Calls of a language model, by runs that are kept.", "stage"),
    "debrief_made_rows": ("Rows made new or changed, by runs that are kept.", "stage"),
    "debrief_failures": ("Rows that failed, each time they did, by runs that are kept.", "stage"),
    "debrief_spent_usd": ("Money, where prices are known, by runs that are kept.", "stage"),
    "debrief_call_tokens": ("Tokens of these calls, by runs that are kept.", "stage", "kind"),
    "debrief_source_up": (
        "1 if its last reading succeeded, else its metrics are older.",
        "source",
    ),
    "debrief_look_seconds": ("How long the last reading took.",),
}
"""What each metric means, and the names of its labels."""
_COUNTERS = {
    "calls": ("debrief_calls",),
    "fresh": ("debrief_made_rows",),
    "failed": ("debrief_failures",),
    "cost_usd": ("debrief_spent_usd",),
    "input_tokens": ("debrief_call_tokens", "input"),
    "output_tokens": ("debrief_call_tokens", "output"),
}
"""Metrics that only grow, with the label that follows the stage; by the field that is added up."""
_EVALUATED = ("judge_evaluations", "session_scores", "rubric_evaluations")
_TABLES = (
    *_EVALUATED,
    "langfuse_scores",
    "raw_sessions",
    "unread_transcripts",
    INDEX,
)

Sample = tuple[tuple[str, ...], float]
"""The name of a metric with the values of its labels, and its value."""
Source = Callable[[], Iterable[Sample]]


class Metrics:
    """Reads its sources now and then, and gives out what it read.

    Args:
        sources: each by a name; one that fails keeps its former metrics, and its
            ``debrief_source_up`` is 0.
        interval: seconds between two readings.
        clock: gives seconds.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._interval = interval
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: dict[str, list[Sample]] = {}
        self._errors: dict[str, str] = {}
        self._read_at: float | None = None
        self._seconds = 0.0

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, read at most ``interval`` ago, as ``prometheus_client`` asks for."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        with self._lock:
            now = self._clock()
            if self._read_at is None or now - self._read_at >= self._interval:
                self._read()
                self._read_at, self._seconds = now, self._clock() - now
            samples = [each for name in self._sources for each in self._samples.get(name, ())]
            samples += [
                *((("debrief_source_up", n), float(n not in self._errors)) for n in self._sources),
                (("debrief_look_seconds",), self._seconds),
            ]
        counters = {name for name, *_ in _COUNTERS.values()}
        for name, (meaning, *labels) in METRICS.items():
            family = CounterMetricFamily if name in counters else GaugeMetricFamily
            metric = family(name, meaning, labels=labels)
            for (_, *values), value in sorted(sample for sample in samples if sample[0][0] == name):
                metric.add_metric(values, value)
            yield metric

    def errors(self) -> dict[str, str]:
        """Return why the sources that failed did."""
        for _ in self.collect():
            pass
        return dict(self._errors)

    def _read(self) -> None:
        for name, source in self._sources.items():
            try:
                self._samples[name] = list(source())
                self._errors.pop(name, None)
            except Exception as error:  # Whatever it is, the other sources are read.
                is_ours = isinstance(error, DebriefError)
                self._errors[name] = str(error) if is_ours else type(error).__name__


class InstanceMetrics:
    """Metrics of an instance; materializations are read once, and counted up from there.

    Args:
        instance: whose.
        stages: the assets whose materializations have calls, costs and failures.
        jobs: the jobs whose last runs are given.
    """

    def __init__(
        self, instance: dg.DagsterInstance, stages: Iterable[dg.AssetKey], jobs: Iterable[str]
    ) -> None:
        self._instance = instance
        self._cursors: dict[dg.AssetKey, int | None] = dict.fromkeys(stages)
        self._jobs = tuple(jobs)
        self._sums: defaultdict[tuple[str, ...], float] = defaultdict(float)

    def collect(self) -> Iterator[Sample]:
        """Read the instance, and yield all samples."""
        for status in DagsterRunStatus:
            count = self._instance.get_runs_count(dg.RunsFilter(statuses=[status]))
            yield ("debrief_runs", status.value.lower()), count
        for job in self._jobs:
            yield from self._last_runs(job)
        waiting = dg.RunsFilter(statuses=[DagsterRunStatus.QUEUED, DagsterRunStatus.STARTING])
        oldest = self._instance.get_run_records(waiting, limit=1, ascending=True)
        waited = time.time() - oldest[0].create_timestamp.timestamp() if oldest else 0.0
        yield ("debrief_oldest_queued_run_seconds",), max(0.0, waited)
        backfills = self._instance.get_backfills(limit=_BACKFILLS)
        under_way = sum(backfill.status.value == "REQUESTED" for backfill in backfills)
        yield ("debrief_backfills_under_way",), under_way
        storage = self._instance.event_log_storage
        for pool in storage.get_concurrency_keys():
            info = storage.get_concurrency_info(pool)
            yield ("debrief_pool_slots", pool), info.slot_count
            yield ("debrief_pool_used", pool), info.active_slot_count
            yield ("debrief_pool_waiting", pool), info.pending_step_count
        for name, daemon in self._instance.get_daemon_statuses().items():
            if daemon.required:
                yield ("debrief_daemon_healthy", name), float(bool(daemon.healthy))
        for key in self._cursors:
            self._add_new_materializations(key)
        yield from self._sums.items()

    def _last_runs(self, job: str) -> Iterator[Sample]:
        for status in (DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE):
            runs = dg.RunsFilter(job_name=job, statuses=[status])
            for record in self._instance.get_run_records(runs, limit=1):
                start, end = record.start_time, record.end_time
                if end is not None:
                    name = status.value.lower()
                    yield ("debrief_last_run_timestamp_seconds", job, name), end
                    if status is DagsterRunStatus.SUCCESS and start is not None:
                        yield ("debrief_last_run_seconds", job), end - start

    def _add_new_materializations(self, key: dg.AssetKey) -> None:
        while True:
            new = dg.AssetRecordsFilter(key, after_storage_id=self._cursors[key])
            page = self._instance.fetch_materializations(new, limit=_PAGE, ascending=True)
            events = [record.event_log_entry.dagster_event for record in page.records]
            for done in done_in(event for event in events if event is not None):
                for what, (name, *kind) in _COUNTERS.items():
                    self._sums[name, done.stage, *kind] += getattr(done, what) or 0.0
            if page.records:
                self._cursors[key] = page.records[-1].storage_id
            if len(page.records) < _PAGE:
                return


class _Row(Struct, frozen=True):
    """The columns of all tables that are counted; a table has some of them."""

    tool: str = ""
    expected: bool = False
    samples: int = 0
    status: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class LakeMetrics:
    """Metrics of a lake; a partition is read again only when its stamp has changed."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: dict[tuple[str, str], tuple[str, dict[tuple[str, ...], float]]] = {}
        """By table and partition: the digest, and the sums over the rows."""

    def collect(self) -> Iterator[Sample]:
        """Read what has changed, and yield all samples."""
        totals: defaultdict[tuple[str, ...], float] = defaultdict(float)
        totals["debrief_training_sets",] = totals["debrief_training_samples",] = 0.0
        for table in _EVALUATED:
            for metric in ("debrief_cost_usd", "debrief_cost_unknown_rows"):
                totals[metric, table] = 0.0
            for kind in ("input", "output"):
                totals["debrief_tokens", table, kind] = 0.0
        for table in _TABLES:
            for key in self._keys(table):
                for labels, value in self._partition(table, key).items():
                    totals[labels] += value
        yield from totals.items()

    def _keys(self, table: str) -> list[str]:
        if table == INDEX:
            return ["/".join(pair) for pair in manifest_pairs(self._lake) or ()]
        return self._lake.partitions(table)

    def _partition(self, table: str, key: str) -> dict[tuple[str, ...], float]:
        stamp = self._lake.stamp(table, key)
        if stamp is None:
            return {}
        digest, sums = self._read.get((table, key), ("", {}))
        if digest != stamp.digest:
            sums = self._sums(table, key)
            self._read[table, key] = stamp.digest, sums
        return sums

    def _sums(self, table: str, key: str) -> dict[tuple[str, ...], float]:
        sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for row in self._lake.read(table, key, _Row):
            status = row.status or ""
            if table == "raw_sessions":
                sums["debrief_sessions", row.tool] += 1
            elif table == "unread_transcripts":
                reason = "empty" if row.expected else "unreadable"
                sums["debrief_unread_transcripts", reason] += 1
            elif table == INDEX:
                sums["debrief_training_sets",] += row.samples > 0
                sums["debrief_training_samples",] += row.samples
            else:
                sums["debrief_rows", table, status] += 1
            if table in _EVALUATED:
                is_unknown = row.cost_usd is None and row.input_tokens + row.output_tokens > 0
                sums["debrief_tokens", table, "input"] += row.input_tokens
                sums["debrief_tokens", table, "output"] += row.output_tokens
                sums["debrief_cost_usd", table] += row.cost_usd or 0.0
                sums["debrief_cost_unknown_rows", table] += is_unknown
        return sums


def recorder_metrics(store: RecordStore) -> Iterator[Sample]:
    """Yield what a recorder's database holds.

    Raises:
        StorageError: it is away, or not migrated.
    """
    counts = store.counts()
    yield ("debrief_recorder_sessions", "ready"), counts.ready
    yield ("debrief_recorder_sessions", "draft"), counts.sessions - counts.ready
    yield ("debrief_database_bytes",), counts.size


def exposition(metrics: Metrics) -> bytes:
    """Return the metrics in Prometheus' text form."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    return generate_latest(registry)


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log no request."""


def make_exporter(metrics: Metrics, host: str, port: int) -> WSGIServer:
    """Return a server of ``/metrics`` and ``/health``; ``serve_forever`` runs it.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    from prometheus_client import CONTENT_TYPE_LATEST
    from prometheus_client.exposition import ThreadingWSGIServer

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        status, kind, body = "404 Not Found", "text/plain", b"There is /metrics, and /health.\n"
        if path == "/metrics":
            status, kind, body = "200 OK", CONTENT_TYPE_LATEST, exposition(metrics)
        elif path == "/health":
            errors = metrics.errors()
            status, kind = "503 Service Unavailable" if errors else "200 OK", "application/json"
            body = json.dumps({"status": "failing" if errors else "ok", **errors}).encode()
        start_response(status, [("Content-Type", kind)])
        return [body]

    try:
        return make_server(host, port, app, ThreadingWSGIServer, _QuietHandler)
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port}", f"cannot be listened on ({error.strerror})", "Name another: --port"
        ) from error


def sources(settings: Settings, stack: ExitStack) -> dict[str, Source]:
    """Return the instance, the lake and the recorder's database as sources of metrics.

    Args:
        settings: which lake and home.
        stack: closes what is opened.
    """
    from debrief.recorder.postgres import database_url
    from pipelines.definitions import defs
    from pipelines.instance import open_instance

    instance = stack.enter_context(open_instance(settings))
    stages = sorted(defs.resolve_asset_graph().materializable_asset_keys)
    jobs = [job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")]
    store = stack.enter_context(RecordStore(database_url(settings)))
    return {
        "dagster": InstanceMetrics(instance, stages, sorted(jobs)).collect,
        "lake": LakeMetrics(Lake(settings.lake)).collect,
        "recorder": lambda: recorder_metrics(store),
    }
