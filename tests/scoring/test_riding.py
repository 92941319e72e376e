"""Judges that are asked in the call that reviews: one call, and never two for one answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from debrief.evaluators import Evaluators, make_evaluators
from debrief.judging.dspy_judge import DspyJudge
from debrief.judging.evaluation import evaluate_week
from debrief.judging.model import Judge, JudgeEvaluation
from debrief.models.choosing import Models
from debrief.models.fencing import fence, marker_of
from debrief.scoring.model_scorer import ModelChunkScorer
from debrief.scoring.riding import RidingJudge
from debrief.scoring.scorer import score_session
from debrief.sessions.model import Session
from debrief.settings import Settings, load_settings
from tests.models.openai_server import Call, OpenAIServer, Reply, judged
from tests.scoring.scenario import answer, changing

NAME = "openai/tiny"
CARE = Judge(name="care", weight=0.6, model=NAME, body="Is it done with care?")
TESTS = Judge(name="tests", weight=0.4, model=NAME, body="Is it tested?")
WHY = "It has a test of its own."


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def configured(home: Path, server: OpenAIServer, **more: str) -> Settings:
    return load_settings(
        {
            "DEBRIEF_HOME": str(home),
            "DEBRIEF_MODEL_BASE_URL": server.url,
            "OPENAI_API_KEY": "k",
            **more,
        }
    )


def riding(home: Path, server: OpenAIServer, run: str = "r") -> RidingJudge:
    """What a stage of a run asks with: its models are its own, and the run is the same."""
    models = Models(configured(home, server), run=run)
    scorer = ModelChunkScorer(
        NAME,
        models.get(NAME).ask,
        lambda text: fence(text, marker_of(b"secret", text)),
        judges=(CARE, TESTS),
    )
    return RidingJudge(scorer, DspyJudge(models.get), version="")


def judge(by: RidingJudge, given: Session) -> list[JudgeEvaluation]:
    return list(evaluate_week([given], [CARE, TESTS], by, "f"))


def with_judges(**scores: object) -> str:
    said = {name: {"feedback": WHY, "score": score} for name, score in scores.items()}
    return json.dumps({**json.loads(answer()), "judges": said})


def test_one_call_reviews_and_judges_whichever_stage_comes_first(
    tmp_path: Path, server: OpenAIServer
) -> None:
    server.reply = lambda call: Reply(with_judges(care=0.9, tests="0.4"))
    by, given = riding(tmp_path, server), changing()
    rows = judge(by, given)
    row = score_session(given, by.scorer)
    assert row.status == "ok", row.failure
    assert len(server.calls) == 1
    assert [(row.judge, row.score, row.feedback) for row in rows] == [
        ("care", 0.9, WHY),
        ("tests", 0.4, WHY),
    ]
    assert row.input_tokens > 0
    assert sum(row.input_tokens for row in rows) == 0
    later = riding(tmp_path, server, run="later")
    assert score_session(given, later.scorer).review == row.review
    assert [evaluation.score for evaluation in judge(later, given)] == [0.9, 0.4]
    assert len(server.calls) == 1


@pytest.mark.parametrize("first", ["judging", "scoring"])
def test_a_refused_review_is_final_for_its_judges_in_the_run(
    tmp_path: Path, server: OpenAIServer, first: str
) -> None:
    server.reply = lambda call: Reply("I would rather not.")
    stages: dict[str, Callable[[], list[str]]] = {
        "judging": lambda: [row.status for row in judge(riding(tmp_path, server), changing())],
        "scoring": lambda: [score_session(changing(), riding(tmp_path, server).scorer).status],
    }
    order = ["judging", "scoring"] if first == "judging" else ["scoring", "judging"]
    said = [status for name in order for status in stages[name]()]
    assert said == ["failed"] * 3
    assert len(server.calls) == 2


def test_a_judge_that_was_left_out_is_asked_alone(tmp_path: Path, server: OpenAIServer) -> None:
    def reply(call: Call) -> Reply:
        alone = "`feedback` (str)" in call.system
        return Reply(judged(0.3) if alone else with_judges(care=0.9))

    server.reply = reply
    rows = judge(riding(tmp_path, server), changing())
    assert [(row.score, row.input_tokens > 0) for row in rows] == [(0.9, False), (0.3, True)]
    assert len(server.calls) == 2


FILES = {
    "care": "---\nweight: 0.6\nmodel: openai/tiny\n---\nIs it done with care?\n",
    "tests": "---\nweight: 0.4\nmodel: openai/tiny\n---\nIs it tested?\n",
}


def evaluators(home: Path, server: OpenAIServer, **more: str) -> Evaluators:
    folder = home / "judges"
    folder.mkdir(exist_ok=True)
    for name, text in {**FILES, **more}.items():
        if name.islower():
            (folder / f"{name}.md").write_text(text)
    own = {name: text for name, text in more.items() if name.isupper()}
    settings = configured(home, server, DEBRIEF_JUDGES=str(folder), **own)
    return make_evaluators(settings, no_model=False)


def test_judges_of_another_model_with_criteria_or_without_a_cache_do_not_ride(
    tmp_path: Path, server: OpenAIServer
) -> None:
    other = FILES["tests"].replace("tiny", "other").replace("0.4", "0.1")
    listed = FILES["care"].replace("---\nIs", "criteria:\n  - Is it short?\n---\nIs")
    by = evaluators(tmp_path, server, other=other, listed=listed)
    riding = [each.name for each in by.chunk_scorer.judges]  # type: ignore[attr-defined]
    assert riding == ["care", "tests"]
    without = evaluators(tmp_path, server, DEBRIEF_CACHE="off")
    assert without.chunk_scorer.judges == ()  # type: ignore[attr-defined]


def test_an_edited_judge_makes_scores_due_again_as_the_question_is_another(
    tmp_path: Path, server: OpenAIServer
) -> None:
    before = evaluators(tmp_path, server).scoring_fingerprint
    edited_judge = FILES["care"].replace("care?", "great care?")
    assert evaluators(tmp_path, server, care=edited_judge).scoring_fingerprint != before
