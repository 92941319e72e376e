"""Fitting the table to labelled sessions."""

from __future__ import annotations

import random

import pytest

from debrief.offline.facts import Facts
from debrief.offline.success import LEAST, SuccessTable, estimate, fit, shipped_table
from tests.offline.scenario import Story

PRIOR = shipped_table()


def facts(trouble: int, length: int = 10) -> Facts:
    story = Story().turn("Fix the retry of the uploader")
    for number in range(length):
        word = "Hmm, that still fails." if number < trouble else "I look at the next part of it."
        story.say(word).run(f"cat part{number}.py", "x = 1")
    story.edit("upload.py", "send()", "retry(send)")
    return story.say("The uploader waits and tries again, as was asked.").facts()


def labelled(count: int, seed: int = 1) -> tuple[list[Facts], list[bool], list[str]]:
    """Sessions of which those with much trouble failed, three in four times."""
    chance = random.Random(seed)
    rows, labels, tasks = [], [], []
    for number in range(count):
        trouble = chance.randrange(10)
        rows.append(facts(trouble))
        labels.append((trouble < 5) == (chance.random() < 0.75))
        tasks.append(f"task-{number % 20}")
    return rows, labels, tasks


def test_a_fit_gives_a_probability_with_an_interval_that_labels_narrow() -> None:
    few, many = fit(*labelled(30), PRIOR), fit(*labelled(300), PRIOR)
    one = facts(2)
    narrow, wide = estimate(one, many), estimate(one, few)
    for said in (narrow, wide):
        assert said.low is not None
        assert said.low < (said.probability or 0) < (said.high or 0)
    assert (narrow.high or 0) - (narrow.low or 0) < (wide.high or 0) - (wide.low or 0)
    assert (estimate(facts(0), many).probability or 0) > (estimate(facts(9), many).probability or 1)
    assert "likely (" in narrow.shown


def test_few_labels_move_a_weight_less_than_many() -> None:
    def moved(table: SuccessTable) -> float:
        return abs(table.coding.terms["doubts"].weight - PRIOR.coding.terms["doubts"].weight)

    assert moved(fit(*labelled(24), PRIOR)) < moved(fit(*labelled(300), PRIOR))


def test_no_weight_takes_the_wrong_sign_whatever_the_labels() -> None:
    rows, labels, tasks = labelled(100)
    table = fit(rows, [not label for label in labels], tasks, PRIOR)
    for name, term in table.coding.terms.items():
        assert term.weight >= 0 if name == "last_check_passed" else term.weight <= 0
    assert all(weight <= -0.5 for weight in table.coding.guards.values())


@pytest.mark.parametrize("labels", [[True] * 40, [True, False] * ((LEAST - 2) // 2)])
def test_too_few_labels_leave_the_table_as_it_was(labels: list[bool]) -> None:
    rows = [facts(number % 10) for number in range(len(labels))]
    table = fit(rows, labels, [str(n) for n in range(len(rows))], PRIOR)
    assert table.coding.intercept is None
    assert table.coding.terms == PRIOR.coding.terms


def test_the_base_rate_is_met() -> None:
    rows, labels, tasks = labelled(200)
    table = fit(rows, labels, tasks, PRIOR)
    said = [estimate(row, table).probability or 0 for row in rows]
    assert sum(said) / len(said) == pytest.approx(sum(labels) / len(labels), abs=0.02)
    assert (table.coding.sessions, table.coding.succeeded) == (200, sum(labels))


def test_sessions_of_one_task_tell_less_than_as_many_of_several() -> None:
    rows, labels, tasks = labelled(120)
    several = estimate(facts(3), fit(rows, labels, [str(n) for n in range(120)], PRIOR))
    alike = estimate(facts(3), fit(rows, labels, ["a" if good else "b" for good in labels], PRIOR))
    assert (alike.high or 0) - (alike.low or 0) > (several.high or 0) - (several.low or 0)
    assert tasks
