"""What the asset of sessions has checked about them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.sessions import raw_sessions, tokens_as_reported
from resources import SessionStore
from tests.assets.running import resources
from tests.sessions.readers.test_claude_code_requests import cost, spending
from tests.sessions.scenario import Log


def test_sessions_whose_tokens_are_not_as_their_tool_reports_are_counted_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    folder = tmp_path / "sessions"
    for number, output in enumerate((9, 1, None)):
        log = spending(Log("Go", session=f"0a1b2c3d-0000-4000-8000-00000000000{number}"), 2)
        if output is not None:
            cost(log, 0, (10, output))
        log.write(folder / f"{log.session}.jsonl")
    result = dg.materialize(
        [raw_sessions, tokens_as_reported],
        partition_key="2026-01-05",
        resources=resources(str(tmp_path / "lake"), sessions=SessionStore(folders=[str(folder)])),
    )
    (check,) = result.get_asset_check_evaluations()
    assert not check.passed
    assert check.severity == dg.AssetCheckSeverity.WARN
    assert check.metadata["sessions_with_a_total"].value == 2
    assert check.metadata["disagreeing"].value == 1
    assert "output=1," in str(check.metadata["sessions"].value)
