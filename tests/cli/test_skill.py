"""``debrief skill``: the folder that lets a coding agent score sessions itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from debrief.cli.score import NAME, UNANSWERED, skill_install, skill_remove
from debrief.content import folder
from debrief.errors import ConfigurationError
from tests.langfuse.test_source import transcript
from tests.scoring.scenario import answer

FILES = ["SKILL.md", "scripts/finding.py", "scripts/score_session.py"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    return tmp_path / "shop"


def run(script: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environ},
        check=False,
    )


def test_the_skill_says_what_it_is_and_when_it_is_used() -> None:
    text = (folder("skills") / NAME / "SKILL.md").read_text()
    _, front, body = text.split("---\n", 2)
    told = yaml.safe_load(front)
    assert told["name"] == NAME
    assert "Use when" in told["description"]
    assert len(told["description"]) <= 1_024
    for script in FILES[2:]:
        assert script in body


def test_its_first_example_is_scoring_by_subagents_and_works(
    repository: Path, tmp_path: Path
) -> None:
    skill_install(user=False, repo=repository)
    place = repository / ".claude" / "skills" / NAME
    (example, *_) = re.findall(r"^ *python3 (.*)$", (place / "SKILL.md").read_text(), re.MULTILINE)
    session = transcript(tmp_path / "projects", "0b5f7c1e-1111-4222-8333-444455556666")
    given = {"${CLAUDE_SESSION_ID}": str(session), "FOLDER": str(tmp_path / "work"), "NAME": "some"}
    script, *arguments = [given.get(word, word) for word in example.split()]
    environ = {"DEBRIEF_HOME": str(tmp_path / "home"), "DEBRIEF_LANGFUSE": "off"}
    first = run(place / script, *arguments, **environ)
    assert (first.returncode, "1 prompts need an answer" in first.stdout) == (UNANSWERED, True)
    (prompt,) = (tmp_path / "work").glob("part-*.md")
    prompt.with_name(f"{prompt.stem}.answer.json").write_text(answer())
    second = run(place / script, *arguments, **environ)
    assert second.returncode == 0, second.stderr
    assert "Reviewed by some" in second.stdout


def test_it_is_installed_once_and_brought_up_to_date(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill_install(user=False, repo=repository)
    place = repository / ".claude" / "skills" / NAME
    command = ["git", "-C", str(repository), "status", "--porcelain", "-uall"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert sorted(line.split(f"{NAME}/")[1] for line in shown.splitlines()) == FILES
    assert (place / "scripts" / "command.json").is_file(), "it names this machine: not committed"
    (place / "SKILL.md").write_text("old")
    (place / "notes.md").write_text("mine")
    skill_install(user=False, repo=repository)
    skill_install(user=False, repo=repository)
    said = [line for line in capsys.readouterr().out.splitlines() if ": " in line]
    assert [line.rsplit(": ", 1)[1] for line in said] == [
        "installed",
        "brought up to date",
        "is there already; nothing was changed",
    ]
    assert (place / "SKILL.md").read_text() != "old"
    skill_remove(user=False, repo=repository)
    assert [file.name for file in place.iterdir()] == ["notes.md"]


def test_a_users_skill_lies_where_the_tool_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    skill_install(user=True, repo=tmp_path)
    assert (tmp_path / "config" / "skills" / NAME / "SKILL.md").is_file()
    skill_remove(user=True, repo=tmp_path)
    assert not (tmp_path / "config" / "skills" / NAME).exists()


def test_outside_a_repository_somebody_has_to_say_where(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        skill_install(user=False, repo=tmp_path)


def test_the_scripts_pass_on_what_they_are_given_to_the_command_that_installed_them(
    repository: Path,
) -> None:
    skill_install(user=False, repo=repository)
    scripts = repository / ".claude/skills" / NAME / "scripts"
    echo = f"{sys.executable} -c 'import sys; print(sys.argv[1:]); sys.exit(3)'"
    done = run(scripts / "score_session.py", "s1", "--yes", DEBRIEF_COMMAND=echo)
    assert (done.returncode, done.stdout) == (3, "['score', 's1', '--yes']\n")
    done = run(scripts / "score_session.py", "--help", DEBRIEF_COMMAND="")
    assert (done.returncode, "--answers" in done.stdout) == (0, True)
    (scripts / "command.json").unlink()
    done = run(scripts / "score_session.py", "s1", PATH="", DEBRIEF_COMMAND="")
    assert (done.returncode, "set DEBRIEF_COMMAND" in done.stderr) == (127, True)
