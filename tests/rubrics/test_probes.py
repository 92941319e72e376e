"""Probes: planted biases are found with their size, and noise has none."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from debrief.judging.dspy_judge import DspyJudge
from debrief.judging.model import Judge
from debrief.models.language_model import LanguageModel
from debrief.rubrics.agreement import Agreement
from debrief.rubrics.agreement_report import agreement_markdown
from debrief.rubrics.measures import FRACTION, Measure
from debrief.rubrics.probes import Probe, calibrated, differences, order_probes, probes_of
from tests.judging.scenario import make_session
from tests.models.openai_server import Call, OpenAIServer, Reply, judged

IDS = [f"s{number:03}" for number in range(200)]


def measure(values: Mapping[str, float], by: str = "m/one-1") -> Measure:
    return Measure(
        kind="judge",
        name="care",
        judged_by=by,
        fingerprint="f1",
        scale=FRACTION,
        names=frozenset({"care"}),
        readings={id_: FRACTION.of(min(1.0, max(0.0, each))) for id_, each in values.items()},
    )


def probed(*measures: Measure, **known: Mapping[str, object]) -> list[Probe]:
    given: dict[str, Mapping[str, object]] = {"tasks": {}, "lengths": {}, "models": {}, **known}
    labels = {0: given.pop("labels", {})}
    return probes_of(measures, labels, given.pop("success", {}), **given)  # type: ignore[arg-type]


def test_labels_correct_a_score_that_is_in_order_and_too_high() -> None:
    drawn = random.Random(1)
    truths = {id_: drawn.random() for id_ in IDS}
    said = {id_: truth**0.25 for id_, truth in truths.items()}
    (row,) = probed(measure(said), labels=truths)
    assert (row.labels, row.labelled) == ("people", 200)
    assert row.brier_calibrated is not None
    assert row.brier is not None
    assert row.brier > 0.1
    assert row.brier_calibrated < 0.001
    assert (row.error_calibrated or 1) < 0.03 < (row.error or 0)
    worth = [value for _, value in row.calibration]
    assert worth == sorted(worth)


def test_a_score_that_is_always_a_fifth_too_high_is_so_far_off_and_set_right() -> None:
    truths = {id_: number / 250 for number, id_ in enumerate(IDS)}
    found = calibrated({id_: truth + 0.2 for id_, truth in truths.items()}, truths, {})
    assert (found["brier"], found["error"]) == pytest.approx((0.04, 0.2))
    assert found["brier_calibrated"] < 0.0001
    assert found["error_calibrated"] < 0.01
    assert dict(found["calibration"])[0.2] == 0.0


def test_labels_that_have_nothing_to_do_with_the_score_promise_nothing() -> None:
    gains = []
    for seed in range(20):
        drawn = random.Random(seed)
        truths = {id_: float(drawn.random() < 0.5) for id_ in IDS}
        found = calibrated({id_: drawn.random() for id_ in IDS}, truths, {})
        gains.append(0.25 - found["brier_calibrated"])
    assert max(gains) < 0.02


def test_what_is_known_of_a_task_is_not_known_of_another() -> None:
    drawn = random.Random(3)
    tasks = {id_: f"t{number // 4}" for number, id_ in enumerate(IDS)}
    solved = {task: float(drawn.random() < 0.5) for task in sorted(set(tasks.values()))}
    marks = {task: drawn.random() for task in sorted(set(tasks.values()))}
    said, truths = ({id_: of[tasks[id_]] for id_ in IDS} for of in (marks, solved))
    assert calibrated(said, truths, tasks)["brier_calibrated"] > 0.24
    assert calibrated(said, truths, dict.fromkeys(IDS, "one task")) == {}
    few = {id_: truths[id_] for id_ in IDS[:19]}
    assert calibrated(said, few, tasks) == {}


def test_success_stands_in_where_nobody_labelled() -> None:
    said = {id_: number / 200 for number, id_ in enumerate(IDS)}
    success = {id_: value > 0.5 for id_, value in said.items()}
    (row,) = probed(measure(said), success=success)
    assert (row.labels, row.labelled) == ("success", 200)
    assert (row.brier_calibrated or 1) < 0.02


def test_a_score_that_goes_by_length_is_found_and_one_that_goes_by_the_work_is_not() -> None:
    drawn = random.Random(5)
    truths = {id_: drawn.random() for id_ in IDS}
    lengths = {id_: round(1_000 * (truths[id_] + drawn.random())) + 1 for id_ in IDS}
    long = {id_: lengths[id_] / 2_001 for id_ in IDS}
    honest = {id_: truths[id_] * 0.8 + drawn.random() * 0.2 for id_ in IDS}
    (by_length,) = probed(measure(long), labels=truths, lengths=lengths)
    (by_work,) = probed(measure(honest), labels=truths, lengths=lengths)
    (unlabelled,) = probed(measure(honest), lengths=lengths)
    assert (by_length.length_low or 0) > 0.9
    assert (by_work.length_low or 1) < 0 < (by_work.length_high or -1)
    assert (unlabelled.length_low or 0) > 0.4
    (praised,) = probed(measure(honest), labels=dict.fromkeys(IDS, 1.0), lengths=lengths)
    assert praised.length == unlabelled.length


def test_a_model_that_likes_its_own_kind_is_found_and_a_kind_one_is_not() -> None:
    drawn = random.Random(7)
    truths = {id_: 0.2 + drawn.random() / 2 for id_ in IDS}
    models = {
        id_: f"vendor/{'gpt-6' if place % 2 else 'claude-7'}" for place, id_ in enumerate(IDS)
    }
    fond = {id_: truths[id_] + 0.2 * ("gpt" in models[id_]) for id_ in IDS}
    kind = {id_: truths[id_] + 0.2 for id_ in IDS}
    noisy = {id_: truths[id_] + drawn.gauss(0, 0.05) for id_ in IDS}
    other = measure(noisy, "openrouter/x-ai/grok-5")
    own = [probed(measure(said, "openai/gpt-5"), other, models=models)[0] for said in (fond, kind)]
    assert own[0].own == pytest.approx(0.2, abs=0.02)
    assert (own[0].own_low or 0) > 0.15
    assert (own[1].own_low or 1) < 0 < (own[1].own_high or -1)
    assert probed(measure(fond, "openai/gpt-5"), measure(noisy, "offline"), models=models) == []
    unknown = {id_: model if "gpt" in model else "" for id_, model in models.items()}
    assert probed(measure(fond, "openai/gpt-5"), other, models=unknown) == []
    renamed = {id_: m.replace("vendor/claude", "us.anthropic.claude") for id_, m in models.items()}
    claude = measure(
        {id_: truths[id_] + 0.2 * ("claude" in models[id_]) for id_ in IDS}, "x/claude"
    )
    assert probed(claude, other, models=renamed)[0].own == pytest.approx(0.2, abs=0.02)


def test_two_models_are_held_against_each_other_and_the_offline_evaluator_is_left_out() -> None:
    said = {id_: 0.1 + (number % 5) / 5 for number, id_ in enumerate(IDS)}
    higher = {id_: value + 0.1 for id_, value in said.items()} | {"s003": 0.0}
    (found,) = differences([measure(higher, "b"), measure(said, "a"), measure(said, "offline")])
    assert (found.models, found.sessions) == (("a", "b"), 200)
    assert found.mean == pytest.approx(0.1, abs=0.01)
    assert found.farthest[0][0] == "s003"
    assert found.farthest[0][1:] == pytest.approx((0.7, 0.0))
    assert found.kappa is not None
    assert 0.7 < found.kappa.low < found.kappa.high < 0.9
    page = agreement_markdown(
        Agreement(rows=(), labels=0, matched=0, unmatched=(), problems=(), differences=(found,))
    )
    assert "## Where two models differ" in page
    assert "| judge care | a, b | 200 |" in page
    assert "s003 0.70 and 0.00" in page


def by_order(call: Call) -> Reply:
    """A judge that likes what it reads last, and is not sure of anything."""
    changes_last = call.user.index("The plan.") < call.user.index("1 file changed")
    return Reply(judged(0.6 + 0.01 * (call.number % 3) + 0.2 * changes_last, "Fine work."))


def test_a_judge_that_goes_by_the_order_moves_more_than_one_that_is_asked_again() -> None:
    care = Judge(name="care", weight=1.0, model="openai/tiny", body="Look for care.")
    edit = ("a.py", "@@ -1,1 +1,1 @@\n-a = 1\n+a = 2\n")
    sessions = [make_session(edit, id=f"s{n}", prompt="The plan.") for n in range(4)]
    with OpenAIServer(by_order) as server:
        model = LanguageModel("openai/tiny", api_key="k", base_url=server.url)
        (row,) = order_probes(sessions, [care], DspyJudge(lambda _: model))
        assert len(server.calls) == 12
        server.reply = lambda call: Reply(judged(0.5))
        (even,) = order_probes(sessions, [care], DspyJudge(lambda _: model))
    assert (row.judge, row.judged_by, row.sessions) == ("care", "openai/tiny", 4)
    assert row.repeated < 0.03
    assert row.turned == pytest.approx(0.2, abs=0.03)
    assert row.shift == pytest.approx(-0.2, abs=0.03)
    assert (even.repeated, even.turned, even.shift) == (0, 0, 0)
