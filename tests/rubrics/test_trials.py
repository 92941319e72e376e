"""Every rubric is kept, with whether it tells good sessions from bad ones that it has not seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from debrief.errors import ModelError
from debrief.rubrics.contrast import BUILT_IN, SessionValues
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.model import Rubric, RubricJudgement, RubricTrial
from debrief.rubrics.page import rubrics_markdown
from debrief.rubrics.trial import (
    Split,
    final_rubrics,
    searches_of,
    settle,
    split_of,
    try_rubrics,
)
from debrief.sessions.model import Session
from tests.rubrics.scenario import rubric, scores, session, valued

SESSIONS = [session(n) for n in range(40)]
SCORES = valued(scores(one, 1 - place / 39) for place, one in enumerate(SESSIONS))
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
        place = PLACE[session.id]
        good = place < 20
        found = {
            "Separates": 5 if good else 1,
            "Reversed": 1 if good else 5,
            "Faint": 4 if place < 4 else 3,
        }
        return RubricJudgement(score=found.get(rubric.name, 3), reasoning="by place")


def read(ids: Collection[str]) -> Iterator[Session]:
    return (one for one in SESSIONS if one.id in ids)


def tried(rubrics: list[Rubric], judge: PlacedJudge, most: int = 480) -> list[RubricTrial]:
    return settle(try_rubrics(rubrics, read, SCORES, judge, most_judgements=most))


NAMED = [
    rubric(n, name=name, description="x", scoring_criteria="y")
    for n, name in enumerate(("Separates", "Reversed", "Blind", "Faint"), 1)
]


def test_every_rubric_is_kept_with_what_unseen_sessions_say_of_it() -> None:
    trials = tried([NAMED[1], NAMED[0], *NAMED[2:]], PlacedJudge())
    none = "it does not tell good sessions from bad ones"
    assert [(trial.name, trial.finding, trial.reason) for trial in trials] == [
        ("Reversed", "does_not_tell", none),
        ("Separates", "tells", "it tells good sessions from bad ones"),
        ("Blind", "does_not_tell", none),
        ("Faint", "too_few", "too few sessions to rule out chance"),
    ]
    final = final_rubrics(trials)
    assert [(rubric.id, rubric.name, rubric.finding) for rubric in final] == [
        (f"rubric_{place:03}", trial.name, trial.finding) for place, trial in enumerate(trials, 1)
    ]
    assert final[1].held_out_effect == 1.0
    page = rubrics_markdown(final)
    separates = (
        "| Separates | 1.00 | tells good from bad | +1.00 (+0.68 to +1.00) | under 0.001 | 40 |"
    )
    assert separates in page
    assert "| Reversed | 1.00 | does not tell good from bad | -1.00 (" in page
    assert "On unseen sessions: too few to tell: too few sessions to rule out chance." in page


@given(st.lists(st.sampled_from(["Separates", "Reversed", "Blind", "Faint"]), max_size=10))
def test_whatever_unseen_sessions_say_no_rubric_is_dropped_or_added(names: list[str]) -> None:
    rubrics = [rubric(n, name=name) for n, name in enumerate(names)]
    final = final_rubrics(tried(rubrics, PlacedJudge()))
    assert [one.key for one in final] == [one.key for one in rubrics]
    assert all(one.finding_reason for one in final)


def test_the_more_was_looked_at_the_less_is_sure() -> None:
    trials = try_rubrics(NAMED[:1], read, SCORES[:8] + SCORES[-8:], PlacedJudge())
    assert settle(trials)[0].finding == "tells"
    others = [structs.replace(trials[0], p_value=1.0)] * 3_000
    assert settle([*trials, *others])[0].finding == "too_few"


def test_no_session_that_a_rubric_was_mined_from_is_asked_about() -> None:
    sessions = tuple(one.id for one in SESSIONS[::3])
    judge = PlacedJudge()
    tried([structs.replace(NAMED[0], sessions=sessions)], judge)
    assert judge.asked
    assert not {id_ for id_, _ in judge.asked} & set(sessions)


def test_the_limit_of_judgements_is_kept_and_what_it_does_not_reach_is_not_tested() -> None:
    judge = PlacedJudge()
    trials = tried(NAMED, judge, most=35)
    assert len(judge.asked) == 34
    assert [trial.finding for trial in trials] == ["tells", *["too_few"] * 3]
    assert {trial.reason for trial in trials[1:]} == {
        "not tested: the limit of judgements is reached"
    }


def test_candidates_share_the_judgements_alike_where_there_is_more_than_each_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [structs.replace(SESSIONS[n % 40], id=f"many-{n}") for n in range(800)]
    marked = [structs.replace(SCORES[n % 40], session_id=one.id) for n, one in enumerate(many)]
    judge = PlacedJudge()
    for n, one in enumerate(many):
        monkeypatch.setitem(PLACE, one.id, n % 40)
    try_rubrics(NAMED[:2], lambda _: iter(many), marked, judge, most_judgements=400)
    assert Counter(key for _, key in judge.asked) == {one.key: 200 for one in NAMED[:2]}


def test_with_too_few_unseen_sessions_nothing_is_asked_and_the_reason_is_told() -> None:
    few = [structs.replace(one, sessions=tuple(PLACE)[:35]) for one in NAMED]
    judge = PlacedJudge()
    trials = tried(few, judge)
    assert (judge.asked, [trial.finding for trial in trials]) == ([], ["too_few"] * 4)
    assert trials[0].reason == (
        "not tested: of those set aside, 8 that are done and checked and 3 that are partly or not "
        "done are missing"
    )
    efficient = [structs.replace(one, score_name="token_efficiency") for one in few]
    assert "too few sessions are set aside" in tried(efficient, judge)[0].reason


def test_what_was_judged_before_is_not_asked_again_and_a_failure_costs_no_other() -> None:
    known = list(evaluate_rubrics(SESSIONS, NAMED, PlacedJudge()))
    again = PlacedJudge()
    found = try_rubrics(NAMED, read, SCORES, again, known)
    assert again.asked == []
    assert found == try_rubrics(NAMED, read, SCORES, PlacedJudge())
    (trial,) = tried(NAMED[:1], PlacedJudge(fails_on=[SESSIONS[0].id]))
    assert (trial.failed, trial.effect) == (1, 1.0)


def test_too_few_sessions_say_how_many_are_missing_and_many_say_that_nothing_is_there() -> None:
    by_verdict, by_tokens, _ = searches_of(BUILT_IN, [], SCORES, Split(by_week=False), 54)
    for few, least, most in ((by_verdict, 150, 250), (by_tokens, 300, 450)):
        assert few.mined + few.tried >= 39
        assert least < few.needed < most
    assert f"good sessions yet: {by_tokens.needed} more are needed for a large" in by_tokens.said
    good, bad = map(int, re.findall(r"(\d+) more that are", by_verdict.said))
    assert good + bad == by_verdict.needed
    one_sided = [structs.replace(SCORES[0], session_id=f"s{n}") for n in range(2_400)]
    search, efficiency, _ = searches_of(BUILT_IN, [], one_sided, Split(by_week=False), 54)
    assert "0 more that are done and checked and" in search.said
    assert search.needed >= 96
    assert efficiency.needed == 0
    enough = "there are enough for a medium effect to show 4 times in 5, if"
    assert f"{enough} the best and the worst quarter" in efficiency.said
    both = [structs.replace(SCORES[-(n % 2)], session_id=f"s{n}") for n in range(2_400)]
    assert (
        f"{enough} those set aside"
        in searches_of(BUILT_IN, [], both, Split(by_week=False), 54)[0].said
    )
    assert by_verdict.said in rubrics_markdown([], searches=[by_verdict])


def test_labels_of_yes_and_no_are_two_sides_and_a_name_without_values_says_what_to_do() -> None:
    def labelled(*values: float) -> list[SessionValues]:
        return [
            structs.replace(row, values={"clarity": value})
            for row, value in zip(SCORES, values, strict=False)
        ]

    named = [structs.replace(one, score_name="clarity") for one in NAMED[:1]]
    yes_or_no = labelled(*[1.0] * 20, *[0.0] * 20)
    (trial,) = settle(try_rubrics(named, read, yes_or_no, PlacedJudge()))
    assert (trial.finding, trial.best_count, trial.worst_count) == ("tells", 20, 20)
    (by_rating,) = try_rubrics(named, read, labelled(*range(40, 0, -1)), PlacedJudge())
    assert (by_rating.best_count, by_rating.worst_count) == (10, 10)
    (few,) = tried_by(named, labelled(1.0, 1.0, 0.0))
    assert "6 good ones and 7 bad ones are missing" in few.reason
    (search,) = searches_of(["clarity"], [], SCORES, Split(by_week=False), 54)
    assert search.said == "No session has a value by clarity: label sessions with that name."


def tried_by(rubrics: list[Rubric], rows: list[SessionValues]) -> list[RubricTrial]:
    return settle(try_rubrics(rubrics, read, rows, PlacedJudge()))


def test_what_was_found_says_how_many_sessions_it_was_confirmed_on() -> None:
    efficient = [structs.replace(one, score_name="token_efficiency") for one in NAMED]
    trials = [*tried(NAMED, PlacedJudge(), most=35), *tried(efficient, PlacedJudge(), most=35)]
    by_verdict, by_tokens, _ = searches_of(BUILT_IN, trials, SCORES, Split(by_week=False), 30)
    assert (by_verdict.confirmed, by_tokens.confirmed) == (1, 1)
    assert f"confirmed on 34 of {by_verdict.tried} others" in by_verdict.said
    assert f"on 20 of the best and the worst of {by_tokens.tried} others" in by_tokens.said


def test_weeks_are_mined_or_set_aside_whole_once_there_are_enough() -> None:
    assert split_of([("2026-03-02", 500)]) == split_of([("2026-03-02", 39), ("2026-03-09", 50)])
    split = split_of([("2026-03-02", 41), ("2026-03-09", 50)])
    assert split.by_week
    weeks = [
        [split.mines(row) for row in valued(scores(session(n, weeks=w), 0.5) for n in range(20))]
        for w in range(4)
    ]
    assert [set(week) for week in weeks] == [{weeks[0][0]}, {not weeks[0][0]}] * 2


@given(st.lists(st.text(), min_size=300, max_size=300, unique=True))
def test_of_few_sessions_about_half_are_mined_whatever_they_are_called(ids: list[str]) -> None:
    rows = [structs.replace(SCORES[0], session_id=id_) for id_ in ids]
    assert 90 < sum(map(Split(by_week=False).mines, rows)) < 210
