"""The six dimensions without a model."""

from __future__ import annotations

from typing import get_args

from hypothesis import given, settings

from debrief.judging.context import context_from_session
from debrief.judging.model import Judge, Judgement
from debrief.scoring.model import DimensionName, DimensionScore, SessionScores
from debrief.scoring.offline_evaluator import OfflineEvaluator
from debrief.scoring.scorer import score_session
from debrief.sessions.model import Session
from tests.signals.scenario import Story, steps, story_of

ORDER = list(get_args(DimensionName))


def work(
    calls: int = 12, ending: str = "The uploader waits and tries again, and a test says so."
) -> Story:
    story = Story().turn("Please fix the retry of the uploader. " * 8)
    for number in range(calls):
        story.say(f"I look at part {number} of the uploader.").run(f"cat part{number}.py", "x = 1")
    story.edit("upload.py", "send()", "retry(send)").run("pytest", "5 passed in 0.1s")
    return story.say(ending) if ending else story


def row_of(session: Session) -> SessionScores:
    return score_session(session, OfflineEvaluator())


def scored(session: Session) -> dict[str, DimensionScore]:
    return {verdict.dimension: verdict for verdict in row_of(session).verdicts}


def bad() -> Session:
    story = Story().turn("Add a retry to the uploader")
    for number in range(5):
        story.run(f"./try {number}", "error: no such file", "failed").say("Hmm, that still fails.")
    story.edit("upload.py", "send()", "retry(send, 1)").run("pytest", "4 failed, 1 passed in 0.1s")
    story.turn("that's wrong, you broke everything").run("git push --force", "")
    story.say("I look again.").turn("still failing").say("I was unable to make it work.")
    return story.deed("interruption").session()


def worth(verdict: DimensionScore) -> float:
    assert verdict.value is not None
    return verdict.value


def test_a_good_session_beats_a_bad_one() -> None:
    high, low = scored(work().session()), scored(bad())
    assert list(high) == ORDER
    for name in ORDER[:3]:
        assert worth(high[name]) > worth(low[name]), name
    assert high["task_completion"].category == "complete"
    assert low["task_completion"].category == "partial"
    assert low["user_satisfaction"].category == "poor"
    assert low["security_compliance"].category == "partial"
    assert (row_of(work().session()).overall_quality or 0) > (row_of(bad()).overall_quality or 1)


def test_a_dimension_without_evidence_says_so_and_takes_no_part() -> None:
    verdicts = scored(work().session())
    for name in ("security_compliance", "user_satisfaction"):
        assert verdicts[name].value is None
        assert verdicts[name].rationale.endswith("Not scored.")


def test_without_completion_and_execution_there_is_no_overall_quality() -> None:
    asked = Story().turn("What does it do?")
    for number in range(6):
        asked.run(f"./look {number}", "error: no such file" if number % 2 else "x", "ok")
    row = row_of(asked.say("It adds numbers.").session())
    assert any(verdict.value is not None for verdict in row.verdicts)
    assert row.overall_quality is None
    assert row.verdict is not None
    assert row.verdict.verdict == "undetermined"


def test_harmlessness_and_length_are_no_excellence() -> None:
    for calls in (2, 40, 200):
        assert scored(work(calls=calls).session())["security_compliance"].value is None


def test_courtesy_is_no_satisfaction_and_words_of_approval_are() -> None:
    thanked = work().turn("Thanks anyway, goodbye!").say("You're welcome.").session()
    assert scored(thanked)["user_satisfaction"].value is None
    accepted = work().turn("perfect, it works now").say("Good to hear that it does.").session()
    assert scored(accepted)["user_satisfaction"].category == "good"
    refused = work().turn("that's wrong, it still fails").say("I look again.")
    assert scored(refused.session())["user_satisfaction"].category == "partial"
    refused.turn("that's wrong, it still fails").say("I look once more.")
    assert scored(refused.session())["user_satisfaction"].category == "poor"


def test_a_red_last_check_leaves_it_partial_and_a_red_one_before_the_fix_does_not() -> None:
    red = "1 failed, 4 passed in 0.2s"
    left = work(ending="").run("pytest", red).say("The uploader waits and tries again now.")
    assert scored(left.session())["task_completion"].category == "partial"
    first = Story().turn("Fix the retry of the uploader").run("pytest", red, "failed")
    first.edit("upload.py", "send()", "retry(send)").run("pytest", "5 passed in 0.1s")
    verdicts = scored(first.say("It waits now and tries again." * 9).session())
    assert verdicts["task_completion"].category == "complete"
    assert worth(verdicts["tool_mastery"]) > 0.7


def test_a_session_is_read_whole_whatever_its_length() -> None:
    row = row_of(work(calls=3_000).session())
    assert (row.status, len(row.chunks), row.chunk_agreement) == ("ok", 1, None)
    assert row.verdict is not None
    assert row.facts


def judged(name: str, session: Session) -> Judgement:
    judge = Judge(name=name, weight=0.5, model="offline", body="x")
    return OfflineEvaluator().judge(judge, context_from_session(session), session)


def test_a_plan_is_complied_with_by_what_came_to_its_end() -> None:
    good, failed = judged("plan-compliance", work().session()), judged("plan-compliance", bad())
    assert (good.score or 0) > 0.4 > (failed.score or 1)
    assert "Partly done" in failed.feedback
    assert failed.evidence


def test_editing_what_is_there_is_reuse() -> None:
    edited = Story().turn("Add it").read("a.py").edit("a.py", "x = 1", "x = 2").say("Done.")
    written = Story().turn("Add it").write("b.py", "x = 1\ny = 2").say("Done.")
    assert (judged("code-reuse", edited.session()).score or 0) > 0.7
    blind = judged("code-reuse", written.session())
    assert (blind.score or 1) < 0.3
    assert "1 of 1 changed file is new (turn 1: “b.py”)" in blind.feedback
    assert judged("code-reuse", Story().turn("Hello").say("Hi.").session()).score is None


def test_any_other_judge_gets_the_general_measure_and_says_so() -> None:
    judgement, other = judged("tone", work().session()), judged("plan-compliance", work().session())
    assert judgement.score == other.score
    assert "no measure for “tone”" in judgement.feedback


@settings(deadline=None, max_examples=20)
@given(steps)
def test_every_verdict_is_in_range_and_gives_its_reason(given_steps: list[tuple[str, str]]) -> None:
    session = story_of(given_steps).session()
    row = row_of(session)
    assert row.status == "ok"
    assert [verdict.dimension for verdict in row.verdicts] == ORDER
    turns = {turn.number for turn in session.turns}
    for verdict in row.verdicts:
        assert verdict.value is None or 0 <= verdict.value <= 1
        assert verdict.rationale.strip()
        assert {place.turn for place in verdict.evidence} <= turns
    assert row == row_of(story_of(given_steps).session())
