"""Noise in, nothing found; a real effect is found."""

from __future__ import annotations

import random

from debrief.rubrics.offline_miner import false_discoveries, look_at, search
from debrief.scoring.model import SCORE_NAMES
from tests.rubrics.scenario import BAD, GOOD, scores, session

WORDS = ("Add a menu", "The menu should close", "thanks", "no, that is wrong", "see app/menu.py",
         "because people get lost", "run the tests", "don't touch the styles", "hm")  # fmt: skip
CHANCE = random.Random(7)
NOISE = [session(n, CHANCE.sample(WORDS, CHANCE.randint(1, 6)), weeks=n % 6) for n in range(120)]
DEALT = [scores(one, CHANCE.random()) for one in NOISE]


def test_shuffled_scores_give_no_rubric_in_nearly_all_shuffles() -> None:
    found = false_discoveries(list(zip(NOISE, DEALT, strict=True)), shuffles=50)
    assert found.true == dict.fromkeys(SCORE_NAMES, 0)
    assert found.share <= 0.04
    assert len(found.shuffled) == 50


def test_an_effect_in_sixty_of_a_hundred_and_twenty_sessions_is_found() -> None:
    sessions = [session(n, GOOD if n < 60 else BAD, weeks=n % 6) for n in range(120)]
    rows = [
        scores(one, 0.5 + CHANCE.gauss(0.1 if n < 60 else -0.1, 0.1))
        for n, one in enumerate(sessions)
    ]
    seen = {one.id: look_at(one) for one in sessions}
    kept = {t.key: t for t in search(list(zip(sessions, rows, strict=True)), seen) if t.kept}
    assert {"names-the-place", "states-the-result"} <= set(kept)
    assert all((trial.low or 0) > 0 for trial in kept.values())
