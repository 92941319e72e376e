"""Where a deployment reads sessions that sets nothing."""

from __future__ import annotations

from pathlib import Path

from resources import Stages


def test_no_server_is_read_unless_it_is_asked_for(tmp_path: Path) -> None:
    usual = Stages(sessions={"folders": [str(tmp_path)]}).options.sessions
    assert usual.folders == [str(tmp_path)]
    assert not usual.langfuse
    assert not usual.recorder
    assert Stages(sessions={"langfuse": True}).options.sessions.langfuse
    assert Stages(sessions={"recorder": True}).options.sessions.recorder
