"""A session is scored from Python as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from debrief.errors import ConfigurationError
from debrief.langfuse.session_scorer import SessionScorer
from debrief.settings import load_settings
from tests.langfuse.scenario import Recorder
from tests.langfuse.server import LangfuseServer
from tests.models.openai_server import OpenAIServer, Reply
from tests.scoring.scenario import ScriptedScorer, answer

PAGE = Path(__file__).parents[2] / "docs" / "langfuse.md"
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
def keys(server: LangfuseServer, tmp_path: Path) -> dict[str, str]:
    return {
        "DEBRIEF_HOME": str(tmp_path),
        "LANGFUSE_HOST": server.host,
        "LANGFUSE_PUBLIC_KEY": server.public_key,
        "LANGFUSE_SECRET_KEY": server.secret_key,
    }


def test_the_pages_example_runs_and_prints_what_it_says(
    server: LangfuseServer,
    keys: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = re.search(r"```python\n(.*?)```\n+```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    for trace in ("t1", "t2"):
        Recorder(server, "checkout-1").trace(trace, "please go on", "Done.")
    said = answer(requests=[], person=[], train={"what": "all", "turns": []})
    with OpenAIServer(lambda call: Reply(said)) as models:
        asked = {"DEBRIEF_MODEL": "openai/gpt-4.1-mini", "DEBRIEF_MODEL_BASE_URL": models.url}
        target = {"DEBRIEF_SCORE_TARGET": "trace", "OPENAI_API_KEY": "sk-loopback"}
        for name, value in {**keys, **asked, **target}.items():
            monkeypatch.setenv(name, value)
        exec(compile(found[1], str(PAGE), "exec"), {})
    assert capsys.readouterr().out == found[2]
    assert {score.get("traceId") for score in server.scores.values()} == {"t1"}


def test_what_is_read_and_written_by_settings_holds_no_secret(
    server: LangfuseServer, keys: dict[str, str]
) -> None:
    Recorder(server).trace("t1", f"use {SECRET} for it", "Done.")
    settings = load_settings(keys)
    whole = SessionScorer.from_settings(settings, ScriptedScorer())
    assert whole.fetcher is not None
    (turn,) = whole.fetcher.fetch_session("s1").turns
    assert SECRET not in turn.prompt
    assert "\u2039secret" in turn.prompt or "<secret" in turn.prompt
    assert SECRET not in whole.redact(f"it said {SECRET}")


def test_without_a_server_it_names_who_asked(tmp_path: Path) -> None:
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="SessionScorer: needs a Langfuse server"):
        SessionScorer.from_settings(settings, ScriptedScorer())
