"""What a command chooses holds while it works, and the environment is as before afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from debrief.settings import load_settings
from pipelines.options import RunOptions


def test_what_was_chosen_holds_within_the_block_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    monkeypatch.setenv("DEBRIEF_MODEL", "openai/gpt-5")
    monkeypatch.delenv("DEBRIEF_LAKE", raising=False)
    before = dict(os.environ)
    with RunOptions(model="openai/other", lake=str(tmp_path / "own")).applied() as settings:
        assert (settings.model, settings.lake) == ("openai/other", str(tmp_path / "own"))
        assert load_settings().model == "openai/other"
    assert dict(os.environ) == before
    with pytest.raises(RuntimeError), RunOptions(no_model=True).applied():
        raise RuntimeError
    assert dict(os.environ) == before
    assert load_settings().model == "openai/gpt-5"
