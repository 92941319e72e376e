"""Where a deployment reads sessions that sets nothing."""

from __future__ import annotations

from pathlib import Path

from resources.lake import SessionStore


def test_no_server_is_read_unless_it_is_asked_for(tmp_path: Path) -> None:
    usual = SessionStore(folders=[str(tmp_path)]).open()
    assert usual.folders == (str(tmp_path),)
    assert not usual.langfuse
    assert not usual.recorder
    assert SessionStore(langfuse=True).open().langfuse
    assert SessionStore(recorder=True).open().recorder
