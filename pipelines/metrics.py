"""The figures of everything, given to whoever scrapes them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIServer

from debrief.errors import ConfigurationError, DebriefError
from debrief.metrics.figures import Family
from debrief.settings import Settings

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

Source = Callable[[], Iterable[Family]]
EVERY = 30.0
"""Seconds between two looks; a scrape gets what the last one found."""


class Figures:
    """Asks its sources now and then, and remembers what they said.

    Args:
        sources: each by a name; one that fails leaves its former figures and is told of in
            ``debrief_source_up``.
        every: seconds between two looks.
        clock: gives seconds.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[str, tuple[Family, ...]] = {}
        self._reasons: dict[str, str] = {}
        self._looked: float | None = None
        self._took = 0.0

    def families(self) -> Iterator[Family]:
        """Yield all figures, at most so old as ``every`` says."""
        with self._lock:
            now = self._clock()
            if self._looked is None or now - self._looked >= self._every:
                self._look()
                self._looked = now
                self._took = self._clock() - now
            found = [entry for name in self._sources for entry in self._found.get(name, ())]
            up = tuple(((name,), float(name not in self._reasons)) for name in self._sources)
        yield from found
        yield Family(
            name="debrief_source_up",
            help="1 when the last look at it succeeded; else its figures are older ones.",
            labels=("source",),
            samples=up,
        )
        yield Family(
            name="debrief_look_seconds",
            help="How long the last look took.",
            samples=(((), self._took),),
        )

    def reasons(self) -> dict[str, str]:
        """Return why the sources that failed did."""
        for _ in self.families():
            pass
        return dict(self._reasons)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures as ``prometheus_client`` wants them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        kinds = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
        for entry in self.families():
            metric = kinds[entry.kind](entry.name, entry.help, labels=entry.labels)
            for labels, value in entry.samples:
                metric.add_metric(labels, value)
            yield metric

    def describe(self) -> Iterable[Metric]:
        """Tell nothing beforehand, so that registering asks no source."""
        return ()

    def _look(self) -> None:
        for name, source in self._sources.items():
            try:
                self._found[name] = tuple(source())
                self._reasons.pop(name, None)
            except Exception as error:  # Whatever it is, the other sources are still to be told.
                reason = str(error) if isinstance(error, DebriefError) else type(error).__name__
                self._reasons[name] = reason


def exposition(figures: Figures) -> bytes:
    """Return the figures in Prometheus' text form."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(figures)
    return generate_latest(registry)


def make_exporter(figures: Figures, host: str, port: int) -> WSGIServer:
    """Return a server of ``/metrics`` and ``/health``; ``serve_forever`` runs it.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    from prometheus_client import CollectorRegistry, make_wsgi_app
    from prometheus_client.exposition import ThreadingWSGIServer, _SilentHandler

    registry = CollectorRegistry(auto_describe=False)
    registry.register(figures)
    metrics = make_wsgi_app(registry)

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            answer: Iterable[bytes] = metrics(environ, start_response)
            return answer
        if path == "/health":
            reasons = figures.reasons()
            status = "503 Service Unavailable" if reasons else "200 OK"
            start_response(status, [("Content-Type", "application/json")])
            return [json.dumps({"status": "failing" if reasons else "ok", **reasons}).encode()]
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"There is /metrics, and /health.\n"]

    try:
        server = ThreadingWSGIServer((host, port), _SilentHandler)
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port}", f"cannot be listened on ({error.strerror})", "Name another: --port"
        ) from error
    server.set_app(app)
    return server


def sources(settings: Settings, stack: ExitStack) -> dict[str, Source]:
    """Return what there is to tell of: the instance, the lake, the recorder's database.

    Args:
        settings: which lake and home.
        stack: closes what is opened.
    """
    from debrief.lake import Lake
    from debrief.metrics.lake import LakeFigures
    from debrief.metrics.recorder import recorder_families
    from debrief.recorder.postgres import database_url
    from debrief.recorder.storage.store import RecordStore
    from pipelines.definitions import defs
    from pipelines.instance import open_instance
    from pipelines.instance_figures import InstanceFigures

    instance = stack.enter_context(open_instance(settings))
    graph = defs.resolve_asset_graph()
    jobs = [job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")]
    of_instance = InstanceFigures(instance, sorted(graph.materializable_asset_keys), sorted(jobs))
    store = stack.enter_context(RecordStore(database_url(settings)))
    return {
        "dagster": of_instance.families,
        "lake": LakeFigures(Lake(settings.lake)).families,
        "recorder": lambda: recorder_families(store),
    }
