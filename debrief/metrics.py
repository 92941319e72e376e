"""What a lake and a recorder's database hold, as metrics that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field

from debrief.lake import Lake
from debrief.recorder.storage.store import RecordStore

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

WEEKS_SHOWN = 8
"""Weeks with metrics of their own, the newest; older ones change rarely and would be a series
each for ever."""
_EVALUATED = ("judge_evaluations", "session_scores", "rubric_evaluations")
METRICS: dict[str, tuple[str, ...]] = {
    "debrief_sessions": ("Sessions in the lake, by the tool they were held with.", "tool"),
    "debrief_week_sessions": ("Sessions of the newest weeks.", "week"),
    "debrief_unread_transcripts": ("Transcripts that are no session, or cannot be read.", "reason"),
    "debrief_rows": (
        "Rows in the lake by stage and status; failed ones are tried again by the next run.",
        *("stage", "status"),
    ),
    "debrief_week_rows": ("Rows of the newest weeks.", "stage", "week", "status"),
    "debrief_week_cost_usd": ("Known costs of the rows of the newest weeks.", "stage", "week"),
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
    "debrief_oldest_queued_run_seconds": ("How long the oldest queued run has waited.",),
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
Family = TypeVar("Family", "CounterMetricFamily", "GaugeMetricFamily")
Samples = Iterable[tuple[Sequence[str], float]]
"""Values of the labels, and the value."""


_RESULTS = (*_EVALUATED, "langfuse_scores")


class _Row(Struct, frozen=True):
    """The columns of all tables that are counted; a table has some of them."""

    tool: str = ""
    expected: bool = False
    samples: int = 0
    status: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class _Partition(Struct, kw_only=True):
    """The sums over the rows of one partition."""

    digest: str
    rows: Counter[str] = field(default_factory=Counter)
    """By tool, reason or status; for training sets the samples."""
    tokens: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0
    """Of the rows whose cost is known."""
    cost_unknown: int = 0
    """Rows that took tokens at an unknown price."""


def gauge(name: str, samples: Samples) -> GaugeMetricFamily:
    """Return a metric of ``METRICS`` that goes up and down."""
    from prometheus_client.core import GaugeMetricFamily

    return _metric(GaugeMetricFamily, name, samples)


def counter(name: str, samples: Samples) -> CounterMetricFamily:
    """Return a metric of ``METRICS`` that only grows; its name is given without ``_total``."""
    from prometheus_client.core import CounterMetricFamily

    return _metric(CounterMetricFamily, name, samples)


def _metric(family: type[Family], name: str, samples: Samples) -> Family:
    help, *labels = METRICS[name]
    metric = family(name, help, labels=labels)
    for values, value in sorted(samples):
        metric.add_metric(values, value)
    return metric


class LakeMetrics:
    """Metrics of a lake; a partition is read again only when its stamp has changed."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._read: dict[tuple[str, str], _Partition] = {}

    def collect(self) -> Iterator[Metric]:
        """Read what has changed, and yield all metrics."""
        others = ("raw_sessions", "unread_transcripts", "training_index")
        tables = {table: self._partitions(table) for table in (*_RESULTS, *others)}
        sessions = tables["raw_sessions"]
        weeks = sorted(sessions)[-WEEKS_SHOWN:]
        yield gauge("debrief_sessions", _by_label(sessions))
        yield gauge(
            "debrief_week_sessions", [((week,), sessions[week].rows.total()) for week in weeks]
        )
        yield gauge("debrief_unread_transcripts", _by_label(tables["unread_transcripts"]))
        rows = [((t, *labels), n) for t in _RESULTS for labels, n in _by_label(tables[t])]
        yield gauge("debrief_rows", rows)
        recent = [
            (table, week, tables[table][week])
            for table in _EVALUATED
            for week in weeks
            if week in tables[table]
        ]
        week_rows = [
            ((table, week, status), count)
            for table, week, partition in recent
            for status, count in partition.rows.items()
        ]
        yield gauge("debrief_week_rows", week_rows)
        yield gauge("debrief_week_cost_usd", [((t, week), p.cost_usd) for t, week, p in recent])
        all_weeks = [(table, list(tables[table].values())) for table in _EVALUATED]
        tokens = [
            ((table, kind), sum(partition.tokens[kind] for partition in partitions))
            for table, partitions in all_weeks
            for kind in ("input", "output")
        ]
        yield gauge("debrief_tokens", tokens)
        yield gauge(
            "debrief_cost_usd", [((t,), sum(p.cost_usd for p in ps)) for t, ps in all_weeks]
        )
        unknown = [((t,), sum(p.cost_unknown for p in ps)) for t, ps in all_weeks]
        yield gauge("debrief_cost_unknown_rows", unknown)
        sets = tables["training_index"].values()
        yield gauge("debrief_training_sets", [((), len(sets))])
        yield gauge("debrief_training_samples", [((), sum(p.rows.total() for p in sets))])

    def _partitions(self, table: str) -> dict[str, _Partition]:
        partitions = {}
        for key in self._lake.partitions(table):
            stamp = self._lake.stamp(table, key)
            if stamp is None:
                continue
            read = self._read.get((table, key))
            if read is None or read.digest != stamp.digest:
                read = self._read[table, key] = self._sums(table, key, stamp.digest)
            partitions[key] = read
        return partitions

    def _sums(self, table: str, key: str, digest: str) -> _Partition:
        sums = _Partition(digest=digest)
        for row in self._lake.read(table, key, _Row):
            if table == "raw_sessions":
                sums.rows[row.tool] += 1
            elif table == "unread_transcripts":
                sums.rows["empty" if row.expected else "unreadable"] += 1
            else:
                sums.rows[row.status or ""] += row.samples if table == "training_index" else 1
            sums.tokens["input"] += row.input_tokens
            sums.tokens["output"] += row.output_tokens
            sums.cost_usd += row.cost_usd or 0.0
            sums.cost_unknown += row.cost_usd is None and row.input_tokens + row.output_tokens > 0
        return sums


def _by_label(partitions: dict[str, _Partition]) -> list[tuple[tuple[str], float]]:
    total: Counter[str] = Counter()
    for partition in partitions.values():
        total.update(partition.rows)
    return [((label,), count) for label, count in total.items()]


def recorder_metrics(store: RecordStore) -> Iterator[Metric]:
    """Yield what a recorder's database holds.

    Raises:
        StorageError: it is away, or not migrated.
    """
    counts = store.counts()
    by_status = [(("ready",), counts.ready), (("draft",), counts.sessions - counts.ready)]
    yield gauge("debrief_recorder_sessions", by_status)
    yield gauge("debrief_database_bytes", [((), counts.size)])
