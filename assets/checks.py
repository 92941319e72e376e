"""Make asset checks of plain functions over the lake."""

from collections.abc import Callable
from typing import Any

import dagster as dg

from assets.presentation import table
from debrief.evaluation import holds_answer
from debrief.lake import Lake, Row
from debrief.stages.shown import ShownTable, listed
from debrief.stages.stage import Stage
from resources import Stages, explained

Look = Callable[[Lake, list[str]], dg.AssetCheckResult]


def check(
    stage: Stage[Any], keys: Callable[[Lake], list[str]] | None = None, **options: Any
) -> Callable[[Look], dg.AssetChecksDefinition]:
    """Return a decorator for a check of the partitions of its run, or of all when it runs alone.

    What it decorates gets the lake and the keys; its docstring is what the UI says of it.

    Args:
        stage: whose asset is checked.
        keys: of all its partitions; those of its table by default.
        options: of the check.
    """
    all_keys = keys or (lambda lake: lake.partitions(stage.table))

    def decorate(look: Look) -> dg.AssetChecksDefinition:
        def checked(context: dg.AssetCheckExecutionContext, stages: Stages) -> dg.AssetCheckResult:
            with explained(context.log):
                opened = stages.open_lake()
                has_keys = context.has_partition_key_range or context.has_partition_key
                return look(opened, list(context.partition_keys) if has_keys else all_keys(opened))

        checked.__name__, checked.__doc__ = look.__name__, look.__doc__
        return dg.asset_check(asset=stage.name, **options)(checked)

    return decorate


def score_check(
    stage: Stage[Any], row_type: type[Row]
) -> Callable[[Callable[[Row], str]], dg.AssetChecksDefinition]:
    """Return a decorator for a check that no row of a run's weeks has a problem, and none failed.

    What it decorates says what is wrong with a row; empty when nothing is.

    Args:
        stage: whose table is read.
        row_type: its rows, with ``session_id``, ``status`` and ``failure``.
    """

    def decorate(problem: Callable[[Row], str]) -> dg.AssetChecksDefinition:
        def look(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
            rows: list[Any] = list(lake.rows(stage.table, row_type, weeks))
            outside = [(row.session_id, wrong) for row in rows if (wrong := problem(row))]
            failed = [row for row in rows if row.status == "failed"]
            answering = {row.model for row in rows if holds_answer(row)}
            silent = sorted({row.model for row in failed} - answering)
            is_error = bool(outside or silent)
            return dg.AssetCheckResult(
                passed=not outside and not failed,
                severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
                description=f"{' and '.join(silent)} answered nothing." if silent else None,
                metadata={
                    "rows": len(rows),
                    "outside": table(ShownTable(("session", "problem"), outside)),
                    "failed": table(listed(failed, "session=session_id", "reason=failure")),
                },
            )

        look.__name__, look.__doc__ = problem.__name__, problem.__doc__
        return check(stage)(look)

    return decorate
