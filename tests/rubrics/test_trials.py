"""A rubric is kept when it separates sessions that it was not mined from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import structs

from debrief.errors import ModelError
from debrief.rubrics.consolidation import try_rubrics
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.model import Rubric, RubricJudgement, RubricTrial
from debrief.rubrics.page import rubrics_markdown
from debrief.sessions.model import Session
from tests.rubrics.scenario import rubric, scores, session

SESSIONS = [session(n) for n in range(40)]
SCORES = [scores(one, 1 - place / 100) for place, one in enumerate(SESSIONS)]
PLACE = {one.id: place for place, one in enumerate(SESSIONS)}


class PlacedJudge:
    """Judges by the session's place: what each rubric's name says."""

    model = "placed"

    def __init__(self, fails_on: Collection[str] = ()) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fails_on = fails_on

    def judge_rubric(self, rubric: Rubric, session: Session) -> RubricJudgement:
        self.asked.append((session.id, rubric.key))
        if session.id in self.fails_on:
            raise ModelError("placed", "no usable answer")
        good = PLACE[session.id] < 20
        score = {"Separates": 5 if good else 1, "Reversed": 1 if good else 5}.get(rubric.name, 3)
        return RubricJudgement(score=score, reasoning="by place")


def read(ids: Collection[str]) -> Iterator[Session]:
    return (one for one in SESSIONS if one.id in ids)


def tried(
    rubrics: list[Rubric], judge: PlacedJudge, **options: int
) -> tuple[list[Rubric], list[RubricTrial]]:
    return try_rubrics(rubrics, read, SCORES, judge, **options)  # type: ignore[arg-type]


NAMED = [rubric(n, name=name) for n, name in enumerate(("Separates", "Reversed", "Blind"), 1)]


def test_only_what_separates_other_sessions_is_kept_and_the_rest_says_why() -> None:
    rubrics, trials = tried([NAMED[1], NAMED[0], NAMED[2]], PlacedJudge())
    (kept,) = rubrics
    assert (kept.id, kept.name, kept.held_out_effect) == ("rubric_001", "Separates", 1.0)
    assert "+1.00" in kept.notes
    assert "Only this one rubric" in kept.notes
    assert [(trial.name, trial.effect, trial.kept) for trial in trials] == [
        ("Reversed", -1.0, False), ("Separates", 1.0, True), ("Blind", 0.0, False),
    ]  # fmt: skip
    page = rubrics_markdown(rubrics, trials=trials)
    assert "| Separates | 1.00 |  | 0 | +1.00 |" in page
    assert "- Reversed (-1.00 on " in page


def test_no_session_that_a_rubric_was_mined_from_is_asked_about() -> None:
    mined = tuple(one.id for one in SESSIONS[::3])
    judge = PlacedJudge()
    tried([structs.replace(NAMED[0], sessions=mined)], judge)
    assert judge.asked
    assert not {id_ for id_, _ in judge.asked} & set(mined)


def test_the_limit_of_judgements_is_kept_and_what_it_does_not_reach_is_kept_untried() -> None:
    judge = PlacedJudge()
    rubrics, trials = tried(NAMED, judge, most_judgements=17)
    assert len(judge.asked) == 16
    assert [trial.effect for trial in trials] == [1.0, -1.0, None]
    assert [r.name for r in rubrics] == ["Separates", "Blind"]
    assert "Not tried" in rubrics[1].notes
    none = PlacedJudge()
    assert len(tried(NAMED, none, most_judgements=0)[0]) == 3
    assert none.asked == []


def test_with_too_few_other_sessions_nothing_is_dropped() -> None:
    few = [structs.replace(one, sessions=tuple(PLACE)[:35]) for one in NAMED]
    judge = PlacedJudge()
    rubrics, trials = tried(few, judge)
    assert len(rubrics) == 3
    assert judge.asked == []
    assert "too few sessions" in trials[0].reason


def test_what_was_judged_before_is_not_asked_again() -> None:
    known = list(evaluate_rubrics(SESSIONS, NAMED, PlacedJudge()))
    again = PlacedJudge()
    found = try_rubrics(NAMED, read, SCORES, again, known)
    assert again.asked == []
    assert found == tried(NAMED, PlacedJudge())


def test_a_session_that_fails_is_counted_and_costs_no_other() -> None:
    _, trials = tried(NAMED[:1], PlacedJudge(fails_on=[SESSIONS[0].id]))
    assert (trials[0].failed, trials[0].effect) == (1, 1.0)


def test_a_small_set_keeps_what_hardly_separates_and_says_so() -> None:
    class Faint(PlacedJudge):
        def judge_rubric(self, rubric: Rubric, session: Session) -> RubricJudgement:
            super().judge_rubric(rubric, session)
            return RubricJudgement(score=4 if PLACE[session.id] == 0 else 3, reasoning="")

    seven = [rubric(n, key=f"k{n}") for n in range(1, 8)]
    rubrics, trials = tried(seven, Faint(), most_judgements=200)
    assert len(rubrics) == 5
    small = "it hardly separates sessions that it was not mined from; kept because the set is small"
    assert [trial.reason for trial in trials if trial.kept] == [small] * 5
    assert all("hardly" in trial.reason for trial in trials)


def test_nothing_to_try_is_nothing_tried() -> None:
    assert try_rubrics([], read, SCORES, PlacedJudge()) == ([], [])
