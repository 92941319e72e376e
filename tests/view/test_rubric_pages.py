"""Rubrics in the pages: what unseen sessions say, and who speaks for and against them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.lake import Lake
from debrief.rubrics.contrast import BUILT_IN
from debrief.rubrics.model import (
    ALL,
    EVALUATIONS,
    EXTRACTED,
    RUBRICS,
    SEARCHES,
    ExtractedRubric,
    Rubric,
    RubricEvaluation,
    RubricEvidence,
    RubricSearch,
)
from debrief.rubrics.trial import Split, searches_of
from debrief.sessions.model import Evidence
from debrief.settings import Settings
from tests.rubrics.scenario import mined, rubric
from tests.view.shown import MONDAY, fill, served, session_of, settings_of, words

HOSTILE = "</blockquote><script>alert(1)</script>\x1b[31m"
WEEK = f"{MONDAY:%Y-%m-%d}"
HELD = rubric(
    1,
    key="asks-for-proof",
    name="Asks for Proof",
    sources=("mined",),
    sessions=("seen",),
    held_out_effect=0.5,
    held_out_low=0.2,
    held_out_high=0.7,
    held_out_sessions=60,
    corrected_p=0.004,
    finding="tells",
)
SESSIONS = {  # quality, and the level on the rubric
    "good-shows": (0.9, 5),
    "bad-does-not": (0.2, 1),
    "bad-shows": (0.3, 4),
    "good-middling": (0.8, 3),
    "seen": (0.95, 5),
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_of(tmp_path)
    lake = Lake(settings.lake)
    made = {name: session_of(name, f"Fix {name}") for name in SESSIONS}
    fill(lake, [(made[name], quality) for name, (quality, _) in SESSIONS.items()])
    rows = [
        RubricEvaluation(
            session_id=name,
            session_digest="d",
            started=MONDAY,
            score_name="excellence",
            rubric_id="rubric_001",
            rubric_key="asks-for-proof",
            rubric_digest="d",
            model="opus",
            status="ok",
            score=level,
            reasoning=f"The user asks (turn 1: “{HOSTILE}”).",
            evidence=(Evidence(1, "", HOSTILE),),
        )
        for name, (_, level) in SESSIONS.items()
    ]
    lake.write(EVALUATIONS, WEEK, rows, RubricEvaluation)
    proof = RubricEvidence(session_id="seen", turn=1, quote=HOSTILE)
    lake.write(
        EXTRACTED, WEEK, [replace(mined("x"), id="mined", evidence=(proof,))], ExtractedRubric
    )
    luck = rubric(
        2, name=f"Luck {HOSTILE}", held_out_effect=0.1, held_out_low=-0.2, held_out_high=0.4,
        corrected_p=0.6, held_out_sessions=40, finding="too_few",
    )  # fmt: skip
    untested = rubric(3, name="Untested", finding_reason="not tested: too few")
    lake.write(RUBRICS, "excellence", [HELD, luck, untested], Rubric)
    lake.write(SEARCHES, ALL, searches_of(BUILT_IN, [], [], Split(by_week=True), 54), RubricSearch)
    return settings


def test_every_rubric_stands_with_what_unseen_sessions_say(settings: Settings) -> None:
    with served(settings) as client:
        shown = words(client.get("/rubrics").text)
        for text in (
            "tells good from bad Asks for Proof",
            "+0.50 (+0.20 to +0.70) on 60 unseen sessions · p 0.004",
            "too few to tell Luck",
            "too few to tell Untested",
            "not tested: too few",
        ):
            assert text in shown
        candidate = words(client.get("/rubrics/excellence/key-2").text)
        assert "too few to tell +0.10 (-0.20 to +0.40) on 40 unseen sessions · p 0.600" in candidate
        assert client.get("/rubrics/excellence/nothing").status_code == 404
        assert client.get("/rubrics/token_efficiency/asks-for-proof").status_code == 404


def test_unseen_sessions_speak_for_a_rubric_or_against_it(settings: Settings) -> None:
    with served(settings) as client:
        page = client.get("/rubrics/excellence/asks-for-proof").text
    on_each_side = re.search(
        r"<h3>2 for</h3>(.*)<h3>1 against</h3>(.*)What it was mined", page, re.S
    )
    assert on_each_side
    linked = [re.findall(r'class="title" href="([^"]*)"', side) for side in on_each_side.groups()]
    assert linked == [
        ["/sessions/good-shows#turn-1", "/sessions/bad-does-not#turn-1"],
        ["/sessions/bad-shows#turn-1"],
    ]
    assert "What 4 unseen sessions say of it" in page
    assert '<a href="/sessions/seen#turn-1">Fix seen</a>, turn 1' in page


def test_hostile_words_are_shown_and_not_obeyed(settings: Settings) -> None:
    with served(settings) as client:
        for address in (
            "/rubrics",
            "/rubrics/excellence/asks-for-proof",
            "/rubrics/excellence/key-2",
        ):
            text = client.get(address).text
            assert "<script>alert" not in text
            assert "&lt;/blockquote&gt;&lt;script&gt;alert(1)&lt;/script&gt;\ufffd[31m" in text
