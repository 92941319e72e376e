"""Which weeks of a stage are missing or stale, and why; told without running it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Literal

from dagster import AssetKey, DagsterInstance
from msgspec import Struct

from assets.made_from import final_rubrics, held_from, judged_from, mined_from, scored_from
from debrief.evaluators import Evaluators
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.sessions.sources import Scan
from debrief.sessions.store import read_from

Why = Literal["missing", "stale", "unfinished", "unrecorded", "to look at", "forced"]
"""Missing in the lake; made from something else than would be taken now; with failures to try
again; in the lake, but no run of Dagster's tells so; of a stage that only finds out by running;
or up to date and asked for all the same."""

MadeFrom = Callable[[str], str]


class Due(Struct, frozen=True):
    """What a backfill would do with one stage's weeks."""

    weeks: dict[str, Why]
    current: tuple[str, ...] = ()
    """Weeks that are up to date."""


class Outlook(Struct, frozen=True, kw_only=True):
    """All that tells what stages would be made from now."""

    lake: Lake
    instance: DagsterInstance
    evaluators: Evaluators
    scan: Scan
    redactor: Redactor

    def due(self, stages: Iterable[str], weeks: Collection[str], *, force: bool) -> Due:
        """Return which of ``weeks`` one of ``stages`` has to be run for."""
        chosen: dict[str, Why] = {}
        for stage in stages:
            made_from = self._made_from(stage)
            recorded = self.instance.get_materialized_partitions(AssetKey(stage))
            for week in weeks:
                why = self._why(stage, week, made_from, recorded)
                if why is not None:
                    chosen.setdefault(week, why)
        current = tuple(sorted(set(weeks) - chosen.keys()))
        if not force:
            return Due(dict(sorted(chosen.items())), current)
        forced: dict[str, Why] = dict.fromkeys(current, "forced")
        return Due(dict(sorted({**chosen, **forced}.items())))

    def _why(
        self, stage: str, week: str, made_from: MadeFrom | None, recorded: Collection[str]
    ) -> Why | None:
        if made_from is None:
            return "to look at"
        stamp = self.lake.stamp(stage, week)
        if stamp is None:
            return "missing"
        if not stamp.inputs:
            return "unfinished"
        if stamp.inputs != made_from(week):
            return "stale"
        return None if week in recorded else "unrecorded"

    def _made_from(self, stage: str) -> MadeFrom | None:
        lake, evaluators = self.lake, self.evaluators
        if stage == "raw_sessions":
            return lambda week: read_from(self.scan, week, self.redactor)
        if stage == "judge_evaluations":
            return lambda week: judged_from(lake, evaluators, week)
        if stage == "session_scores":
            return lambda week: scored_from(lake, evaluators, week)
        if stage == "extracted_rubrics":
            return lambda week: mined_from(lake, evaluators, week)
        if stage == "rubric_evaluations":
            final = final_rubrics(lake)
            return lambda week: held_from(lake, evaluators, week, final)
        return None
