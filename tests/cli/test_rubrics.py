"""``debrief rubrics`` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.lake import Lake
from debrief.rubrics.contrast import BUILT_IN
from debrief.rubrics.model import (
    ALL,
    RUBRICS,
    SEARCHES,
    Rubric,
    RubricSearch,
)
from debrief.rubrics.trial import Split, searches_of
from tests.rubrics.scenario import rubric

POOR = {
    "name": "Is Good and Fast",
    "description": "The AI should respond.",
    "scoring_criteria": "1: bad",
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"))
    told = rubric(1, held_out_effect=0.4, held_out_low=0.1, held_out_high=0.6, finding="tells")
    luck = rubric(2, name="Luck", finding="does_not_tell", held_out_effect=-0.2)
    made.write(RUBRICS, "excellence", [told, luck], Rubric)
    made.write(SEARCHES, ALL, searches_of(BUILT_IN, [], [], Split(by_week=True), 54), RubricSearch)
    return made


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, ["rubrics", *words])


def test_show_prints_rubrics_with_their_scale_and_what_unseen_sessions_say(lake: Lake) -> None:
    said = " ".join(typed("show", "--lake", lake.url).stdout.split())
    for words in (
        "rubric_001: Names the Place",
        "5 In every prompt",
        "Good means: lasting lines per prompt: how much was written, not how good it is",
        "Nothing distinguishes good sessions yet",
        "Luck",
        "On unseen sessions: does not tell good from bad.",
    ):
        assert words in said
    page = typed("show", "--lake", lake.url, "--format", "markdown").stdout
    assert "# Excellence" in page
    assert "| Names the Place | 1.00 | tells good from bad | +0.40 (+0.10 to +0.60) |" in page
    unknown = typed("show", "--lake", lake.url, "--score-name", "kindness")
    assert "'kindness' is not known" in " ".join(unknown.stderr.split())


def test_what_show_prints_as_json_can_be_linted(lake: Lake, tmp_path: Path) -> None:
    said = typed("show", "--lake", lake.url, "--format", "json").stdout
    assert [load["key"] for load in json.loads(said)["rubrics"]] == ["key-1", "key-2"]
    path = tmp_path / "rubrics.json"
    path.write_text(said)
    found = typed("lint", str(path), "--json")
    assert {mark["rule"] for mark in json.loads(found.stdout)} == {"overlap"}


def test_lint_marks_the_lakes_rubrics_and_any_file_and_ends_with_1(
    lake: Lake, tmp_path: Path
) -> None:
    own = typed("lint", "--lake", lake.url)
    assert (own.exit_code, "2 rubrics, 1 marks" in own.stdout) == (1, True)
    path = tmp_path / "poor.json"
    path.write_text(json.dumps([POOR]))
    found = typed("lint", str(path))
    assert found.exit_code == 1
    for rule in ("double-barrelled", "unanchored", "about-the-ai"):
        assert f"rubric_001: {rule}:" in found.stdout
    scale = {str(n): f"Does {'so ' * n}much" for n in range(1, 6)}
    fine = {
        "name": "Names Files",
        "description": "The user names files.",
        "scoring_criteria": scale,
    }
    path.write_text(json.dumps({"rubrics": [fine]}))
    assert typed("lint", str(path)).exit_code == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is no JSON"),
        ("{}", "holds no array of rubrics"),
        ('[{"description": "x"}]', "rubric 1: name: Field required"),
        ('[{"name": "x", "scoring_criteria": 5}]', "rubric 1: scoring_criteria"),
    ],
)
def test_a_file_that_holds_no_rubrics_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    found = typed("lint", str(path))
    assert found.exit_code == 1
    assert reason in " ".join(found.stderr.split())


def test_a_form_that_is_none_is_refused_with_those_that_there_are() -> None:
    found = typed("show", "--format", "pdf")
    assert found.exit_code == 2
    assert all(form in found.stderr for form in ("pdf", "text", "markdown", "json"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("show",), "holds no rubrics"),
        (("lint",), "holds no rubrics"),
        (("lint", "nowhere.json"), "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    words: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_LAKE", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    found = typed(*words)
    assert found.exit_code == 1
    assert reason in " ".join(found.stderr.split())
