"""Count what a run would ask a model, before it is launched and without asking."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress

from msgspec import Struct

from debrief.errors import ModelError
from debrief.models.usage import RunUsage
from debrief.rubrics.model import RUBRICS
from debrief.stages.catalog import all_stages, weekly_tables
from debrief.stages.evaluations import SESSION_SCORES
from debrief.stages.friction import RECURRING_FRICTION
from debrief.stages.rubrics import rehearse_rubrics
from debrief.stages.run import PROGRESS, StageRun
from debrief.stages.stage import ALL

SCORES = SESSION_SCORES.table


class Rehearsal(Struct, frozen=True, kw_only=True):
    """What a stage would ask."""

    stage: str
    off: str = ""
    """Why the stage is off; empty where it is on."""
    due: tuple[str, ...] = ()
    """The weeks that are not up to date; none of a stage without weeks."""
    current: int = 0
    """How many weeks are."""
    asked: RunUsage = RunUsage()
    sessions: frozenset[str] = frozenset()
    """Those that the model has not scored yet; of other stages nobody counts them."""


def rehearse(run: StageRun, stages: Collection[str] = ()) -> list[Rehearsal]:
    """Carry out the stages that ask a model on what the lake holds, without asking.

    All of them count with the same evaluators, so that what two stages ask in one question is
    counted once, for the one that scores. What is mined from scores that are still to come is not
    known before they are there.

    Args:
        run: whose evaluators only count; weeks that were not read yet are left out.
        stages: to carry out; all if none is named.
    """
    chosen = stages or [stage.name for stage in all_stages()]
    log, found = logging.getLogger(PROGRESS), []
    read = [week for week in run.weeks if run.lake.stamp("raw_sessions", week) is not None]
    asking = [stage for stage in weekly_tables() if stage.calls_models and stage.table in chosen]
    for stage in sorted(asking, key=lambda stage: stage.table != SCORES):
        if why := stage.why_off(run):
            found.append(Rehearsal(stage=stage.table, off=why))
            continue
        before, waiting = run.evaluators.spent, set[str]()
        due = [week for week in read if stage.is_due(run, week)]
        for week in due:
            log.info("counting questions: %s %s", stage.table, week)
            stored = list(run.lake.read(stage.table, week, stage.row_type))
            if stage.table == SCORES:
                with suppress(ModelError):
                    rows = stage.rows(run, week, stored)
                    waiting.update(row.session_id for row in rows if row.status == "failed")
            else:
                stage.rehearse(run, week, stored)
        found.append(
            Rehearsal(
                stage=stage.table,
                due=tuple(due),
                current=len(read) - len(due),
                asked=run.evaluators.spent - before,
                sessions=frozenset(waiting),
            )
        )
    if RUBRICS in chosen and run.evaluators.models is not None:
        before = run.evaluators.spent
        rehearse_rubrics(run)
        found.append(Rehearsal(stage=RUBRICS, asked=run.evaluators.spent - before))
    if RECURRING_FRICTION.table in chosen and RECURRING_FRICTION.is_due(run, ALL):
        before = run.evaluators.spent
        RECURRING_FRICTION.rehearse(run, ALL, [])
        found.append(Rehearsal(stage=RECURRING_FRICTION.table, asked=run.evaluators.spent - before))
    return found


def added_up(found: Sequence[Rehearsal]) -> RunUsage:
    """Return what all stages ask together."""
    return sum((rehearsal.asked for rehearsal in found), RunUsage())
