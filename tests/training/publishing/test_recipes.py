"""The recipes of the page about training sets, as ``make test-trainers`` takes them from there."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.training.publishing.forms import FORMS
from tools.trainers.recipes import Recipe, recipes


def test_every_form_that_is_for_a_trainer_has_a_recipe() -> None:
    assert {recipe.form for recipe in recipes().values()} == FORMS.keys() - {"messages"}


@pytest.mark.parametrize("recipe", recipes().values(), ids=lambda one: one.trainer)
def test_a_recipe_reads_what_its_command_writes(recipe: Recipe, tmp_path: Path) -> None:
    command = shlex.split(recipe.export)
    target = command[command.index("--to") + 1]
    assert target in recipe.text
    text = recipe.text
    if recipe.trainer == "ms-swift":
        assert shlex.split(text)[:2] == ["swift", "sft"]
    elif "import" in text:
        ast.parse(text)
    else:
        assert isinstance(yaml.safe_load(text), dict)
    ran = CliRunner().invoke(app, [*command[1:], "--lake", str(tmp_path)])
    assert "holds no training set" in ran.output, "its options are known"
