"""A candidate is kept when it tells good sessions from bad ones that nothing was mined from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from debrief.errors import ModelError
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.model import Rubric, RubricJudgement, RubricTrial
from debrief.rubrics.page import rubrics_markdown
from debrief.rubrics.trial import (
    SHARED,
    Split,
    final_rubrics,
    looked_at,
    searches_of,
    settle,
    split_of,
    try_rubrics,
)
from debrief.sessions.model import Session
from tests.rubrics.scenario import mined, rubric, scores, session

SESSIONS = [session(n) for n in range(40)]
SCORES = [scores(one, 1 - place / 39) for place, one in enumerate(SESSIONS)]
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


def tried(
    rubrics: list[Rubric], judge: PlacedJudge, looked_at: int = 30, most: int = 480
) -> list[RubricTrial]:
    return settle(try_rubrics(rubrics, read, SCORES, judge, most_judgements=most), looked_at)


NAMED = [
    rubric(n, name=name, description="x", scoring_criteria="y")
    for n, name in enumerate(("Separates", "Reversed", "Blind", "Faint"), 1)
]


def test_only_what_tells_unseen_sessions_apart_is_kept_and_the_rest_says_why() -> None:
    trials = tried([NAMED[1], NAMED[0], *NAMED[2:]], PlacedJudge())
    none = "it does not tell good sessions from bad ones"
    assert [(trial.name, trial.kept, trial.reason) for trial in trials] == [
        ("Reversed", False, none),
        ("Separates", True, "it tells good sessions from bad ones"),
        ("Blind", False, none),
        ("Faint", False, "chance is not ruled out"),
    ]
    (kept,) = final_rubrics(trials)
    assert (kept.id, kept.name, kept.held_out_effect) == ("rubric_001", "Separates", 1.0)
    page = rubrics_markdown([kept], trials=trials)
    assert "| Separates | 1.00 | +1.00 (+0.68 to +1.00) | under 0.001 | 40 |" in page
    assert "- Reversed, excellence: it does not tell good sessions from bad ones, -1.00 (" in page


def test_the_more_was_looked_at_the_less_is_kept() -> None:
    trials = try_rubrics(NAMED[:1], read, SCORES[:8] + SCORES[-8:], PlacedJudge())
    assert settle(trials, 3)[0].kept
    assert not settle(trials, 3_000)[0].kept


def test_no_session_that_a_rubric_was_mined_from_is_asked_about() -> None:
    sessions = tuple(one.id for one in SESSIONS[::3])
    judge = PlacedJudge()
    tried([structs.replace(NAMED[0], sessions=sessions)], judge)
    assert judge.asked
    assert not {id_ for id_, _ in judge.asked} & set(sessions)


def test_the_limit_of_judgements_is_kept_and_what_it_does_not_reach_is_not_kept() -> None:
    judge = PlacedJudge()
    trials = tried(NAMED, judge, most=35)
    assert len(judge.asked) == 34
    assert [trial.kept for trial in trials] == [True, False, False, False]
    assert {trial.reason for trial in trials[1:]} == {
        "not tried: the limit of judgements is reached"
    }


def test_candidates_share_the_judgements_alike_where_there_is_more_than_each_needs() -> None:
    many = [structs.replace(SESSIONS[n % 40], id=f"many-{n}") for n in range(800)]
    marked = [structs.replace(SCORES[n % 40], session_id=one.id) for n, one in enumerate(many)]
    judge = PlacedJudge()
    PLACE.update((one.id, n % 40) for n, one in enumerate(many))
    try_rubrics(NAMED[:2], lambda _: iter(many), marked, judge, most_judgements=400)
    assert Counter(key for _, key in judge.asked) == {one.key: 200 for one in NAMED[:2]}


def test_with_too_few_unseen_sessions_nothing_is_tried_and_nothing_kept() -> None:
    few = [structs.replace(one, sessions=tuple(PLACE)[:35]) for one in NAMED]
    judge = PlacedJudge()
    trials = tried(few, judge)
    assert (judge.asked, [trial.kept for trial in trials]) == ([], [False] * 4)
    assert trials[0].reason == (
        "not tried: of those set aside, 8 that are done and checked and 3 that are partly or not "
        "done are missing"
    )
    efficient = [structs.replace(one, score_name="token_efficiency") for one in few]
    assert "too few sessions are set aside" in tried(efficient, judge)[0].reason


def test_a_trouble_that_is_a_part_of_the_score_is_not_offered() -> None:
    shared = rubric(avoids="avoids-interruption")
    (trial,) = tried([shared], PlacedJudge())
    assert (trial.kept, trial.reason) == (False, SHARED)


def test_what_was_judged_before_is_not_asked_again_and_a_failure_costs_no_other() -> None:
    known = list(evaluate_rubrics(SESSIONS, NAMED, PlacedJudge()))
    again = PlacedJudge()
    found = try_rubrics(NAMED, read, SCORES, again, known)
    assert again.asked == []
    assert found == try_rubrics(NAMED, read, SCORES, PlacedJudge())
    (trial,) = tried(NAMED[:1], PlacedJudge(fails_on=[SESSIONS[0].id]))
    assert (trial.failed, trial.effect) == (1, 1.0)


def test_too_few_sessions_say_how_many_are_missing_and_many_say_that_nothing_is_there() -> None:
    by_verdict, by_tokens, _ = searches_of([], SCORES, Split(by_week=False), 54)
    for few, least, most in ((by_verdict, 150, 250), (by_tokens, 300, 450)):
        assert few.mined + few.tried >= 39
        assert least < few.needed < most
    assert f"good sessions yet: {by_tokens.needed} more are needed for a large" in by_tokens.said
    good, bad = map(int, re.findall(r"(\d+) more that are", by_verdict.said))
    assert good + bad == by_verdict.needed
    one_sided = [structs.replace(SCORES[0], session_id=f"s{n}") for n in range(2_400)]
    search, efficiency, _ = searches_of([], one_sided, Split(by_week=False), 54)
    assert "0 more that are done and checked and" in search.said
    assert search.needed >= 96
    assert efficiency.needed == 0
    enough = "there are enough for a medium effect to show 4 times in 5, if"
    assert f"{enough} the best and the worst quarter" in efficiency.said
    both = [structs.replace(SCORES[-(n % 2)], session_id=f"s{n}") for n in range(2_400)]
    assert f"{enough} those set aside" in searches_of([], both, Split(by_week=False), 54)[0].said
    assert by_verdict.said in rubrics_markdown([], searches=[by_verdict])


def test_what_was_found_says_how_many_sessions_it_was_confirmed_on() -> None:
    efficient = [structs.replace(one, score_name="token_efficiency") for one in NAMED]
    trials = [*tried(NAMED, PlacedJudge(), most=35), *tried(efficient, PlacedJudge(), most=35)]
    by_verdict, by_tokens, _ = searches_of(trials, SCORES, Split(by_week=False), 30)
    assert (by_verdict.kept, by_tokens.kept) == (1, 1)
    assert f"confirmed on 34 of {by_verdict.tried} others" in by_verdict.said
    assert f"on 20 of the best and the worst of {by_tokens.tried} others" in by_tokens.said


def test_weeks_are_mined_or_set_aside_whole_once_there_are_enough() -> None:
    assert split_of([("2026-03-02", 500)]) == split_of([("2026-03-02", 39), ("2026-03-09", 50)])
    split = split_of([("2026-03-02", 41), ("2026-03-09", 50)])
    assert split.by_week
    weeks = [[split.mines(scores(session(n, weeks=w), 0.5)) for n in range(20)] for w in range(4)]
    assert [set(week) for week in weeks] == [{weeks[0][0]}, {not weeks[0][0]}] * 2


@given(st.lists(st.text(), min_size=300, max_size=300, unique=True))
def test_of_few_sessions_about_half_are_mined_whatever_they_are_called(ids: list[str]) -> None:
    rows = [structs.replace(SCORES[0], session_id=id_) for id_ in ids]
    assert 90 < sum(map(Split(by_week=False).mines, rows)) < 210


def test_everything_that_was_looked_at_counts_once() -> None:
    trials = try_rubrics(NAMED, read, SCORES, PlacedJudge())
    rows = [mined("plans-first", week) for week in ("2026-03-02", "2026-03-09")]
    assert looked_at(trials, rows, []) == 5
