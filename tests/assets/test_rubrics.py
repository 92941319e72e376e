"""The rubric stages as the orchestrator runs them, with a model's server of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.rubrics import extracted_rubrics, rubric_evaluations, rubrics
from debrief.lake import Lake
from debrief.rubrics.model import (
    ALL,
    DROPPED,
    EVALUATIONS,
    EXTRACTED,
    RUBRICS,
    TRIALS,
    UNMINED,
    DroppedRubric,
    ExtractedRubric,
    Rubric,
    RubricEvaluation,
    RubricTrial,
    UnminedSession,
)
from debrief.rubrics.trial import split_of
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from resources import EvaluatorResource
from tests.assets.running import metadata, resources
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.rubrics.scenario import SCALE, WEEK, a_week, mined, rubric, summarized

MINED = [row.session_id for row in a_week(20, 28)[1] if split_of([(WEEK, 48)]).mines(row)]
REFUSED = MINED[0]


class Provider:
    """Answers extractors, summarizers and judges; one session it will not read at first."""

    def __init__(self) -> None:
        self.refuses = True

    def __call__(self, call: Call) -> Reply:
        question = call.user.split("<<<end of data")[-1]
        if "Extracted Rubrics" in question:
            return Reply(summarized(call.user))
        if "SCORE: [integer" in question:
            return Reply("SCORE: 4\nREASONING: The first turn names the file that is meant.")
        if self.refuses and REFUSED in call.user:
            return Reply("I would rather not.")
        quoted = 'In turn 1: "Run tests/test_rounding.py"'
        found = [
            {"name": name, "description": "The user asks.", "scoring_criteria": SCALE,
             "evidence": evidence}
            for name, evidence in (("Asks for Tests", quoted), ("Invents", 'Turn 1: "never said"'))
        ]  # fmt: skip
        return Reply(json.dumps(found))


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(Provider()) as running:
        yield running


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def run(
    lake: Lake,
    asset: dg.AssetsDefinition,
    week: str | None,
    evaluator: EvaluatorResource,
    **config: Any,
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [asset],
        resources=resources(lake, evaluator=evaluator),
        partition_key=week,
        run_config={"ops": {asset.key.to_user_string(): {"config": config}}} if config else None,
    )


def fill(lake: Lake, mark: str, good: int = 20, bad: int = 28) -> None:
    from msgspec import structs

    sessions, scores = a_week(good, bad)
    lake.write("raw_sessions", WEEK, sessions, Session)
    rows = [structs.replace(row, scoring_fingerprint=mark) for row in scores]
    lake.write("session_scores", WEEK, rows, SessionScores)


def test_mining_through_http_tells_what_failed_and_asks_about_that_alone_again(
    lake: Lake, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", server.url)
    monkeypatch.setenv("DEBRIEF_MODEL", "openai/m")
    evaluator = EvaluatorResource(model="openai/m")
    fill(lake, evaluator.open().scoring_fingerprint)
    shown = metadata(run(lake, extracted_rubrics, WEEK, evaluator), WEEK)
    assert shown["unmined"] == 6, "for each score name, the session and the one shown beside it"
    assert REFUSED in shown["unmined_sessions"]
    assert "Invents" in shown["dropped"]
    unmined = list(lake.read(UNMINED, WEEK, UnminedSession))
    assert {row.extractor for row in unmined} == {"openai/m"}
    assert len({row.session_id for row in unmined}) == 3, "beside another one by the verdict"
    assert len(list(lake.read(EXTRACTED, WEEK, ExtractedRubric))) == 3
    server.reply.refuses = False  # type: ignore[attr-defined]
    run(lake, extracted_rubrics, WEEK, evaluator)
    assert list(lake.read(UNMINED, WEEK, UnminedSession)) == []
    asked = server.received
    run(lake, extracted_rubrics, WEEK, evaluator)
    assert server.received == asked
    rows = list(lake.read(EXTRACTED, WEEK, ExtractedRubric))
    assert {id_ for row in rows for id_ in row.sessions} <= set(MINED)
    shown = metadata(run(lake, rubrics, None, evaluator))
    trials = list(lake.read(TRIALS, ALL, RubricTrial))
    assert {(trial.effect, trial.kept) for trial in trials} == {(0, False)}
    assert list(lake.read(RUBRICS, "excellence", Rubric)) == []
    assert "Nothing distinguishes good sessions yet: " in shown["page"]
    asked = server.received
    run(lake, rubrics, None, evaluator)
    assert server.received == asked


def test_a_set_that_cannot_be_made_leaves_the_one_before_and_the_other_score_names(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    with OpenAIServer(lambda call: Reply("No.")) as mute:
        monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", mute.url)
        monkeypatch.setenv("DEBRIEF_MODEL", "openai/m")
        evaluator = EvaluatorResource(model="openai/m")
        fill(lake, evaluator.open().scoring_fingerprint)
        lake.write(EXTRACTED, WEEK, [mined("theme-1", extractor="openai/m")], ExtractedRubric)
        lake.write(RUBRICS, "excellence", [rubric(1)], Rubric)
        result = run(lake, rubrics, None, evaluator)
        assert result.success
        shown = metadata(result)
    assert (
        "no usable answer about the rubrics for excellence in 3 calls"
        in shown["failure_excellence"]
    )
    assert [row.key for row in lake.read(RUBRICS, "excellence", Rubric)] == ["key-1"]


def test_offline_everything_is_shown_with_its_reason(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    evaluator = EvaluatorResource(offline=True)
    fill(lake, evaluator.open().scoring_fingerprint, good=20, bad=20)
    shown = metadata(run(lake, extracted_rubrics, WEEK, evaluator), WEEK)
    assert shown["unmined"] == 0
    dropped = list(lake.read(DROPPED, WEEK, DroppedRubric))
    assert dropped
    assert all(row.reason for row in dropped)
    shown = metadata(run(lake, rubrics, None, evaluator))
    found = list(lake.read(RUBRICS, "excellence", Rubric))
    assert found
    assert all((rubric.held_out_low or 0) > 0 for rubric in found)
    assert "| Rubric | Weight | Effect on unseen sessions |" in shown["page"]
    shown = metadata(run(lake, rubric_evaluations, WEEK, evaluator), WEEK)
    assert (shown["failed"], shown["injection_suspected"]) == (0, 0)
    assert list(lake.read(EVALUATIONS, WEEK, RubricEvaluation))
