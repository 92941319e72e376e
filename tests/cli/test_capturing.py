from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.snapshots.hook import hook_command, install
from tests.snapshots.scenario import agent_command, git, repository, write

runner = CliRunner()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    for name in ("CLAUDE_CONFIG_DIR", "DEBRIEF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEBRIEF_CLAUDE_COMMAND", agent_command(tmp_path))
    shop = repository(tmp_path / "shop")
    write(shop, {".debrief/plans/retries.md": "# Retries\n"})
    monkeypatch.chdir(shop)
    return shop


def test_code_carries_a_plan_out_and_files_the_session(shop: Path) -> None:
    done = runner.invoke(app, ["code", "retries", "--model", "opus", "--", "--print"])
    assert done.exit_code == 0, done.output
    seen = json.loads((shop.parent / "seen.json").read_bytes())
    assert seen["arguments"][:3] == ["--model", "opus", "--print"]
    metadata = json.loads((shop / ".debrief/sessions/retries/metadata.json").read_bytes())
    assert metadata["session_id"] in done.stderr
    assert metadata["prompt_fingerprint"] in done.stderr


def test_code_passes_the_tools_exit_code_on(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_CLAUDE_COMMAND", agent_command(shop.parent, "silent"))
    done = runner.invoke(app, ["code", "retries"])
    assert done.exit_code == 3
    assert "left no transcript" in done.stderr


REFUSED = {
    "a plan id that leads elsewhere": (["code", "../x"], "is no plan id"),
    "a plan that is not there": (["code", "queue"], "was not found"),
    "a tool that is not known": (["code", "retries", "--tool", "emacs"], "is not known"),
    "a model that is an option": (["code", "retries", "--model", "--yolo"], "is no model's name"),
    "a folder in no repository": (["code", "retries", "--repo", "/"], "lies in no git repository"),
    "a tool that is not installed": (["code", "retries", "--tool", "droid"], "is not installed"),
}


@pytest.mark.parametrize(("arguments", "reason"), REFUSED.values(), ids=REFUSED)
def test_code_refuses_in_one_line_before_it_writes_anything(
    shop: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], reason: str
) -> None:
    monkeypatch.setenv("DEBRIEF_DROID_COMMAND", "/nowhere/droid")
    done = runner.invoke(app, arguments)
    assert done.exit_code == 1
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (shop / ".debrief/sessions").exists()
    assert not (shop.parent / "seen.json").exists()


def test_the_hook_is_installed_told_about_and_removed(shop: Path) -> None:
    status = runner.invoke(app, ["hooks", "status"])
    assert status.exit_code == 1
    assert "not installed" in status.stdout
    done = runner.invoke(app, ["hooks", "install"])
    assert done.exit_code == 0, done.output
    path = shop / ".claude/settings.local.json"
    hook = json.loads(path.read_bytes())["hooks"]["SessionStart"][0]["hooks"][0]
    event = {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": str(shop)}
    subprocess.run(["sh", "-c", hook["command"]], input=json.dumps(event).encode(), check=True)
    assert (shop / ".debrief/sessions/s1/prompts/reviewer.md").is_file()
    assert not git(shop, "status", "--porcelain", "--", ".claude"), "nothing to commit"
    status = runner.invoke(app, ["hooks", "status", "--repo", str(shop)])
    assert status.exit_code == 0
    assert f"{path}: installed" in status.stdout
    assert runner.invoke(app, ["hooks", "remove"]).exit_code == 0
    assert not path.exists()
    assert git(shop, "status", "--porcelain", "--untracked-files=all") == (
        "?? .debrief/plans/retries.md"
    )


def test_a_hook_in_the_file_that_is_committed_is_moved_to_this_machine_s_own(shop: Path) -> None:
    shared, own = shop / ".claude/settings.json", shop / ".claude/settings.local.json"
    write(shop, {".claude/settings.json": '{"model": "opus"}\n'})
    install(shared, hook_command())
    assert runner.invoke(app, ["hooks", "install"]).exit_code == 0
    assert json.loads(shared.read_bytes()) == {"model": "opus"}
    assert "SessionStart" in json.loads(own.read_bytes())["hooks"]


def test_the_hook_can_be_installed_for_every_repository(shop: Path) -> None:
    assert runner.invoke(app, ["hooks", "install", "--user"]).exit_code == 0
    assert (shop.parent / "home/.claude/settings.json").is_file()
    assert not (shop / ".claude/settings.json").exists()
    assert runner.invoke(app, ["hooks", "status"]).exit_code == 0


def test_from_a_cache_the_hook_names_the_debrief_that_stays_or_what_to_install(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, tools = shop.parent / "cache", shop.parent / "tools"
    write(cache, {"CACHEDIR.TAG": "", "archive-v0/x/bin/debrief": "#!/bin/sh\n"})
    (cache / "archive-v0/x/bin/debrief").chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(cache / "archive-v0/x"))
    monkeypatch.setenv("PATH", f"{cache}/archive-v0/x/bin:{tools}:/usr/bin:/bin")
    path = shop.parent / "home/.claude/settings.json"
    refused = runner.invoke(app, ["hooks", "install", "--user"])
    assert refused.exit_code == 1
    assert "uv tool install" in refused.stderr
    assert not path.exists()
    tools.mkdir()
    (tools / "debrief").symlink_to(Path(sys.executable).with_name("debrief"))
    assert runner.invoke(app, ["hooks", "install", "--user"]).exit_code == 0
    hook = json.loads(path.read_bytes())["hooks"]["SessionStart"][0]["hooks"][0]
    assert hook["command"] == hook_command()
    assert runner.invoke(app, ["hooks", "status", "--user"]).exit_code == 0


def test_the_last_failures_of_the_hook_are_shown(shop: Path) -> None:
    write(shop.parent / "home/.debrief/logs", {"hooks.log": "one\ntwo\nthree\nfour\n"})
    told = runner.invoke(app, ["hooks", "status"]).stdout
    assert "4 failures" in told
    assert "four" in told
    assert "one" not in told


def test_settings_that_are_broken_are_refused_in_one_line(shop: Path) -> None:
    write(shop, {".claude/settings.local.json": "{"})
    done = runner.invoke(app, ["hooks", "install"])
    assert done.exit_code == 1
    assert "Expecting property name" in done.stderr
    assert (shop / ".claude/settings.local.json").read_text() == "{"


def test_migrating_is_a_dry_run_until_it_is_told_to_write(shop: Path) -> None:
    write(shop, {".weft/tasks/queue.md": "# Queue\n", ".weft/training_data/queue/plan.md": "x"})
    done = runner.invoke(app, ["migrate"])
    assert done.exit_code == 0
    assert "copy    plans/queue.md" in done.stdout
    assert "missing training_data/queue/prompts" in done.stdout
    assert "Nothing was written" in done.stdout
    assert not (shop / ".debrief/plans/queue.md").exists()
    done = runner.invoke(app, ["migrate", "--apply"])
    assert "Nothing was overwritten" in done.stdout
    assert (shop / ".debrief/plans/queue.md").read_text() == "# Queue\n"
    assert "There is nothing to do." in runner.invoke(app, ["migrate"]).stdout


def test_one_target_does_not_take_the_folders_of_several_repositories(shop: Path) -> None:
    write(shop.parent, {"a/.weft/tasks/x.md": "", "b/.weft/tasks/x.md": ""})
    done = runner.invoke(app, ["migrate", str(shop.parent), "--to", str(shop.parent / "c")])
    assert done.exit_code == 1
    assert "cannot be the target of several" in done.stderr
