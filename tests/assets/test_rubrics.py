"""The rubric stages as the orchestrator runs them, with a model's server of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.rubrics import rubrics
from debrief.errors import ConfigurationError
from debrief.lake import Lake
from debrief.models.templates import load_template
from debrief.outcomes.store import Label, Labels, put_labels
from debrief.rubrics.model import (
    ALL,
    EXTRACTED,
    RUBRICS,
    TRIALS,
    UNMINED,
    ExtractedRubric,
    Rubric,
    RubricTrial,
    UnminedSession,
)
from debrief.rubrics.trial import split_of
from debrief.scoring.model import SessionScores
from debrief.sessions.model import Session
from debrief.stages.configuration import EvaluatorChoice
from tests.assets.running import asset, metadata, resources
from tests.models.openai_server import Call, OpenAIServer, Reply
from tests.rubrics.scenario import SCALE, WEEK, a_week, mined, rubric, summarized, valued

extracted_rubrics = asset("extracted_rubrics")
rubric_evaluations = asset("rubric_evaluations")

MINED = [r.session_id for r in valued(a_week(20, 28)[1]) if split_of([(WEEK, 48)]).mines(r)]
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
    evaluator: EvaluatorChoice,
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
    evaluator = EvaluatorChoice(model="openai/m")
    fill(lake, evaluator.open().scoring_fingerprint)
    shown = metadata(run(lake, extracted_rubrics, WEEK, evaluator), WEEK)
    assert shown["unmined"] == 3, "the session, for each score name"
    assert REFUSED in shown["unmined_sessions"]
    assert "Invents" in shown["dropped"]
    unmined = list(lake.read(UNMINED, WEEK, UnminedSession))
    assert {row.extractor for row in unmined} == {"openai/m"}
    assert {row.session_id for row in unmined} == {REFUSED}
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
    assert {(trial.effect, trial.finding) for trial in trials} == {(0, "does_not_tell")}
    final = list(lake.read(RUBRICS, "excellence", Rubric))
    assert [(one.id, one.finding) for one in final] == [
        (f"rubric_{place:03}", "does_not_tell") for place in range(1, 7)
    ], "the test informs, and drops nothing"
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
        evaluator = EvaluatorChoice(model="openai/m")
        fill(lake, evaluator.open().scoring_fingerprint)
        lake.write(EXTRACTED, WEEK, [mined("theme-1", extractor="openai/m")], ExtractedRubric)
        lake.write(RUBRICS, "excellence", [rubric(1)], Rubric)
        result = run(lake, rubrics, None, evaluator)
        assert result.success
        shown = metadata(result)
    assert (
        "no usable answer about the rubrics for excellence in 2 calls"
        in shown["failure_excellence"]
    )
    assert [row.key for row in lake.read(RUBRICS, "excellence", Rubric)] == ["key-1"]


def test_without_a_model_rubrics_are_off_and_those_of_before_stay(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    evaluator = EvaluatorChoice(no_model=True)
    fill(lake, "", good=20, bad=20)
    lake.write(RUBRICS, "excellence", [rubric(1)], Rubric)
    for made, week in ((extracted_rubrics, WEEK), (rubrics, None), (rubric_evaluations, WEEK)):
        shown = metadata(run(lake, made, week, evaluator), week)
        assert shown["off"] == "no model is configured"
    assert [row.key for row in lake.read(RUBRICS, "excellence", Rubric)] == ["key-1"]


QUESTION = re.compile(r"<<<end of data[^\n]*\n(.*)", re.DOTALL)
IDS = re.compile(r"^Session ID: (\S+)", re.MULTILINE)


class Recording(Provider):
    """Answers, and keeps the questions of extractors with the sessions that they are about."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses = False
        self.extractions: list[tuple[list[str], str]] = []

    def __call__(self, call: Call) -> Reply:
        question = QUESTION.search(call.user)
        if question and '"evidence": "In turn 3' in call.user:
            self.extractions.append((IDS.findall(call.user), question[1]))
        return super().__call__(call)


def own_template(repository: Path, text: str) -> None:
    folder = repository / ".debrief" / "prompts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rubric_extractor.txt").write_text(text, encoding="utf-8")


def test_score_names_numbers_and_templates_are_the_projects_own(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, repository = tmp_path / "home", tmp_path / "repository"
    repository.mkdir()
    provider = Recording()
    with OpenAIServer(provider) as server:
        for name, value in {
            "HOME": str(home),
            "MODEL_BASE_URL": server.url,
            "MODEL": "openai/m",
            "SCORE_NAMES": "excellence, Clarity",
            "EXTRACTION_MIN_RUBRICS": "1",
            "EXTRACTION_MAX_RUBRICS": "4",
            "REPOSITORIES": str(repository),
        }.items():
            monkeypatch.setenv(f"DEBRIEF_{name}", value)
        evaluator = EvaluatorChoice(model="openai/m", repository=str(repository))
        fill(lake, evaluator.open().scoring_fingerprint)
        ratings = {id_: "5" if place < 3 else "2" for place, id_ in enumerate(MINED)}
        rated = [
            Label(session_id=id_, name="clarity", value=value, source="csv", origin="labels.csv")
            for id_, value in ratings.items()
        ]
        put_labels(lake, Labels(labels=tuple(rated), read={"csv": frozenset({"labels.csv"})}))

        def mine() -> None:
            provider.extractions.clear()
            run(lake, extracted_rubrics, WEEK, evaluator)
            assert all(len(ids) == 1 for ids, _ in provider.extractions)

        mine()
        general = load_template("rubric_extractor").partition("{chat_session}")[0]
        by_clarity = [ids[0] for ids, asked in provider.extractions if general in asked]
        by_verdict = [asked for _, asked in provider.extractions if "difficult task" in asked]
        assert by_clarity
        assert by_verdict
        assert len(by_clarity) + len(by_verdict) == len(provider.extractions)
        assert {ratings[id_] for id_ in by_clarity[:3]} == {"5"}
        assert all("Extract 1-4 rubrics" in asked for _, asked in provider.extractions)
        mine()
        assert provider.extractions == [], "nothing has changed"

        own_template(
            repository,
            "Kindly: {chat_session} {extraction_min_rubrics} to {extraction_max_rubrics}, "
            'such as {"evidence": "In turn 3"}.',
        )
        mine()
        assert {asked.split()[0] for _, asked in provider.extractions} == {"Kindly:"}
        assert sorted(ids[0] for ids, _ in provider.extractions) == sorted(by_clarity)
        own_template(repository, "Kindly: {chat_session} {extraction_min_rubrics}")
        with pytest.raises(ConfigurationError, match=r"rubric_extractor\.txt: does not contain"):
            evaluator.open()
        own_template(repository, load_template("rubric_extractor"))

        run(lake, extracted_rubrics, WEEK, evaluator)
        shown = metadata(run(lake, rubrics, None, evaluator))
        assert "# Clarity" in shown["page"]
        assert lake.partitions(RUBRICS) == ["clarity", "excellence"]
        assert 5 <= len(list(lake.read(RUBRICS, "clarity", Rubric))) <= 10
        monkeypatch.setenv("DEBRIEF_SCORE_NAMES", "excellence")
        run(lake, extracted_rubrics, WEEK, evaluator)
        run(lake, rubrics, None, evaluator)
        assert lake.partitions(RUBRICS) == ["excellence"], "as it is configured now"
