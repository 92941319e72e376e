"""Figures of a Dagster instance: runs, the queue, pools, daemons, and what runs asked of models."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

import dagster as dg
from dagster import DagsterRunStatus
from dagster._core.execution.backfill import BulkActionStatus

from assets.doings import done_in
from debrief.metrics.figures import Family, family
from debrief.weekly.model import Done

_PAGE = 1_000
_ENDS = {
    "success": [DagsterRunStatus.SUCCESS],
    "failure": [DagsterRunStatus.FAILURE],
}
_COUNTED = (
    ("debrief_calls", "Calls of a language model", "calls"),
    ("debrief_made_rows", "Rows made new or changed", "fresh"),
    ("debrief_failures", "Rows that failed, each time they did", "failed"),
    ("debrief_spent_usd", "Money, as far as prices are known", "cost_usd"),
)


class InstanceFigures:
    """Figures of an instance; materializations are read once, and counted up from there.

    Args:
        instance: whose.
        stages: the assets whose materializations tell of calls, costs and failures.
        jobs: the jobs whose last runs are told of.
    """

    def __init__(
        self, instance: dg.DagsterInstance, stages: Iterable[dg.AssetKey], jobs: Iterable[str]
    ) -> None:
        self._instance = instance
        self._cursors: dict[dg.AssetKey, int | None] = dict.fromkeys(stages)
        self._jobs = tuple(jobs)
        self._made: defaultdict[tuple[str, str], float] = defaultdict(float)

    def families(self) -> Iterator[Family]:
        """Ask the instance, and yield all figures."""
        yield from self._runs()
        yield from self._last_runs()
        yield from self._waiting()
        yield from self._pools()
        yield from self._daemons()
        yield from self._doings()

    def _runs(self) -> Iterator[Family]:
        yield family(
            "debrief_runs",
            "Runs that the instance knows of, by status.",
            ("status",),
            (
                ((status.value.lower(),), float(self._count([status])))
                for status in DagsterRunStatus
            ),
        )

    def _count(self, statuses: list[DagsterRunStatus]) -> int:
        return self._instance.get_runs_count(dg.RunsFilter(statuses=statuses))

    def _last_runs(self) -> Iterator[Family]:
        ends: list[tuple[tuple[str, ...], float]] = []
        seconds: list[tuple[tuple[str, ...], float]] = []
        for job in self._jobs:
            for name, statuses in _ENDS.items():
                wanted = dg.RunsFilter(job_name=job, statuses=statuses)
                for record in self._instance.get_run_records(wanted, limit=1):
                    if record.end_time is None:
                        continue
                    ends.append(((job, name), record.end_time))
                    if name == "success" and record.start_time is not None:
                        seconds.append(((job,), record.end_time - record.start_time))
        yield family(
            "debrief_last_run_timestamp_seconds",
            "When the last run of a job ended so.",
            ("job", "status"),
            ends,
        )
        yield family(
            "debrief_last_run_seconds",
            "How long the last run of a job that succeeded took.",
            ("job",),
            seconds,
        )

    def _waiting(self) -> Iterator[Family]:
        wanted = dg.RunsFilter(statuses=[DagsterRunStatus.QUEUED])
        oldest = self._instance.get_run_records(wanted, limit=1, ascending=True)
        waits = time.time() - oldest[0].create_timestamp.timestamp() if oldest else 0.0
        yield family(
            "debrief_oldest_queued_run_seconds",
            "How long the run that waits longest has waited.",
            (),
            [((), max(0.0, waits))],
        )
        under_way = self._instance.get_backfills(status=BulkActionStatus.REQUESTED)
        yield family(
            "debrief_backfills_under_way",
            "Backfills that still have runs to launch or to wait for.",
            (),
            [((), float(len(under_way)))],
        )

    def _pools(self) -> Iterator[Family]:
        storage = self._instance.event_log_storage
        used, limits, waiting = [], [], []
        for pool in sorted(storage.get_concurrency_keys()):
            info = storage.get_concurrency_info(pool)
            limits.append(((pool,), float(info.slot_count)))
            used.append(((pool,), float(info.active_slot_count)))
            waiting.append(((pool,), float(info.pending_step_count)))
        yield family("debrief_pool_slots", "Steps that a pool lets run.", ("pool",), limits)
        yield family("debrief_pool_used", "Steps of a pool that run.", ("pool",), used)
        yield family("debrief_pool_waiting", "Steps that wait for a pool.", ("pool",), waiting)

    def _daemons(self) -> Iterator[Family]:
        yield family(
            "debrief_daemon_healthy",
            "1 when a daemon was heard of lately and told of no error.",
            ("daemon",),
            (((name,), float(healthy)) for name, healthy in self.daemons().items()),
        )

    def daemons(self) -> dict[str, bool]:
        """Return which of the daemons that the instance needs are healthy."""
        statuses = self._instance.get_daemon_statuses()
        return {name: bool(status.healthy) for name, status in statuses.items() if status.required}

    def _doings(self) -> Iterator[Family]:
        for key in self._cursors:
            self._follow(key)
        for name, told, what in _COUNTED:
            samples = (((s,), value) for (s, w), value in self._made.items() if w == what)
            yield family(name, f"{told}, by runs that are kept.", ("stage",), samples, "counter")
        yield family(
            "debrief_call_tokens",
            "Tokens of these calls, by runs that are kept.",
            ("stage", "kind"),
            (
                ((stage, what.removesuffix("_tokens")), value)
                for (stage, what), value in self._made.items()
                if what.endswith("_tokens")
            ),
            "counter",
        )

    def _follow(self, key: dg.AssetKey) -> None:
        while True:
            wanted = dg.AssetRecordsFilter(key, after_storage_id=self._cursors[key])
            found = self._instance.fetch_materializations(wanted, limit=_PAGE, ascending=True)
            records = found.records
            events = [record.event_log_entry.dagster_event for record in records]
            for done in done_in(event for event in events if event is not None):
                self._add(done)
            if records:
                self._cursors[key] = records[-1].storage_id
            if len(records) < _PAGE:
                return

    def _add(self, done: Done) -> None:
        self._made[done.stage, "calls"] += done.calls
        self._made[done.stage, "fresh"] += done.fresh
        self._made[done.stage, "failed"] += done.failed
        self._made[done.stage, "input_tokens"] += done.input_tokens
        self._made[done.stage, "output_tokens"] += done.output_tokens
        self._made[done.stage, "cost_usd"] += done.cost_usd or 0.0
