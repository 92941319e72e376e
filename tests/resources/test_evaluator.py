"""One limit for all runs that belong together."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import RETRY_NUMBER_TAG

from debrief.models.budget import BudgetSpentError
from resources.attendance import ACCOUNT_TAG, PARENT_TAG
from resources.evaluator import EvaluatorResource

WHOLE, FIRST, OTHER = "whole graph", "first", "other"


def a_run(run: str, root: str = "", **tags: str) -> dg.DagsterRun:
    return dg.DagsterRun(
        "sessions_job",
        run_id=run,
        tags=tags,
        root_run_id=root or None,
        parent_run_id=root or None,
    )


@pytest.fixture(params=["on", "off"])
def cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_CACHE": request.param}
    told |= {"DEBRIEF_MODEL": "ollama/tiny", "DEBRIEF_MAX_CALLS": "", "DEBRIEF_STATE_URL": ""}
    for name, value in told.items():
        monkeypatch.setenv(name, value)


def asks(run: dg.DagsterRun) -> bool:
    """Set one call aside for a run that may make one in all; return whether there was room."""
    models = EvaluatorResource(max_calls=1).open(run).models
    assert models is not None
    try:
        with models.budget.call(1, None) as bill:
            bill.taken = 0.0
    except BudgetSpentError:
        return False
    return True


@pytest.mark.usefixtures("cache")
def test_stages_that_one_run_of_the_whole_graph_launches_share_its_limit() -> None:
    stages = [a_run(name, **{PARENT_TAG: WHOLE}) for name in (FIRST, OTHER)]
    assert [asks(stage) for stage in stages] == [True, False]
    assert asks(a_run("by itself"))


@pytest.mark.usefixtures("cache")
def test_a_run_that_takes_up_what_a_killed_one_left_may_not_spend_it_all_again() -> None:
    assert asks(a_run(FIRST))
    assert not asks(a_run("again", root=FIRST, **{RETRY_NUMBER_TAG: "1"}))
    tags = {PARENT_TAG: "whole graph, again", ACCOUNT_TAG: FIRST}
    assert not asks(a_run("its stage", **tags))


@pytest.mark.usefixtures("cache")
def test_a_run_that_a_person_runs_again_has_a_limit_of_its_own() -> None:
    assert asks(a_run(FIRST))
    assert asks(a_run("again", root=FIRST))
    assert not asks(a_run("again", root=FIRST))
