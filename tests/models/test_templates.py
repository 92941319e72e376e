"""The templates, a project's own before the shipped ones, and how they are filled."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import ConfigurationError
from debrief.models.templates import (
    VARIABLES,
    check_templates,
    extractor_for,
    load_template,
    render,
    version_of,
)


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


def test_an_own_template_wins_file_by_file_and_changes_the_version(tmp_path: Path) -> None:
    own = tmp_path / "rubric_extractor.txt"
    before = version_of("rubric_extractor", "rubric_summarizer", own=tmp_path)
    own.write_text("Mine: {chat_session} {extraction_min_rubrics} {extraction_max_rubrics}")
    assert load_template("rubric_extractor", tmp_path).startswith("Mine: ")
    assert load_template("rubric_summarizer", tmp_path) == load_template("rubric_summarizer")
    after = version_of("rubric_extractor", "rubric_summarizer", own=tmp_path)
    assert after != before == version_of("rubric_extractor", "rubric_summarizer")
    check_templates(tmp_path)


def test_an_own_template_that_lacks_a_variable_or_replaces_none_is_named(tmp_path: Path) -> None:
    own = tmp_path / "rubric_summarizer.txt"
    own.write_text("Merge them.", encoding="utf-8")
    for read in (check_templates, partial(load_template, "rubric_summarizer")):
        with pytest.raises(
            ConfigurationError, match=r"rubric_summarizer\.txt: does not contain \{all_rubrics\}"
        ):
            read(tmp_path)
    own.write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        check_templates(tmp_path)
    own.rename(tmp_path / "rubric_sumarizer.txt")
    with pytest.raises(ConfigurationError, match=r"rubric_sumarizer\.txt: replaces no template"):
        check_templates(tmp_path)
