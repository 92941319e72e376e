"""A week of judgements: in order, nothing judged twice, no failure that costs the rest."""

from __future__ import annotations

import pytest
from msgspec import structs

from debrief.errors import ModelError
from debrief.judging.evaluation import evaluate_week, weighted_average
from debrief.judging.model import ChangeContext, Judge, JudgeEvaluation, Judgement
from debrief.models.usage import total_cost
from debrief.sessions.model import Session
from debrief.training.samples import judges_mean
from tests.judging.scenario import CountingJudge, make_session
from tests.training.scenario import judgement


def edited(id: str = "s1", prompt: str = "Add a retry") -> Session:
    return make_session(("a.py", "@@ -1,1 +1,1 @@\n-a = 1\n+a = 2\n"), id=id, prompt=prompt)


CHANGED = edited()
JUDGES = [
    Judge(name="plan", weight=0.6, model="m", body="b"),
    Judge(name="code", weight=0.4, model="m", body="b"),
]


def test_rows_come_in_session_and_judge_name_order() -> None:
    sessions = [edited(id="s2"), edited(id="s1")]
    rows = list(evaluate_week(sessions, JUDGES, CountingJudge(), "f1"))
    assert [(row.session_id, row.judge) for row in rows] == [
        ("s2", "code"), ("s2", "plan"), ("s1", "code"), ("s1", "plan"),
    ]  # fmt: skip
    assert {(row.status, row.score, row.model, row.eval_fingerprint) for row in rows} == {
        ("ok", 0.5, "m", "f1")
    }


def test_a_failure_is_a_row_with_its_reason_and_it_alone_is_judged_again() -> None:
    errors: list[Exception] = [ModelError("m", "answered nothing", "Try again."), KeyError("x")]
    judge = CountingJudge({("s1", "code"): errors[0], ("s1", "plan"): errors[1]})
    sessions = [edited(id="s1"), edited(id="s2")]
    first = list(evaluate_week(sessions, JUDGES, judge, "f1"))
    assert [row.status for row in first] == ["failed", "failed", "ok", "ok"]
    assert [row.failure for row in first[:2]] == [str(errors[0]), "KeyError: 'x'"]
    assert first[0].score is None
    healthy = CountingJudge()
    second = list(evaluate_week(sessions, JUDGES, healthy, "f1", first))
    assert list(evaluate_week(sessions, JUDGES, healthy, "f1", second)) == second
    assert healthy.asked == [("s1", "code"), ("s1", "plan")]


@pytest.mark.parametrize("change", ["digest", "fingerprint", "judge", "measures"])
def test_a_changed_session_fingerprint_judge_or_measure_is_judged_again(change: str) -> None:
    session = edited(id="s1")
    first = list(evaluate_week([session], JUDGES, CountingJudge(), "f1"))
    judge = CountingJudge()
    judges = JUDGES
    if change == "digest":
        session = structs.replace(session, digest="another")
    if change == "measures":
        judge.version = "2"
    if change == "judge":
        judges = [structs.replace(JUDGES[0], name="other")]
    fingerprint = "f2" if change == "fingerprint" else "f1"
    rows = list(evaluate_week([session], judges, judge, fingerprint, first))
    assert len(judge.asked) == len(judges) == len(rows)


def test_without_a_change_no_judge_is_asked_and_nothing_is_averaged() -> None:
    changed, asked_only = CHANGED, make_session(id="s2")
    judge = CountingJudge()
    rows = list(evaluate_week([changed, asked_only], JUDGES, judge, "f1"))
    assert {id_ for id_, _ in judge.asked} == {changed.id}
    assert [row.status for row in rows] == ["ok", "ok", "no_change", "no_change"]
    assert [row.score for row in rows[2:]] == [None, None]
    assert total_cost(row.cost_usd for row in rows[2:]) == 0
    assert weighted_average(rows) == 0.5
    assert weighted_average(rows[2:]) is None


def test_a_judge_that_cannot_see_it_leaves_the_mean_to_the_others() -> None:
    unseen = Judgement(score=None, feedback="No code is shown.")
    judge = CountingJudge({("s1", "code"): unseen})
    rows = list(evaluate_week([CHANGED], JUDGES, judge, "f1"))
    assert [(row.status, row.score) for row in rows] == [("ok", None), ("ok", 0.5)]
    assert weighted_average(rows) == judges_mean(rows) == 0.5


@pytest.mark.parametrize("score", [1.7, -0.1, float("nan")])
def test_a_score_outside_the_scale_is_a_failure_and_is_never_clamped(score: float) -> None:
    judge = CountingJudge({("s1", "code"): Judgement(score=score, feedback="")})
    rows = list(evaluate_week([edited()], JUDGES[1:], judge, "f1"))
    assert rows[0].status == "failed"
    assert "not between 0 and 1" in rows[0].failure


def test_a_context_that_cannot_be_made_fails_that_session_alone() -> None:
    def context_of(session: Session) -> ChangeContext:
        if session.id == "s1":
            raise OSError("the worktree is gone")
        return ChangeContext(plan_content="", git_changes="")

    sessions = [edited(id="s1"), edited(id="s2")]
    for many in (1, 4):
        found = evaluate_week(
            sessions, JUDGES, CountingJudge(), "f1", concurrency=many, context_of=context_of
        )
        rows = list(found)
        assert [row.status for row in rows] == ["failed", "failed", "ok", "ok"]
        assert rows[0].failure == "OSError: the worktree is gone"


def test_threads_give_the_same_rows_as_one_after_the_other() -> None:
    sessions = [edited(id=f"s{number}", prompt=f"Add {number} things") for number in range(6)]
    alone = list(evaluate_week(sessions, JUDGES, CountingJudge(), "f1"))
    threaded = list(evaluate_week(sessions, JUDGES, CountingJudge(), "f1", concurrency=3))
    assert alone == threaded
    assert {row.status for row in alone} == {"ok"}


def row(weight: float, score: float | None) -> JudgeEvaluation:
    return judgement(edited(), score=score, weight=weight)


def test_the_average_is_weighted_and_leaves_failures_out() -> None:
    assert weighted_average([row(0.4, 1.0), row(0.6, 0.5)]) == pytest.approx(0.7)
    assert weighted_average([row(0.4, 1.0), row(0.6, None)]) == pytest.approx(1.0)
    assert weighted_average([row(0.6, None)]) is None
    assert weighted_average([]) is None
