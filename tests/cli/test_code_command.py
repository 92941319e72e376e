"""What ``debrief code`` writes of a session: its prompts and its metadata."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.snapshots.captures import read_prompts
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from tests.machine import files_below
from tests.snapshots.scenario import PROMPTS, agent_command, repository, write


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    for name in ("CLAUDE_CONFIG_DIR", "DEBRIEF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEBRIEF_CLAUDE_COMMAND", agent_command(tmp_path))
    monkeypatch.setenv("DEBRIEF_DROID_COMMAND", agent_command(tmp_path))
    shop = repository(tmp_path / "shop", {**PROMPTS, "AGENTS.md": "Be brief.\n"})
    write(shop, {".debrief/plans/retries.md": "# Retries\n"})
    monkeypatch.chdir(shop)
    return shop


def metadata_of_code(shop: Path, *options: str) -> dict[str, Any]:
    """Carry the plan out; return the session's metadata."""
    done = CliRunner().invoke(app, ["code", "retries", *options])
    assert done.exit_code == 0, done.output
    found = json.loads((shop / ".debrief/sessions/retries/metadata.json").read_bytes())
    assert isinstance(found, dict)
    return found


def test_code_command_writes_prompts_directory(shop: Path) -> None:
    metadata_of_code(shop, "--model", "sonnet")
    written = files_below(shop / ".debrief/sessions/retries/prompts")
    assert {name: text.decode() for name, text in written.items()} == {
        "main.md": PROMPTS["CLAUDE.md"],
        "reviewer.md": PROMPTS[".claude/agents/reviewer.md"],
        "tester.md": PROMPTS[".claude/agents/tester.md"],
    }


def test_code_command_writes_metadata_json(shop: Path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    found = metadata_of_code(shop, "--model", "sonnet")
    assert {"tool", "model", "recorded_at", "prompt_fingerprint"} <= set(found)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["recorded_at"])
    assert before <= datetime.fromisoformat(found["recorded_at"]) <= datetime.now(UTC)


def test_code_command_metadata_includes_prompt_fingerprint(shop: Path) -> None:
    found = metadata_of_code(shop)
    prompts = read_prompts(shop / ".debrief/sessions/retries/prompts")
    assert prompts is not None
    assert found["prompt_fingerprint"] == compute_prompt_fingerprint(prompts)


@pytest.mark.parametrize(
    ("tool", "model", "prompts"),
    [
        pytest.param("claude-code", "sonnet", 3, id="claude-code/sonnet"),
        pytest.param("claude-code", "opus", 3, id="claude-code/opus"),
        pytest.param("droid", None, 1, id="droid/None"),
    ],
)
def test_code_command_metadata_tool_model_combinations(
    shop: Path, tool: str, model: str | None, prompts: int
) -> None:
    found = metadata_of_code(shop, "--tool", tool, *(["--model", model] if model else []))
    assert (found["tool"], found["model"]) == (tool, model)
    assert len(files_below(shop / ".debrief/sessions/retries/prompts")) == prompts
