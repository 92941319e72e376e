"""Judging and scoring as Dagster shows them, with a model that answers or does not."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.evaluations import (
    judge_evaluations,
    judge_scores_within_range,
    session_scores_within_range,
)
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.stages.configuration import EvaluatorChoice
from tests.assets.running import asset, resources
from tests.faults.judging import WEEK, score_of, session_of
from tests.models.openai_server import Call, OpenAIServer, Reply

session_scores = asset("session_scores")

ASSETS = [
    *(judge_evaluations, judge_scores_within_range),
    *(session_scores, session_scores_within_range),
]
BAD = Reply(status=400, error={"message": "no"})


@pytest.mark.parametrize(
    ("refused", "severities"),
    [((), []), ((0,), ["WARN", "WARN"]), ((0, 1), ["ERROR", "ERROR"])],
)
def test_a_check_warns_of_a_failed_session_and_fails_where_no_session_was_answered(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: tuple[int, ...],
    severities: list[str],
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", WEEK, [session_of(0), session_of(1)], Session)

    def reply(call: Call) -> Reply:
        return (
            BAD
            if any(f"Add helpers {number}" in call.user for number in refused)
            else score_of(call)
        )

    with OpenAIServer(reply) as server:
        monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        result = dg.materialize(
            ASSETS,
            partition_key=WEEK,
            resources=resources(lake, evaluator=EvaluatorChoice(model="openai/tiny")),
        )
    assert result.success
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert [check.severity.name for check in failed] == severities
    if len(refused) == 2:
        assert {check.description for check in failed} == {"openai/tiny answered nothing."}
