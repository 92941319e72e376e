"""One limit for all runs that belong together."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from debrief.models.usage import BudgetSpentError
from debrief.stages.configuration import EvaluatorChoice
from resources import account_of

FIRST, RETRY = "first", {"dagster/retry_number": "1"}


def a_run(run: str, root: str = "", **tags: str) -> dg.DagsterRun:
    return dg.DagsterRun(
        "whole_graph",
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
    models = EvaluatorChoice(max_calls=1).open(run.run_id, account_of(run)).models
    assert models is not None
    try:
        with models.budget.call(1, None) as bill:
            bill.taken = 0.0
    except BudgetSpentError:
        return False
    return True


@pytest.mark.usefixtures("cache")
def test_the_stages_of_a_run_share_its_limit_and_another_run_has_its_own() -> None:
    assert [asks(a_run(FIRST)) for _ in range(2)] == [True, False]
    assert asks(a_run("by itself"))


@pytest.mark.usefixtures("cache")
def test_a_retry_by_dagster_may_not_spend_it_all_again() -> None:
    assert asks(a_run(FIRST))
    assert not asks(a_run("again", root=FIRST, **RETRY))


@pytest.mark.usefixtures("cache")
def test_a_run_that_a_person_runs_again_has_a_limit_of_its_own() -> None:
    assert asks(a_run(FIRST))
    assert asks(a_run("again", root=FIRST))
    assert not asks(a_run("again", root=FIRST))
