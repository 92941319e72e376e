"""The order of sessions, the guards, what cannot be told, and the fit to labelled sessions."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from debrief.offline.success import (
    GROWS_WITH_LENGTH,
    LEAST,
    VALUES,
    SuccessTable,
    estimate,
    fit,
    shipped_table,
)
from hypothesis import given, settings
from msgspec.structs import replace

from debrief.lake.tables import schema_of
from debrief.offline.facts import Facts, facts_of
from debrief.scoring.model import SessionScores, SuccessEstimate
from debrief.sessions.model import Session
from debrief.validity.perturbations import PERTURBATIONS
from tests.offline.scenario import Story, steps, story_of

TABLE = shipped_table()


def of(session: Session, table: SuccessTable = TABLE) -> SuccessEstimate:
    return estimate(facts_of(session), table)


def work(
    calls: int = 12, ending: str = "The uploader waits and tries again, and a test says so."
) -> Story:
    story = Story().turn("Please fix the retry of the uploader. " * 8)
    for number in range(calls):
        story.say(f"I look at part {number} of the uploader.").run(f"cat part{number}.py", "x = 1")
    story.edit("upload.py", "send()", "retry(send)").run("pytest", "5 passed in 0.1s")
    return story.say(ending) if ending else story


def dialogue() -> Story:
    story = Story().turn("I want to cancel my order W1")
    for number in range(5):
        story.call("get_order_details", "{}", order_id=f"#W{number}2345")
        story.say(f"Order {number} is pending. Do you want to cancel it?").turn("Yes please.")
    story.call("cancel_pending_order", "{}", order_id="#W1")
    return story.say("It is cancelled and refunded.").turn("That is all, goodbye!")


@pytest.mark.parametrize("make", [work, dialogue], ids=["coding", "service"])
@pytest.mark.parametrize("change", PERTURBATIONS, ids=lambda change: change.name)
def test_what_must_move_moves(make: Callable[[], Story], change: object) -> None:
    session = make().session()
    changed = change.change(session, session)  # type: ignore[attr-defined]
    if changed is None or change.name == "work on another task":  # type: ignore[attr-defined]
        return
    before, after = of(session).order, of(changed).order
    assert before is not None
    assert after is not None
    assert after < before if change.must == "fall" else after <= before  # type: ignore[attr-defined]


def test_junk_does_not_close_what_broke_off() -> None:
    session = work(ending="").session()
    (junk,) = [each for each in PERTURBATIONS if "junk" in each.name]
    changed = junk.change(session, session)
    assert changed is not None
    assert (of(changed).order or 0) <= (of(session).order or 0)


@settings(deadline=None, max_examples=60)
@given(steps)
def test_courtesy_raises_no_session(given_steps: list[tuple[str, str]]) -> None:
    before = of(story_of(given_steps).session())
    story = story_of(given_steps).turn("Thanks anyway, you were very kind. Bye!")
    after = of(story.say("You're welcome.").session())
    assert (after.order is None) == (before.order is None)
    assert after.order is None or after.order <= (before.order or 0)


def test_a_guard_ranks_below_all_that_end_well() -> None:
    slow = work(calls=200)
    for number in range(40):
        slow.run(f"./step {number}", "error: no", "failed").say("Hmm, that still fails. Wait.")
    worst = of(slow.say("In the end it works: the uploader tries again.").session()).order
    for broken in (work(ending=""), work(ending="I was unable to solve this.")):
        order = of(broken.session()).order
        assert order is not None
        assert worst is not None
        assert order < worst


@pytest.mark.parametrize(
    ("story", "why"),
    [
        (Story().turn("What is a retry?").say("It is " + "a second try, " * 40), "what kind"),
        (
            Story()
            .turn("How does the upload work?")
            .run("cat a.py", "x")
            .say("It tries again. " * 20),
            "answer",
        ),
        (Story().turn("Fix it").run("ls", "a.py").say("ok"), "too little"),
    ],
)
def test_where_nothing_speaks_nothing_is_told(story: Story, why: str) -> None:
    estimated = of(story.session())
    assert why in estimated.cannot_tell
    assert (estimated.order, estimated.rank, estimated.probability) == (None, None, None)
    assert estimated.shown.startswith("cannot tell: ")


def test_before_labels_there_is_an_order_and_no_probability() -> None:
    estimated = of(work().session())
    assert (estimated.probability, estimated.low, estimated.high) == (None, None, None)
    assert estimated.rank is not None
    assert "likel" in estimated.shown
    assert "%" in estimated.shown


def test_every_reason_says_where_and_the_strongest_comes_first() -> None:
    reasons = of(work(ending="").session()).reasons
    assert reasons[0].text == "it breaks off without a closing answer"
    assert reasons[0].effect < 0
    assert reasons[0].evidence[0].call
    effects = [abs(reason.effect) for reason in reasons]
    assert effects == sorted(effects, reverse=True)


def test_the_shipped_table_says_what_it_was_fitted_on_and_holds_its_signs() -> None:
    for kind in (TABLE.coding, TABLE.service):
        assert kind.fitted_on
        assert kind.licence
        assert kind.sessions > 1_000
        assert len(kind.deciles) == 9
        assert kind.intercept is None
        assert set(kind.terms) <= set(VALUES)
        wrong = [
            n
            for n, t in kind.terms.items()
            if (t.weight > 0) != (n == "last_check_passed") and t.weight
        ]
        assert wrong == []
        rest = sum(abs(t.weight) for n, t in kind.terms.items() if n not in GROWS_WITH_LENGTH)
        assert abs(kind.terms["wrote"].weight) <= max(0.2, rest)


def test_an_estimate_is_a_column() -> None:
    assert "order" in str(schema_of(SessionScores).field("success").type)


@settings(deadline=None, max_examples=60)
@given(steps)
def test_any_session_has_an_order_or_a_reason_for_none(given_steps: list[tuple[str, str]]) -> None:
    estimated = of(story_of(given_steps).session())
    assert (estimated.order is None) == bool(estimated.cannot_tell)
    if estimated.order is not None:
        assert -20 < estimated.order < 5
        assert 0 <= (estimated.rank or 0) <= 1
    fitted = replace(TABLE.coding, intercept=0.0, covariance=())
    asked = of(story_of(given_steps).session(), SuccessTable(fitted, TABLE.service))
    if asked.probability is not None:
        assert 0 <= (asked.low or 0) <= asked.probability <= (asked.high or 0) <= 1


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
