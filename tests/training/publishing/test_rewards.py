"""Rewards: a task, what was done on it, and how good that was by one kind."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from debrief.scoring.verdict import VerdictName
from debrief.training.model import SampleLine, ScoreEntry, Split
from debrief.training.publishing.form import RewardKind, decoded, encoded
from debrief.training.publishing.rewards import REWARD_KINDS, RL, RewardCounts
from debrief.training.samples import encode_line
from tests.training.publishing.readers import problems
from tests.training.publishing.test_labels import UNDO
from tests.training.scenario import (
    call,
    line_of,
    metadata,
    outcome,
    said,
    says,
    scores,
    session,
    signals,
    turn,
)

WORK = session("s1", turn("Go.", says("Gone.")))


def rewarded(line: SampleLine, kind: RewardKind) -> dict[str, Any]:
    assert RL.convert is not None
    (made,) = RL.convert(replace(decoded(encode_line(line)), reward=kind))
    assert problems("rl", encoded(made)) == []
    return made


def test_a_trajectory_has_its_beginning_its_check_and_what_was_corrected() -> None:
    tested = call("Bash", {"command": "cd app && uv run pytest -q"}, "2 passed")
    linted = call("Bash", {"command": "ruff check"}, "ok")
    gone = call("Bash", {"command": "pytest -q && git commit -am Gone"}, "2 passed")
    turns = (turn("Go.", says("", linted), says("", tested, gone), says("Gone.")), UNDO)
    of = session("s1", *turns)
    line = line_of(of, metadata=metadata(of, base_commit="1" * 40), scores=scores(of, None))
    made = rewarded(line, "outcome")
    assert made["prompt"] == [{"role": "user", "content": "Go."}]
    assert made["environment"]["base_commit"] == "1" * 40
    assert made["environment"]["check"] == "cd app && uv run pytest -q"
    assert made["reward_model"]["ground_truth"] == made["environment"]["check"]
    assert made["reward"] is None, "a review is no outcome"
    assert made["corrected"] == [False, False, True, False]


@pytest.mark.parametrize("kind", REWARD_KINDS)
def test_a_reward_is_of_the_kind_that_was_asked_for_and_never_of_another(kind: RewardKind) -> None:
    line = line_of(WORK, scores=scores(WORK, 0.6), outcome=outcome(False))
    known = {"verdict": 0.0, "outcome": 0.0, "execution": None, "quality": 0.6}
    made = rewarded(line, kind)
    assert (made["reward"], made["reward_kind"]) == (known[kind], kind)
    assert made["reward_basis"] == "outcome"
    bare = line_of(WORK, scores=None, signals=signals(WORK))
    made = rewarded(bare, kind)
    assert (made["reward"], made["reward_basis"]) == (None, "")


@pytest.mark.parametrize(
    ("verdict", "reward"),
    [
        ("complete_verified", 1.0),
        ("complete_unverified", 1.0),
        ("partial", 0.0),
        ("failed", 0.0),
        ("undetermined", None),
    ],
)
def test_a_reward_by_verdict_is_for_what_is_complete(
    verdict: VerdictName, reward: float | None
) -> None:
    line = line_of(WORK, scores=scores(WORK, verdict=said(verdict)))
    made = rewarded(line, "verdict")
    assert (made["reward"], made["reward_basis"]) == (reward, "review")


def test_checks_that_were_run_again_are_an_outcome_of_their_own_source() -> None:
    line = line_of(WORK)
    ran = ScoreEntry(kind="outcome", name="success", value=1.0, category="execution")
    scored = (*line.metadata.scores, ran)
    again = replace(line, metadata=replace(line.metadata, scores=scored))
    assert rewarded(again, "execution")["reward"] == 1.0


def test_an_export_says_how_many_rewards_it_has_and_where_they_would_come_from() -> None:
    counts = RewardCounts("execution")
    lines: list[tuple[Split, dict[str, Any]]] = [("train", rewarded(line_of(WORK), "execution"))]
    assert list(counts.counted(iter(lines))) == lines
    assert (counts.known, counts.lines) == (0, 1)
    (warning,) = counts.warnings()
    assert warning.startswith("no line has a reward by execution: ")
