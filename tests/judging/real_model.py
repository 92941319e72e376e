"""The project's own judges, asked for real: ``make test-model``, with OPENROUTER_API_KEY set.

Costs less than a cent. Not collected by ``make test``, which asks no model.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.content import folder
from debrief.judging.model import load_judges
from tests.judging.repository import PLAN_ID, make_repository, work


def test_the_projects_judges_are_answered_by_the_model_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dspy

    key = os.environ.get("DEBRIEF_TEST_OPENROUTER_KEY")
    if not key:
        pytest.fail("this test asks a real model: OPENROUTER_API_KEY=… make test-model")
    monkeypatch.setenv("OPENROUTER_API_KEY", key)
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    work(make_repository(tmp_path / "shop"))
    done = CliRunner().invoke(app, ["eval", PLAN_ID, "--repo", str(tmp_path / "shop")])
    assert done.exit_code == 0, done.output
    assert "Weighted average" in done.stdout
    shown = io.StringIO()
    dspy.inspect_history(n=2, file=shown)
    for judge in load_judges(folder("judges")):
        assert judge.body.strip().splitlines()[-1] in shown.getvalue()
        assert judge.name in done.stdout
    assert shown.getvalue().count("feedback") >= 2
