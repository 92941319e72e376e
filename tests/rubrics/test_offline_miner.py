"""Mining a week by contrast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from debrief.rubrics.asking import stands
from debrief.rubrics.model import ExtractedRubric
from debrief.rubrics.offline_miner import ExtractionOptions, OfflineMiner
from debrief.sessions.model import Session
from tests.rubrics.scenario import BAD, GOOD, WEEK, a_week, scores, session


def mine(
    *given: Any, options: ExtractionOptions | None = None, **earlier: Any
) -> list[ExtractedRubric]:
    return list(OfflineMiner(options).extract(*given, **earlier).rubrics)


def test_what_the_good_sessions_do_is_found_with_evidence_that_stands() -> None:
    sessions, rows = a_week(12, 12)
    found = mine(sessions, rows, "excellence", WEEK)
    habits = {rubric.habit for rubric in found}
    assert {"names-the-place", "sets-limits", "needs-no-corrections"} <= habits
    by_id = {one.id: one for one in sessions}
    for rubric in found:
        assert rubric.id == f"{WEEK}.excellence.{rubric.habit}"
        assert rubric.evidence
        assert all(stands(piece, by_id[piece.session_id]) for piece in rubric.evidence)
        assert rubric.effect_size is not None
        assert rubric.effect_size >= 0.33
        assert "strong evidence" in rubric.notes
        assert rubric.held_out_effect is not None


def test_mining_again_gives_the_same_rubrics_in_whatever_order_the_sessions_come() -> None:
    sessions, rows = a_week(6, 6)
    first = mine(sessions, rows, "excellence", WEEK)
    assert mine(sessions[::-1], rows[::-1], "excellence", WEEK) == first
    assert first


def test_sessions_that_are_all_alike_prove_nothing() -> None:
    sessions = [session(n, GOOD) for n in range(24)]
    rows = [scores(one, n / 24) for n, one in enumerate(sessions)]
    found = OfflineMiner().extract(sessions, rows, "excellence", WEEK)
    assert found.rubrics == ()
    reasons = {row.name: row.reason for row in found.dropped}
    assert reasons["Names the Place"] == "too small an effect"


def test_a_habit_that_the_worst_sessions_show_more_is_not_made_a_rubric() -> None:
    sessions, rows = a_week(12, 12)
    turned = [
        scores(one, 1 - (row.overall_quality or 0)) for one, row in zip(sessions, rows, strict=True)
    ]
    found = OfflineMiner().extract(sessions, turned, "excellence", WEEK)
    assert not {"names-the-place", "states-the-result"} & {row.habit for row in found.rubrics}
    reasons = {row.name: row.reason for row in found.dropped}
    assert reasons["Names the Place"] == "the worst sessions show it more"


def test_scores_without_relation_to_habits_are_not_confirmed_by_both_halves() -> None:
    prompts = [GOOD if n % 4 in (0, 3) else BAD for n in range(40)]
    sessions = [session(n, said) for n, said in enumerate(prompts)]
    rows = [scores(one, 1 - n / 40) for n, one in enumerate(sessions)]
    assert mine(sessions, rows, "excellence", WEEK) == []


def test_a_small_week_borrows_from_the_weeks_before_and_says_so() -> None:
    own, own_rows = a_week(2, 3, weeks=1)
    week = "2026-03-09"
    assert mine(own, own_rows, "excellence", week) == []
    earlier, earlier_rows = a_week(5, 5)
    found = mine(own, own_rows, "excellence", week, earlier=earlier, earlier_scores=earlier_rows)
    assert found
    assert all("10 of the sessions are from the weeks before" in rubric.notes for rubric in found)
    assert all(rubric.evidence[0].session_id.startswith("session-1-") for rubric in found)


def test_a_week_that_reaches_neither_end_says_nothing_new() -> None:
    own = [session(1, ("please look",), weeks=1)]
    earlier, earlier_rows = a_week(10, 10)
    rows = [scores(own[0], 0.5)]
    assert not mine(
        own, rows, "excellence", "2026-03-09", earlier=earlier, earlier_scores=earlier_rows
    )


def test_a_large_week_does_not_look_at_earlier_sessions() -> None:
    sessions, rows = a_week(10, 10)

    looked_at: list[str] = []

    def earlier() -> Iterator[Session]:
        looked_at.append("sessions")
        yield session(1, weeks=-1)

    found = mine(sessions, rows, "excellence", WEEK, earlier=earlier())
    assert found
    assert looked_at == []


def test_sessions_without_a_prompt_or_a_score_are_left_out() -> None:
    sessions, rows = a_week(6, 6)
    silent = session(90, ())
    unscored = session(91, GOOD)
    more_rows = [*rows, scores(silent, 1.0), scores(unscored, None, status="failed")]
    with_them = mine([*sessions, silent, unscored], more_rows, "excellence", WEEK)
    assert with_them == mine(sessions, rows, "excellence", WEEK)


def test_share_and_minimum_are_chosen_by_the_caller() -> None:
    sessions, rows = a_week(6, 6)
    options = ExtractionOptions(share=0.5, minimum=6)
    found = mine(sessions, rows, "excellence", WEEK, options=options)
    assert {(rubric.best_count, rubric.worst_count) for rubric in found} == {(6, 6)}
    options = ExtractionOptions(minimum=7)
    assert mine(sessions, rows, "excellence", WEEK, options=options) == []
