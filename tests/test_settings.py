from __future__ import annotations

from pathlib import Path

import pytest

from debrief.errors import ConfigurationError
from debrief.settings import load_settings


def environment_file(home: Path, text: str, mode: int = 0o600) -> None:
    home.mkdir(exist_ok=True)
    path = home / ".env"
    path.write_text(text)
    path.chmod(mode)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    environment_file(tmp_path, "OPENROUTER_API_KEY=from-file\nDEBRIEF_MODEL=m\n")
    settings = load_settings(
        {"DEBRIEF_HOME": str(tmp_path), "OPENROUTER_API_KEY": "from-environment"}
    )
    assert settings.get("OPENROUTER_API_KEY") == "from-environment"
    assert settings.get("DEBRIEF_MODEL") == "m"


def test_a_key_file_that_others_can_read_is_refused_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    environment_file(tmp_path, "OPENROUTER_API_KEY=x\n", mode=0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        load_settings({"DEBRIEF_HOME": str(tmp_path)})


def test_the_lake_is_beside_the_home_unless_it_is_named(tmp_path: Path) -> None:
    assert load_settings({"DEBRIEF_HOME": str(tmp_path)}).lake == str(tmp_path / "lake")
    named = load_settings({"DEBRIEF_HOME": str(tmp_path), "DEBRIEF_LAKE": "s3://bucket/lake"})
    assert named.lake == "s3://bucket/lake"
