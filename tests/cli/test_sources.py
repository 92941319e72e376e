from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from tests.sessions.scenario import Log, usage

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = Log("Add retries.")
    log.says("Done.", usage=usage(10, 20, 30, 40))
    log.user("And tests.")
    log.says("Done.", usage=usage(1, 2, 3, 4))
    log.write(tmp_path / "projects" / "a.jsonl")
    log.write(tmp_path / "projects" / "copy" / "a.jsonl")
    (tmp_path / "projects" / "empty.jsonl").write_bytes(b"")
    (tmp_path / "projects" / "torn.jsonl").write_bytes(b'{"type": "user", \n')
    return tmp_path / "projects"


def test_sources_lists_transcripts_sessions_dates_and_what_was_not_read(folder: Path) -> None:
    done = runner.invoke(app, ["sources", str(folder)])
    assert done.exit_code == 0
    row = next(line for line in done.stdout.splitlines() if "claude-code" in line).split()
    assert row[:6] == ["claude-code", "2", "2", "1", "2026-01-05", "2026-01-05"]
    assert "Not read (1):" in done.stdout
    assert f"{folder}/torn.jsonl:1" in done.stdout
    assert f"the file is empty: {folder}/empty.jsonl" in done.stdout


def test_reading_adds_turns_tokens_and_growth(folder: Path) -> None:
    done = runner.invoke(app, ["sources", "--read", str(folder)])
    assert done.exit_code == 0
    rows = [line.split() for line in done.stdout.splitlines() if "claude-code" in line]
    assert rows[1] == ["claude-code", "1", "2", "11", "22", "33", "44", "0", "0", "0"]


def test_json_holds_the_same_figures(folder: Path) -> None:
    done = runner.invoke(app, ["sources", "--read", "--json", str(folder)])
    found = json.loads(done.stdout)["sources"]
    own = found["claude-code"]
    assert (own["transcripts"], own["sessions"], own["turns"]) == (2, 1, 2)
    assert own["usage"] == {"input": 11, "output": 22, "cache_write": 33, "cache_read": 44}
    assert sum(found["(no known tool)"]["unread"].values()) == 1
    without = json.loads(runner.invoke(app, ["sources", "--json", str(folder)]).stdout)
    assert "turns" not in without["sources"]["claude-code"]


def test_the_usual_places_are_searched_when_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = runner.invoke(app, ["sources"])
    assert done.exit_code == 1
    assert "holds no known tool's transcripts" in done.stderr
    log = Log()
    log.user("Add retries.")
    log.says("Done.")
    log.write(tmp_path / ".claude" / "projects" / "shop" / "a.jsonl")
    done = runner.invoke(app, ["sources"])
    assert done.exit_code == 0
    assert "claude-code" in done.stdout


def test_a_folder_without_a_session_fails_with_what_is_there_and_one_that_is_not_there_by_its_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "old.tar.gz").touch()
    for options in (["--read"], ["--json"]):
        done = runner.invoke(app, ["sources", *options, str(tmp_path)])
        assert done.exit_code == 1
        assert "no session is in it that can be read" in done.stderr
        assert "not read: an archive" in done.stdout
    done = runner.invoke(app, ["sources", str(tmp_path / "nowhere")])
    assert f"there is no such folder: {tmp_path}/nowhere" in done.stdout


def test_a_folder_that_settings_name_is_the_one_that_is_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(tmp_path / "gone"))
    assert str(tmp_path / "gone") in runner.invoke(app, ["sources"]).output
    pushed = runner.invoke(app, ["push", "--to", "s3://none/at-all"])
    assert f"{tmp_path / 'gone'}: is not a folder" in pushed.output


def test_sources_lists_what_is_in_the_folders_that_settings_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(folder))
    found = json.loads(runner.invoke(app, ["sources", "--json"]).stdout)
    assert found["folders"] == [str(folder)]
    assert found["sources"]["claude-code"]["sessions"] == 1


def test_one_place_decides_which_folders_are_read() -> None:
    """A command that asks for the tools' usual folders by itself passes over the settings."""
    top = Path(__file__).parents[2]
    named = [
        str(path.relative_to(top))
        for folder in ("debrief", "pipelines", "assets", "resources")
        for path in sorted((top / folder).rglob("*.py"))
        if "default_folders(" in path.read_text()
    ]
    assert named == ["debrief/sessions/places.py", "debrief/sessions/sources.py"]
