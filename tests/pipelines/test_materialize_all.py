"""What "Materialize all…" in the lineage takes, asked as the UI asks it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget

from assets.partitions import WEEKS, add_pairs
from pipelines.definitions import defs
from tests.machine import lake_of_many_weeks

PREVIEW = """
query Preview($params: AssetBackfillPreviewParams!) { assetBackfillPreview(params: $params) {
  assetKey { path } partitions { partitionKeys ranges { start end } } } }
"""
GRAPH = defs.resolve_asset_graph()
NAMES = sorted(key.to_user_string() for key in GRAPH.materializable_asset_keys)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    target = ModuleTarget(
        module_name="pipelines.definitions",
        attribute=None,
        working_directory=str(Path(__file__).parents[2]),
        location_name="debrief",
    )
    home = tmp_path_factory.mktemp("dagster")
    lake_of_many_weeks(home / "lake")
    with (
        patch.dict(os.environ, DEBRIEF_LAKE=str(home / "lake")),
        dg.DagsterInstance.local_temp(str(home)) as instance,
    ):
        add_pairs(instance, [("fix-parser", "1a2b3c4d-5e6f7a8b")])
        with WorkspaceProcessContext(instance, target) as context:
            yield context.create_request_context()


@pytest.mark.parametrize(
    "weeks",
    [
        pytest.param(["2026-10-26"], id="one week"),
        pytest.param(["2026-10-05", "2026-10-12", "2026-10-19"], id="three weeks"),
    ],
)
def test_every_weekly_asset_is_made_for_the_weeks_chosen_and_no_other(
    served: Any, weeks: list[str]
) -> None:
    from dagster_graphql.test.utils import execute_dagster_graphql

    params = {"partitionNames": weeks, "assetSelection": [{"path": [name]} for name in NAMES]}
    answer = execute_dagster_graphql(served, PREVIEW, {"params": params}).data
    targeted = {
        each["assetKey"]["path"][0]: each["partitions"] for each in answer["assetBackfillPreview"]
    }
    for name in NAMES:
        if GRAPH.get(dg.AssetKey(name)).partitions_def == WEEKS:
            ranges = targeted[name]["ranges"] or []
            found = [(each["start"], each["end"]) for each in ranges]
            assert found == [(weeks[0], weeks[-1])] or targeted[name]["partitionKeys"] == weeks
    assert targeted["training_sets"]["partitionKeys"] == ["fix-parser.1a2b3c4d-5e6f7a8b"]
    assert not targeted.get("prompt_candidates", {}).get("partitionKeys")
