"""What a run of the whole graph did, read off the runs that it launched."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from assets.doings import done_for
from debrief.weekly.model import Done
from resources.attendance import ACCOUNT_TAG, PARENT_TAG


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def judged(instance: dg.DagsterInstance, rows: int, calls: int, **tags: str) -> None:
    """A run of a stage over one week."""

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["2026-11-09"]))
    def judge_evaluations() -> dg.MaterializeResult[None]:
        told = {"dagster/partition_row_count": rows, "calls": calls, "made_now": calls}
        return dg.MaterializeResult(metadata={**told, "cost_usd": calls / 4})

    assert dg.materialize(
        [judge_evaluations], instance=instance, tags=tags, partition_key="2026-11-09"
    ).success


def test_what_was_paid_before_a_run_was_killed_and_tried_again_counts_too(
    instance: dg.DagsterInstance,
) -> None:
    judged(instance, 4, 4, **{PARENT_TAG: "killed"})
    judged(instance, 6, 2, **{PARENT_TAG: "again", ACCOUNT_TAG: "killed"})
    judged(instance, 9, 9, **{PARENT_TAG: "another"})
    assert done_for(instance, "killed") == [
        Done(
            stage="judge_evaluations",
            partition="2026-11-09",
            rows=6,
            fresh=6,
            calls=6,
            cost_usd=1.5,
        )
    ]
