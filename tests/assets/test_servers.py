"""What a Langfuse server does not take, or does not give, makes the run fail, and says why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import dagster as dg
import pytest

from assets.evaluations import langfuse_scores, scores_are_written
from assets.sessions import raw_sessions, servers_were_read
from debrief.lake import Lake
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.outcomes.store import Label, Labels, put_labels
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import score_session
from debrief.sessions.model import Session
from pipelines.jobs import failure_in
from resources import LangfuseResource
from tests.assets.running import asset, resources
from tests.langfuse.scenario import Recorder
from tests.langfuse.server import LangfuseServer
from tests.scoring.scenario import ScriptedScorer, session

session_signals = asset("session_signals")

WEEK = "2026-10-05"
WRITING = [session_signals, langfuse_scores, scores_are_written]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LangfuseServer]:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(tmp_path / "none"))
    with LangfuseServer() as running:
        Recorder(running).trace("t1", "Fix the cart, please.", "Fixed.")
        monkeypatch.setenv("LANGFUSE_HOST", running.host)
        monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", running.public_key)
        monkeypatch.setenv("LANGFUSE_SECRET_KEY", running.secret_key)
        yield running


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path / "lake"))
    sessions = [session("s1"), session("elsewhere")]
    made.write("raw_sessions", WEEK, sessions, Session)
    rows = [score_session(one, ScriptedScorer()) for one in sessions]
    made.write("session_scores", WEEK, rows, SessionScores)
    return made


def run(
    lake: Lake, assets: Sequence[dg.AssetsDefinition], **configured: str
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        assets,
        partition_key=WEEK,
        instance=dg.DagsterInstance.ephemeral(),
        resources=resources(lake, langfuse=LangfuseResource()),
        run_config={"resources": {"langfuse": {"config": configured}}},
        raise_on_error=False,
    )


def test_a_weeks_scores_and_labels_are_written_for_the_sessions_that_the_server_has(
    lake: Lake, server: LangfuseServer
) -> None:
    label = Label(session_id="s1", name="success", value="yes", source="csv", rater="ada")
    put_labels(lake, Labels(labels=(label,)))
    assert run(lake, WRITING).success
    kept = server.scores.values()
    assert {score["sessionId"] for score in kept} == {"s1"}
    assert [score["name"] for score in kept if score.get("source") == "ANNOTATION"] == ["success"]
    receipts = list(lake.read("langfuse_scores", WEEK, ScoreReceipt))
    assert {(r.session_id, r.status) for r in receipts} == {
        ("s1", "written"),
        ("elsewhere", "kept"),
    }


@pytest.mark.parametrize(
    ("configured", "setting", "key"),
    [
        ("trace", "", "traceId"),
        ("trace", "session", "traceId"),
        ("", "trace", "traceId"),
        ("session", "trace", "sessionId"),
    ],
)
def test_a_runs_configuration_says_what_scores_are_written_on_else_the_setting_does(
    lake: Lake,
    server: LangfuseServer,
    monkeypatch: pytest.MonkeyPatch,
    configured: str,
    setting: str,
    key: str,
) -> None:
    monkeypatch.setenv("DEBRIEF_SCORE_TARGET", setting)
    assert run(lake, WRITING, score_target=configured).success
    there = {"traceId": "t1", "sessionId": "s1"}[key]
    assert {score.get(key) for score in server.scores.values()} == {there}


def test_a_wrong_key_fails_the_run_after_the_receipts_are_filed(
    lake: Lake, server: LangfuseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-of-another-project")
    result = run(lake, WRITING)
    assert not result.success
    assert result.asset_materializations_for_node("langfuse_scores")
    step, reason = failure_in(result.all_events, "", for_strangers=True)
    assert step == "langfuse_scores_scores_are_written"
    assert "scores of 2 sessions: refused GET /v2/observations: 401" in reason
    assert "Check LANGFUSE_PUBLIC_KEY" in reason
    assert "sk-of-another-project" not in reason
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", server.secret_key)
    assert run(lake, WRITING).success


def test_a_refused_read_fails_the_run(
    lake: Lake, server: LangfuseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = [raw_sessions, servers_were_read]
    monkeypatch.setenv("DEBRIEF_LANGFUSE_SESSIONS", "1")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-of-another-project")
    result = run(lake, reading)
    step, reason = failure_in(result.all_events, "", for_strangers=True)
    assert step == "raw_sessions_servers_were_read"
    assert "not listed: refused GET" in reason
    assert "401" in reason
    assert "LANGFUSE_HOST and its keys" in reason
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", server.secret_key)
    assert run(lake, reading).success
