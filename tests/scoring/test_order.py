"""The order: ranks among the person's own sessions, a fit to labels, noise."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from statistics import fmean

import pytest

from debrief.signals.extract import SessionKind, extract_signals
from debrief.scoring.order import (
    LEAST_AMONG,
    OrderedSession,
    fit,
    places_of,
    ranks_of,
    shipped_table,
    values_of,
)
from tests.signals.scenario import Story

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def row(
    number: int, kind: SessionKind = "coding", tool: str = "codex", **facts: float
) -> OrderedSession:
    quiet = dict.fromkeys(values_of(extract_signals(Story().turn("x").session())), 0.0)
    return OrderedSession(
        session_id=f"s{number}",
        started=MONDAY + timedelta(hours=number),
        tool=tool,
        kind=kind,
        facts=quiet | facts,
    )


def many(count: int = 60) -> list[OrderedSession]:
    return [row(n, corrections=n / count, closing=100.0 * n) for n in range(count)]


def test_below_twenty_of_a_tool_and_kind_there_is_no_place() -> None:
    assert places_of(many(LEAST_AMONG - 1)) == {}
    assert len(places_of(many(LEAST_AMONG))) == LEAST_AMONG
    split = [row(n, tool=f"t{n % 2}") for n in range(2 * LEAST_AMONG - 2)]
    assert places_of(split) == {}


def test_trouble_comes_first_with_its_facts() -> None:
    sessions = [row(n) for n in range(40)]
    sessions[-1] = row(39, corrections=2.0, broke_off=1.0)
    place = places_of(sessions)["s39"]
    assert place.look_first
    assert {fact.name for fact in place.facts[:3]} >= {"corrections", "broke_off"}
    assert all(fact.effect < 0 for fact in place.facts[:2])


def test_sessions_that_are_alike_stand_in_the_middle_and_none_is_to_be_looked_at() -> None:
    places = places_of([row(n) for n in range(50)])
    assert {place.place for place in places.values()} == {0.5}
    assert not any(place.look_first for place in places.values())


def test_a_session_is_compared_with_the_last_200_and_later_ones_do_not_move_it() -> None:
    sessions = many(230)
    before = places_of(sessions[:225])
    after = places_of(sessions)
    assert after["s210"] == before["s210"]
    assert after["s229"].among == 200


def test_rows_of_two_models_count_once() -> None:
    sessions = many(30)
    assert places_of(sessions * 2) == places_of(sessions)


def test_without_labels_there_is_no_probability() -> None:
    assert {place.probability for place in places_of(many()).values()} == {None}


def test_labels_turn_a_sign() -> None:
    sessions = many(80)
    done = {session.session_id: session.facts["corrections"] > 0.5 for session in sessions}
    table = fit(sessions, done, {}, shipped_table())
    places = places_of(sessions, table)
    assert table.coding.sessions == 80
    assert places["s79"].place > places["s0"].place
    chances = [places[f"s{n}"].probability or 0.0 for n in (0, 79)]
    assert chances[0] < 0.5 < chances[1]
    assert all(
        (place.low or 0) <= (place.probability or 0) <= (place.high or 0)
        for place in places.values()
    )
    assert table.service == shipped_table().service


@pytest.mark.parametrize("labels", [{}, {"s1": True}, {f"s{n}": True for n in range(60)}])
def test_too_few_labels_and_labels_of_one_kind_change_nothing(labels: dict[str, bool]) -> None:
    assert fit(many(), labels, {}) == shipped_table()


def test_labels_that_are_noise_give_probabilities_near_the_base_rate() -> None:
    draw = random.Random(3)
    sessions = many(200)
    done = {session.session_id: draw.random() < 0.5 for session in sessions}
    found = places_of(sessions, fit(sessions, done, {})).values()
    chances = [place.probability for place in found if place.probability is not None]
    assert sum(0.2 < chance < 0.8 for chance in chances) > 0.9 * len(chances)


def test_four_times_the_labels_halve_the_interval_of_a_probability() -> None:
    def width(count: int) -> float:
        draw = random.Random(3)
        done = {session.session_id: draw.random() < 0.5 for session in many(count)}
        found = places_of(many(count), fit(many(count), done, {})).values()
        return fmean((place.high or 0.0) - (place.low or 0.0) for place in found)

    assert 0.1 < width(200) < 0.2
    assert width(800) / width(200) == pytest.approx(0.5, abs=0.05)


def test_a_rank_is_the_share_that_has_less() -> None:
    ranks = ranks_of(many(20))
    assert ranks["s0"][0]["corrections"] == pytest.approx(0.5 / 20)
    assert ranks["s19"][0]["corrections"] == pytest.approx(19.5 / 20)


def test_checks_count_by_the_share_that_passed_and_not_by_their_number() -> None:
    story = Story().turn("Fix it.").edit("src/a.py", "x = 1", "x = 2")
    story.run("pytest", "1 failed in 0.1s", status="failed")
    once = values_of(extract_signals(story.run("pytest", "1 passed in 0.1s").session()))
    assert once["checks_passed"] == 0.5
    again = story.run("pytest", "1 failed in 0.1s", status="failed").run(
        "pytest", "1 passed in 0.1s"
    )
    assert values_of(extract_signals(again.session()))["checks_passed"] == 0.5
