"""A code location that fails to load: who looks at the UI sees why."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget

ASKED = """
{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus
  locationOrLoadError { __typename ... on PythonError { message stack
    errorChain { error { message } } } } } } } }
"""


@pytest.mark.filterwarnings("ignore:Error loading repository location debrief")  # it is to fail
def test_the_reason_names_the_file_and_the_next_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster_graphql.test.utils import execute_dagster_graphql

    (tmp_path / "dagster").mkdir()
    keys = tmp_path / ".env"
    keys.write_text("OPENAI_API_KEY=sk-1\n")
    keys.chmod(0o644)
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    target = ModuleTarget(
        module_name="pipelines.definitions",
        attribute=None,
        working_directory=str(Path(__file__).parents[2]),
        location_name="debrief",
    )
    with (
        dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance,
        WorkspaceProcessContext(instance, target) as served,
    ):
        request = served.create_request_context()
        answer = execute_dagster_graphql(request, ASKED).data
    (entry,) = answer["workspaceOrError"]["locationEntries"]
    assert entry["name"] == "debrief"
    failure = entry["locationOrLoadError"]
    assert failure["__typename"] == "PythonError"
    said = failure["message"] + str(failure["errorChain"])
    assert f"{keys}: holds keys and can be read by others. Run: chmod 600 {keys}" in said
    assert "sk-1" not in said
