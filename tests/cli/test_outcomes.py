"""``debrief outcomes``: from a file to the lake, to what is shown, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.sessions.model import Session
from tests.training.lakes import lake_of
from tests.training.scenario import session

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    home = {"DEBRIEF_HOME": str(tmp_path / "home"), "DEBRIEF_LABELS": None, "COLUMNS": "120"}
    lake = str(tmp_path / "lake")
    return lambda *given: CliRunner().invoke(app, [*given, "--lake", lake], env=home)


def sessions() -> list[Session]:
    return [session(f"session-{n}") for n in range(4)]


def test_a_csv_is_kept_shown_beside_the_scores_and_taken_back(tmp_path: Path, run: Run) -> None:
    lake_of(tmp_path / "lake", sessions())
    path = tmp_path / "labels.csv"
    path.write_text(
        "session_id,success\nsession-0,1\nsession-1,no\nsession-2,perhaps\nsession-3,yes\n"
    )
    told = run("outcomes", "--labels", "labels.csv")
    assert told.exit_code == 0
    assert re.search(r"^ *csv +3 +3 +2 +1 +0 *$", told.stdout, re.MULTILINE)
    assert "3 sessions with a known success: 2 yes, 1 no" in told.stdout
    assert f"{path}:4: success is 'perhaps', which is neither yes nor no" in told.stderr
    assert f"success: no (csv, {path}:3)" in run("show", "session-1").stdout
    as_json = json.loads(run("outcomes", "--json", "--forget", "labels.csv").stdout)
    assert as_json == {"labels": [], "success": {}, "problems": []}


def test_a_file_that_cannot_be_used_keeps_what_was_known(tmp_path: Path, run: Run) -> None:
    lake_of(tmp_path / "lake", sessions())
    path = tmp_path / "labels.csv"
    path.write_text("session_id,success\nsession-0,1\n")
    run("outcomes", "--labels", "labels.csv")
    path.write_text("session,success\nsession-0,1\n")
    told = run("outcomes", "--labels", "labels.csv")
    assert told.exit_code == 1
    assert "has no column session_id. Begin it: session_id,name,value" in told.stderr
    assert "1 session with a known success" in run("outcomes").stdout
