"""Rubrics as a Markdown page."""

from __future__ import annotations

from typing import Any

from debrief.rubrics.model import (
    RubricEvidence,
)
from debrief.rubrics.page import rubrics_markdown
from tests.markup import signs_of_life
from tests.rubrics.scenario import mined, rubric

HELD: dict[str, Any] = {
    "held_out_effect": 0.5,
    "held_out_low": 0.2,
    "held_out_high": 0.7,
    "held_out_sessions": 60,
    "corrected_p": 0.004,
    "finding": "tells",
}


def test_a_page_shows_scale_weight_effect_quotes_notes_and_marks() -> None:
    source = mined(
        "plans-first", evidence=(RubricEvidence(session_id="s-1", turn=2, quote="First the plan."),)
    )
    one = rubric(sources=(source.id,), notes="Merged from two.", **HELD)
    page = rubrics_markdown([one], extracted=[source])
    assert "# Excellence" in page
    assert (
        "| Names the Place | 1.00 | tells good from bad | +0.50 (+0.20 to +0.70) | 0.004 | 60 |"
        in page
    )
    assert "| 2 | Once, late |" in page
    assert "> “First the plan.” — session s-1, turn 2" in page
    assert "Merged from two." in page


def test_score_names_are_kept_apart_and_no_rubrics_are_said_plainly() -> None:
    hedged = rubric(score_name="token_efficiency", description="The user often names a file.")
    page = rubrics_markdown([rubric(), hedged])
    first, _, second = page.partition("# Token efficiency")
    assert first.startswith("# Excellence")
    assert '- hedged: words that two judges read differently: "often"' in second
    assert "- hedged" not in first
    assert "- overlap" not in page
    assert rubrics_markdown([]).startswith("No rubrics")


def test_markup_in_a_rubric_is_shown_and_never_active() -> None:
    hostile = "<img src=x onerror=alert(1)> [a](https://example.com) | `x` javascript:go"
    page = rubrics_markdown([rubric(name=hostile, description=hostile, scoring_criteria=hostile)])
    assert signs_of_life(page) == []
