"""What a lake and a recorder's database hold, as metrics that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from debrief.lake import Lake
from debrief.recorder.storage.store import RecordStore

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

WEEKS_SHOWN = 8
"""Weeks with metrics of their own, the newest; older ones change rarely and would be a series
each for ever."""
_EVALUATED = ("judge_evaluations", "session_scores", "rubric_evaluations")
Samples = Iterable[tuple[Sequence[str], float]]
"""Values of the labels, and the value."""


class _Session(Struct, frozen=True):
    tool: str


class _Unread(Struct, frozen=True):
    expected: bool


class _TrainingSet(Struct, frozen=True):
    samples: int


class _Result(Struct, frozen=True):
    status: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


_TABLES: dict[str, type[_Session | _Unread | _TrainingSet | _Result]] = {
    "raw_sessions": _Session,
    "unread_transcripts": _Unread,
    **dict.fromkeys(_EVALUATED, _Result),
    "langfuse_scores": _Result,
    "training_index": _TrainingSet,
}


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


def gauge(name: str, help: str, labels: Sequence[str], samples: Samples) -> GaugeMetricFamily:
    """Return a metric that goes up and down."""
    from prometheus_client.core import GaugeMetricFamily

    metric = GaugeMetricFamily(name, help, labels=labels)
    for values, value in sorted(samples):
        metric.add_metric(values, value)
    return metric


def counter(name: str, help: str, labels: Sequence[str], samples: Samples) -> CounterMetricFamily:
    """Return a metric that only grows; its name is given without ``_total``."""
    from prometheus_client.core import CounterMetricFamily

    metric = CounterMetricFamily(name, help, labels=labels)
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
        tables = {table: self._partitions(table) for table in _TABLES}
        sessions = tables["raw_sessions"]
        weeks = sorted(sessions)[-WEEKS_SHOWN:]
        yield gauge(
            "debrief_sessions",
            "Sessions in the lake, by the tool they were held with.",
            ["tool"],
            _by_label(sessions),
        )
        yield gauge(
            "debrief_week_sessions",
            "Sessions of the newest weeks.",
            ["week"],
            [((week,), sessions[week].rows.total()) for week in weeks],
        )
        yield gauge(
            "debrief_unread_transcripts",
            "Transcripts that are no session: empty ones, and those that cannot be read.",
            ["reason"],
            _by_label(tables["unread_transcripts"]),
        )
        yield gauge(
            "debrief_rows",
            "Rows in the lake by stage and status; failed ones are tried again by the next run.",
            ["stage", "status"],
            [
                ((table, *labels), value)
                for table in (*_EVALUATED, "langfuse_scores")
                for labels, value in _by_label(tables[table])
            ],
        )
        recent = [
            (table, week, tables[table][week])
            for table in _EVALUATED
            for week in weeks
            if week in tables[table]
        ]
        yield gauge(
            "debrief_week_rows",
            "Rows of the newest weeks by stage and status.",
            ["stage", "week", "status"],
            [
                ((table, week, status), count)
                for table, week, partition in recent
                for status, count in partition.rows.items()
            ],
        )
        yield gauge(
            "debrief_week_cost_usd",
            "What the rows of the newest weeks cost, as far as prices are known.",
            ["stage", "week"],
            [((table, week), partition.cost_usd) for table, week, partition in recent],
        )
        evaluated = {table: tables[table].values() for table in _EVALUATED}
        yield gauge(
            "debrief_tokens",
            "Tokens that the rows in the lake took.",
            ["stage", "kind"],
            [
                ((table, kind), sum(partition.tokens[kind] for partition in partitions))
                for table, partitions in evaluated.items()
                for kind in ("input", "output")
            ],
        )
        yield gauge(
            "debrief_cost_usd",
            "What the rows in the lake cost, as far as prices are known.",
            ["stage"],
            [((table,), sum(p.cost_usd for p in each)) for table, each in evaluated.items()],
        )
        yield gauge(
            "debrief_cost_unknown_rows",
            "Rows that took tokens at a price nobody knows.",
            ["stage"],
            [((table,), sum(p.cost_unknown for p in each)) for table, each in evaluated.items()],
        )
        sets = tables["training_index"].values()
        yield gauge("debrief_training_sets", "Training sets.", [], [((), len(sets))])
        samples = sum(partition.rows.total() for partition in sets)
        yield gauge(
            "debrief_training_samples", "Samples in all training sets.", [], [((), samples)]
        )

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
        for row in self._lake.read(table, key, _TABLES[table]):
            match row:
                case _Session():
                    sums.rows[row.tool] += 1
                case _Unread():
                    sums.rows["empty" if row.expected else "unreadable"] += 1
                case _TrainingSet():
                    sums.rows["samples"] += row.samples
                case _Result():
                    tokens = row.input_tokens + row.output_tokens
                    sums.rows[row.status] += 1
                    sums.tokens["input"] += row.input_tokens
                    sums.tokens["output"] += row.output_tokens
                    sums.cost_usd += row.cost_usd or 0.0
                    sums.cost_unknown += row.cost_usd is None and tokens > 0
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
    yield gauge(
        "debrief_recorder_sessions",
        "Recorded sessions by status.",
        ["status"],
        [(("ready",), counts.ready), (("draft",), counts.sessions - counts.ready)],
    )
    yield gauge(
        "debrief_database_bytes",
        "Size of the database that holds recorded sessions, Dagster's tables included.",
        [],
        [((), counts.size)],
    )
