"""Rubrics as a page."""

from __future__ import annotations

from debrief.rubrics.linting import Mark
from debrief.rubrics.model import Evidence
from debrief.rubrics.page import plain, rubrics_markdown
from tests.rubrics.scenario import mined, rubric


def test_a_page_shows_scale_weight_effect_quotes_notes_and_marks() -> None:
    source = mined(
        "plans-first", evidence=(Evidence(session_id="s-1", turn=2, quote="First the plan."),)
    )
    one = rubric(effect_size=0.5, sources=(source.id,), notes="Found in 2 of 3 weeks.")
    page = rubrics_markdown(
        [one], extracted=[source], marks=[Mark("rubric_001", "hedged", "often")]
    )
    assert "# Excellence" in page
    assert "| Names the Place | 1.00 | +0.50 | 0 |" in page
    assert "| 2 | Once, late |" in page
    assert "> “First the plan.” — session s-1, turn 2" in page
    assert "Found in 2 of 3 weeks." in page
    assert "- hedged: often" in page


def test_score_names_are_kept_apart_and_no_rubrics_are_said_plainly() -> None:
    page = rubrics_markdown([rubric(), rubric(score_name="token_efficiency")])
    assert page.index("# Excellence") < page.index("# Token efficiency")
    assert rubrics_markdown([]).startswith("No rubrics")


def test_markup_in_a_rubric_is_shown_and_never_active() -> None:
    hostile = "<img src=x onerror=alert(1)> [a](https://example.com) | `x` javascript:go"
    page = rubrics_markdown([rubric(name=hostile, description=hostile, scoring_criteria=hostile)])
    assert "<img" not in page
    assert "[a](" not in page
    assert "https://" not in page
    assert "javascript:" not in page
    assert plain("a\n# b") == "a \\# b"
