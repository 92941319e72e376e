"""What a run would ask a model, counted before it is launched: no question goes out."""

import logging
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from assets.evaluations import session_scores
from assets.rubrics import rehearse_rubrics, rubrics
from assets.weekly import PROGRESS, due_weeks_of, model_stages, stage_run_of
from debrief.errors import ModelError
from debrief.models.usage import RunUsage

SCORES, RUBRICS = (each.key.to_user_string() for each in (session_scores, rubrics))


class Rehearsal(Struct, frozen=True, kw_only=True):
    """What a stage would ask."""

    stage: str
    due: tuple[str, ...] = ()
    """The weeks that are not up to date; none of a stage without weeks."""
    current: int = 0
    """How many weeks are."""
    asked: RunUsage = RunUsage()
    sessions: frozenset[str] = frozenset()
    """Those that the model has not scored yet; of other stages nobody counts them."""


def rehearse(
    resources: Mapping[str, Any], weeks: Sequence[str], stages: Collection[str] = ()
) -> list[Rehearsal]:
    """Carry out the stages that ask a model on what the lake holds, without asking.

    All of them count with the same evaluators, so that what two stages ask in one question is
    counted once, for the one that scores. What is mined from scores that are still to come is not
    known before they are there.

    Args:
        resources: of the run, by name; its evaluators only count.
        weeks: that it takes; those that were not read yet are left out.
        stages: to carry out; all if none is named.
    """
    run = stage_run_of(resources, weeks)
    log, found = logging.getLogger(PROGRESS), []
    read = set(weeks) & set(run.lake.partitions("raw_sessions"))
    known = [*sorted(model_stages(), key=lambda table: table != SCORES), RUBRICS]
    for stage in known if not stages else [each for each in known if each in stages]:
        before, due, waiting = run.evaluators.spent, list[str](), set[str]()
        if stage == RUBRICS:
            rehearse_rubrics(run)
        for week, make in due_weeks_of(run, stage, weeks) if stage != RUBRICS else ():
            due.append(week)
            if run.evaluators.models is None:
                continue
            log.info("counting questions: %s %s", stage, week)
            with suppress(ModelError):
                if stage == SCORES:
                    waiting.update(row.session_id for row in make() if row.status == "failed")
                else:
                    deque(make(), maxlen=0)
        found.append(
            Rehearsal(
                stage=stage,
                due=tuple(due),
                current=len(read) - len(due) if stage != RUBRICS else 0,
                asked=run.evaluators.spent - before,
                sessions=frozenset(waiting),
            )
        )
    return found


def added_up(found: Sequence[Rehearsal]) -> RunUsage:
    """Return what all stages ask together."""
    return sum((each.asked for each in found), RunUsage())
