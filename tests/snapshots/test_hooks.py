from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from debrief.errors import ConfigurationError
from debrief.snapshots.hook import (
    check_interpreter,
    hook_command,
    install,
    remove,
    settings_file,
    status,
)
from tests.snapshots.scenario import repository

COMMAND = hook_command("/opt/debrief/bin/python")
OWN = {"type": "command", "command": COMMAND, "timeout": 5}
THEIRS = {"type": "command", "command": "echo hello", "async": True}

SETTINGS: dict[str, dict[str, Any]] = {
    "other keys": {"model": "opus", "permissions": {"allow": ["Bash(git log:*)"]}, "größe": "ü"},
    "hooks of other events": {"hooks": {"Stop": [{"hooks": [THEIRS]}]}},
    "hooks of the end alone": {"hooks": {"SessionEnd": [{"hooks": [THEIRS]}]}},
    "hooks of the same event": {
        "hooks": {"SessionStart": [{"matcher": "resume", "hooks": [THEIRS]}]}
    },
    "keys that nobody knows": {"hooks": {"SessionStart": [{"new": {"deep": [1, 2.5, None]}}]}},
}


def written(path: Path, settings: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    return path


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_installing_keeps_what_is_there_and_removing_takes_away_only_ours(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    path = written(tmp_path / "settings.json", settings)
    before = path.read_bytes()
    assert install(path, COMMAND) == "installed"
    now = json.loads(path.read_bytes())
    for event in ("SessionStart", "SessionEnd"):
        assert now["hooks"][event].pop() == {"hooks": [OWN]}
    for key, value in settings.items():
        if key != "hooks":
            assert now[key] == value
    assert remove(path) == "removed"
    assert path.read_bytes() == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@examples(max_examples=20)
@given(st.dictionaries(st.text(min_size=1).filter(lambda key: key != "hooks"), JSON, min_size=1))
def test_any_settings_come_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]
) -> None:
    path = written(tmp_path_factory.mktemp("settings") / "settings.json", settings)
    before = path.read_bytes()
    install(path, COMMAND)
    assert {k: v for k, v in json.loads(path.read_bytes()).items() if k != "hooks"} == settings
    remove(path)
    assert path.read_bytes() == before


def test_installing_twice_is_installing_once_and_removing_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    path = tmp_path / ".claude" / "settings.json"
    assert status(path, COMMAND).state == "not installed"
    assert install(path, COMMAND) == "installed"
    first = path.read_bytes()
    assert install(path, COMMAND) == "unchanged"
    assert path.read_bytes() == first
    assert status(path, COMMAND).state == "installed"
    written(path, {**json.loads(first), "disableAllHooks": True})
    assert "switched off" in status(path, COMMAND).note
    path.write_bytes(first)
    assert remove(path) == "removed"
    assert not path.exists()
    assert remove(path) == "not there"


def test_a_hook_of_another_interpreter_is_brought_up_to_date_in_its_place(tmp_path: Path) -> None:
    old = {"type": "command", "command": hook_command("/old venv/bin/python")}
    group = {"matcher": "startup", "hooks": [THEIRS, old]}
    path = written(
        tmp_path / "settings.json", {"hooks": {"SessionStart": [group, {"hooks": [old]}]}}
    )
    assert status(path, COMMAND).state == "outdated"
    assert install(path, COMMAND) == "updated"
    assert json.loads(path.read_bytes())["hooks"]["SessionStart"] == [
        {"matcher": "startup", "hooks": [THEIRS, OWN]}
    ]


def test_tabs_and_permissions_of_the_file_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{\n\t"model": "opus"\n}\n')
    path.chmod(0o600)
    install(path, COMMAND)
    assert '\n\t"model": "opus"' in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_a_file_that_is_linked_from_elsewhere_stays_linked(tmp_path: Path) -> None:
    own = written(tmp_path / "dotfiles" / "settings.json", {"model": "opus"})
    (tmp_path / "settings.json").symlink_to(own)
    install(tmp_path / "settings.json", COMMAND)
    assert (tmp_path / "settings.json").is_symlink()
    assert "hooks" in json.loads(own.read_bytes())


BROKEN: dict[str, tuple[bytes, str]] = {
    "a comment": (b'{\n  // mine\n  "model": "opus"\n}', "is no JSON .* line 2"),
    "cut short": (b'{"model": ', "is no JSON"),
    "not UTF-8": (b'{"model": "caf\xe9"}', "is no JSON .*utf-8"),
    "a list": (b"[]", "holds no JSON object"),
    "a key twice": (b'{"hooks": {}, "hooks": {}}', "a key is given twice"),
    "hooks that are a list": (b'{"hooks": []}', "its hooks are no JSON object"),
    "an event that is no list": (b'{"hooks": {"SessionStart": {}}}', "is no list"),
    "nested without end": (b'{"a":' + b"[" * 100_000, "is no JSON"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_settings_that_cannot_be_kept_are_refused_and_left_alone(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError, match=reason):
        install(path, COMMAND)
    with pytest.raises(ConfigurationError, match=reason):
        remove(path)
    assert status(path, COMMAND).state == "broken"
    assert path.read_bytes() == data


def test_a_read_only_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = written(tmp_path / "settings.json", {"model": "opus"})
    path.chmod(0o444)
    with pytest.raises(ConfigurationError, match=r"is read-only.*chmod"):
        install(path, COMMAND)
    assert json.loads(path.read_bytes()) == {"model": "opus"}
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_the_file_meant_is_the_repositorys_or_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = repository(tmp_path / "shop", {"web/page.py": ""})
    assert settings_file(folder=shop / "web") == shop / ".claude" / "settings.json"
    assert settings_file(folder=shop, local=True).name == "settings.local.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    assert settings_file(user=True) == tmp_path / "settings.json"
    with pytest.raises(ConfigurationError, match="lies in no git repository"):
        settings_file(folder=tmp_path)


def test_an_interpreter_that_does_not_know_debrief_is_refused(tmp_path: Path) -> None:
    check_interpreter()
    with pytest.raises(ConfigurationError, match="does not find debrief"):
        check_interpreter(str(tmp_path / "python"))
