"""A run without a model names the program that could answer for one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.cli.offer import offer_of
from tests.models import stand_ins
from tests.models.stand_ins import StandIn
from tests.sessions.scanned import session, written


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder at the front of the search path, on a machine without a key."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    for name in ("OPENROUTER_API_KEY", "DEBRIEF_MODEL", "DEBRIEF_NO_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_the_offer_is_a_command_and_what_it_takes(here: Path) -> None:
    assert offer_of(140) == ""
    StandIn(here, "codex").says(stand_ins.codex())
    assert offer_of(140) == (
        "Codex is on this machine and answers without a key: debrief run --model codex "
        "(140 sessions, about 1.7 M tokens of its plan)."
    )
    assert offer_of(0) == ""


def test_a_run_without_model_and_key_ends_with_the_offer(here: Path, tmp_path: Path) -> None:
    import_module("pipelines.command")  # adds the command
    program = StandIn(here, "claude")
    program.says(stand_ins.claude())
    written(tmp_path / "sessions", session(1), session(2))
    arguments = ["run", "--sessions", str(tmp_path / "sessions"), "--lake", str(tmp_path / "lake")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code
    said = " ".join(done.output.split())
    assert "debrief run --model claude-code (2 sessions, about 24,000 tokens" in said
    assert program.asked == []
