"""The six templates, and how they are filled."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import ConfigurationError
from debrief.models.templates import VARIABLES, extractor_for, load_template, render


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_every_template_is_there_with_its_variables(name: str) -> None:
    text = load_template(name)
    assert all(f"{{{variable}}}" in text for variable in VARIABLES[name])


def test_the_extractor_is_chosen_by_score_name() -> None:
    names = ("excellence", "overall_quality", "User Turn-Efficiency", "something new")
    chosen = [extractor_for(name).removeprefix("rubric_extractor") for name in names]
    assert chosen == ["_excellence", "_excellence", "_user_turn_efficiency", ""]


def test_braces_in_a_session_are_never_taken_for_variables() -> None:
    hostile = "{rubric_name} {0} {__class__} {{chat_session}} ${X} %(score)s"
    values = {"rubric_name": "{scoring_criteria}", "rubric_description": "{chat_session}"}
    values |= {"scoring_criteria": "1: {rubric_name}", "chat_session": hostile}
    text = render(load_template("judge_template"), values)
    assert text.count(hostile) == 1
    assert "### {scoring_criteria}" in text


@given(
    st.dictionaries(st.sampled_from(["a", "b", "ab"]), st.text(max_size=20)), st.text(max_size=60)
)
def test_filling_is_one_pass_over_the_template_alone(values: dict[str, str], text: str) -> None:
    template = f"{text}|{{a}}|{{b}}|{{ab}}"
    filled = render(template, values)
    assert filled.endswith("|".join(values.get(k, f"{{{k}}}") for k in ("a", "b", "ab")))


def test_a_template_that_is_missing_or_lacks_a_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"judge_template\.txt: is not there"):
        load_template("judge_template", tmp_path)
    (tmp_path / "rubric_summarizer.txt").write_text("Merge them.", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"does not contain \{all_rubrics\}"):
        load_template("rubric_summarizer", tmp_path)
    (tmp_path / "rubric_extractor.txt").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        load_template("rubric_extractor", tmp_path)
