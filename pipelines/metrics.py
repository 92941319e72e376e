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

from assets.run_summary import done_in
from debrief.errors import ConfigurationError, DebriefError
from debrief.metrics import LakeMetrics, counter, gauge, recorder_metrics
from debrief.settings import Settings

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Source = Callable[[], Iterable["Metric"]]
INTERVAL = 30.0
"""Seconds for which a scrape gets what was read before."""
_PAGE = 1_000
_BACKFILLS = 200
_ENDS = {"success": DagsterRunStatus.SUCCESS, "failure": DagsterRunStatus.FAILURE}
_COUNTERS = {
    "calls": "debrief_calls",
    "fresh": "debrief_made_rows",
    "failed": "debrief_failures",
    "cost_usd": "debrief_spent_usd",
}


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
        self._metrics: dict[str, list[Metric]] = {}
        self._errors: dict[str, str] = {}
        self._read_at: float | None = None
        self._seconds = 0.0

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, read at most ``interval`` ago, as ``prometheus_client`` asks for."""
        with self._lock:
            now = self._clock()
            if self._read_at is None or now - self._read_at >= self._interval:
                self._read()
                self._read_at, self._seconds = now, self._clock() - now
            metrics = [m for name in self._sources for m in self._metrics.get(name, ())]
            up = [((name,), float(name not in self._errors)) for name in self._sources]
        yield from metrics
        yield gauge("debrief_source_up", up)
        yield gauge("debrief_look_seconds", [((), self._seconds)])

    def errors(self) -> dict[str, str]:
        """Return why the sources that failed did."""
        for _ in self.collect():
            pass
        return dict(self._errors)

    def _read(self) -> None:
        for name, source in self._sources.items():
            try:
                self._metrics[name] = list(source())
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
        self._sums: defaultdict[tuple[str, str], float] = defaultdict(float)

    def collect(self) -> Iterator[Metric]:
        """Read the instance, and yield all metrics."""
        statuses = [(s, dg.RunsFilter(statuses=[s])) for s in DagsterRunStatus]
        counts = [([s.value.lower()], self._instance.get_runs_count(f)) for s, f in statuses]
        yield gauge("debrief_runs", counts)
        yield from self._last_runs()
        yield from self._waiting()
        yield from self._pools()
        daemons = self._instance.get_daemon_statuses().items()
        healthy = [([name], float(bool(d.healthy))) for name, d in daemons if d.required]
        yield gauge("debrief_daemon_healthy", healthy)
        yield from self._stages()

    def _last_runs(self) -> Iterator[Metric]:
        ends: list[tuple[list[str], float]] = []
        seconds: list[tuple[list[str], float]] = []
        for job in self._jobs:
            for name, status in _ENDS.items():
                runs = dg.RunsFilter(job_name=job, statuses=[status])
                for record in self._instance.get_run_records(runs, limit=1):
                    if record.end_time is None:
                        continue
                    ends.append(([job, name], record.end_time))
                    if name == "success" and record.start_time is not None:
                        seconds.append(([job], record.end_time - record.start_time))
        yield gauge("debrief_last_run_timestamp_seconds", ends)
        yield gauge("debrief_last_run_seconds", seconds)

    def _waiting(self) -> Iterator[Metric]:
        queued = dg.RunsFilter(statuses=[DagsterRunStatus.QUEUED])
        oldest = self._instance.get_run_records(queued, limit=1, ascending=True)
        waited = time.time() - oldest[0].create_timestamp.timestamp() if oldest else 0.0
        yield gauge("debrief_oldest_queued_run_seconds", [((), max(0.0, waited))])
        backfills = self._instance.get_backfills(limit=_BACKFILLS)
        under_way = sum(backfill.status.value == "REQUESTED" for backfill in backfills)
        yield gauge("debrief_backfills_under_way", [((), under_way)])

    def _pools(self) -> Iterator[Metric]:
        storage = self._instance.event_log_storage
        pools = [([p], storage.get_concurrency_info(p)) for p in storage.get_concurrency_keys()]
        yield gauge("debrief_pool_slots", [(p, info.slot_count) for p, info in pools])
        yield gauge("debrief_pool_used", [(p, info.active_slot_count) for p, info in pools])
        yield gauge("debrief_pool_waiting", [(p, info.pending_step_count) for p, info in pools])

    def _stages(self) -> Iterator[Metric]:
        for key in self._cursors:
            self._add_new_materializations(key)
        for what, name in _COUNTERS.items():
            yield counter(name, [([s], v) for (s, w), v in self._sums.items() if w == what])
        tokens = [
            ([stage, what.removesuffix("_tokens")], value)
            for (stage, what), value in self._sums.items()
            if what.endswith("_tokens")
        ]
        yield counter("debrief_call_tokens", tokens)

    def _add_new_materializations(self, key: dg.AssetKey) -> None:
        while True:
            new = dg.AssetRecordsFilter(key, after_storage_id=self._cursors[key])
            page = self._instance.fetch_materializations(new, limit=_PAGE, ascending=True)
            events = [record.event_log_entry.dagster_event for record in page.records]
            for done in done_in(event for event in events if event is not None):
                for what in (*_COUNTERS, "input_tokens", "output_tokens"):
                    self._sums[done.stage, what] += getattr(done, what) or 0.0
            if page.records:
                self._cursors[key] = page.records[-1].storage_id
            if len(page.records) < _PAGE:
                return


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
    from debrief.lake import Lake
    from debrief.recorder.postgres import database_url
    from debrief.recorder.storage.store import RecordStore
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
