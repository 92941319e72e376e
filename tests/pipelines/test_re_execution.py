"""The UI starts what a command ran: on the same sessions and lake, with the same filter."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget

from debrief.lake import Lake
from debrief.samples import folder
from debrief.signals.schema import SessionSignals
from debrief.snapshots.capture import find_repository
from pipelines.jobs import failure_in, range_tags
from tests.pipelines.conftest import Home, history_of
from tests.waiting import wait_until

WEEK = "2026-10-19"


def events_of(instance: dg.DagsterInstance, run_id: str) -> list[dg.DagsterEvent]:
    logs = instance.all_logs(run_id)
    return [entry.dagster_event for entry in logs if entry.dagster_event]


AGAIN = """
mutation Again($run: ExecutionParams!) { launchRun(executionParams: $run) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
LISTED = """
query Listed($of: PipelineSelector!) { pipelineOrError(params: $of) { ... on Pipeline {
  runs { runId } } } }
"""


@pytest.mark.parametrize("is_named", [True, False])
def test_it_takes_the_same_sessions_lake_and_filter_where_settings_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    from dagster_graphql.test.utils import execute_dagster_graphql

    home, lake = Home(tmp_path), Lake(str(tmp_path / "lake"))
    given = ("--weeks", WEEK, "--lake", lake.url, "--sessions", str(folder()), "--no-model")
    home.typed("run", "--select", "raw_sessions", *given)
    said = home.debrief("run", "--select", "session_signals", "--where", "tool=droid", *given)
    assert said.code == 0, said.all
    signals = list(lake.read("session_signals", WEEK, SessionSignals))
    lake.write("session_signals", WEEK, [], SessionSignals)
    target = ModuleTarget(
        module_name="pipelines.definitions",
        attribute=None,
        working_directory=str(Path(__file__).parents[2]),
        location_name="debrief",
    )
    if is_named:
        monkeypatch.setenv("DEBRIEF_LAKES", lake.url)
        monkeypatch.setenv("DEBRIEF_SESSIONS", str(folder().parent))
        # That of this checkout, as a run names it: of a linked worktree, the main one's.
        here = find_repository(Path(__file__).parent)
        monkeypatch.setenv("DEBRIEF_REPOSITORIES", str(here.root) if here else "")
    with (
        history_of(tmp_path / "lake") as instance,
        WorkspaceProcessContext(instance, target) as served,
    ):
        first, *_ = instance.get_runs(limit=1)
        code = {"repositoryLocationName": "debrief", "repositoryName": "__repository__"}
        of = {**code, "pipelineName": first.job_name}
        request = served.create_request_context()
        listed = execute_dagster_graphql(request, LISTED, {"of": of}).data["pipelineOrError"]
        assert first.run_id in [run["runId"] for run in listed["runs"]]
        tags = range_tags(WEEK, WEEK)
        run = {
            "selector": {**of, "assetSelection": [{"path": ["session_signals"]}]},
            "runConfigData": first.run_config,
            "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in tags.items()]},
        }
        launched = execute_dagster_graphql(request, AGAIN, {"run": run}).data["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        instance.launch_run(launched["run"]["runId"], request)  # as the daemon takes it up

        def repeated() -> dg.DagsterRun:
            (run,) = instance.get_runs(dg.RunsFilter(run_ids=[launched["run"]["runId"]]))
            return run

        wait_until(lambda: repeated().is_finished)
        assert repeated().run_config == first.run_config
        assert repeated().is_success is is_named
        if not is_named:
            (_, reason) = failure_in(events_of(instance, repeated().run_id), "backfill")
            assert reason == (
                f"lake.url {lake.url}: is not among what this machine's settings name. "
                "DEBRIEF_LAKES can name it."
            )
            return
    assert list(lake.read("session_signals", WEEK, SessionSignals)) == signals != []
