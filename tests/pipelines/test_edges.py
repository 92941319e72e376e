"""What an asset reads, it declares: seen on the demo's lake while each asset is made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.partitions import PAIRS, WEEKS, add_pairs, pair_key
from debrief.lake import Lake
from debrief.stages.configuration import ScopeChoice
from debrief.training.manifest import current_pairs
from pipelines.definitions import ASSETS, defs
from pipelines.jobs import range_tags
from tests.assets.running import resources
from tests.pipelines.conftest import Demo

READS = ("read", "stamp", "partitions", "versions", "digest_of_file", "open_bytes", "read_bytes")
WRITES = ("write", "create", "write_bytes")
ASKS_A_MODEL = "prompt_candidates"
"""Made by a run with a model alone; it reads the training set that it is made from."""

REUSED = {("rubrics", "rubric_evaluations")}
"""Answers of an earlier run, which are not asked for again: rows that follow are no dependency."""


class Watched:
    """The tables that are read and written from now on, whoever has the lake open."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()
        for name in READS:
            self._watch(patch, name, self.read)
        for name in WRITES:
            self._watch(patch, name, self.written)

    def _watch(self, patch: pytest.MonkeyPatch, name: str, seen: set[str]) -> None:
        plain = getattr(Lake, name)

        def watched(lake: Lake, table: str, *given: Any, **named: Any) -> Any:
            seen.add(table.partition("/")[0])
            return plain(lake, table, *given, **named)

        patch.setattr(Lake, name, watched)


@pytest.fixture(scope="module")
def observed(
    demo: Demo, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[set[str], set[str]]]:
    """By asset, the tables that it read and wrote, each made by itself."""
    top = tmp_path_factory.mktemp("edges")
    shutil.copytree(demo.lake.url, top / "lake", ignore=shutil.ignore_patterns(".dagster"))
    lake, found = Lake(str(top / "lake")), dict[str, tuple[set[str], set[str]]]()
    graph, weeks = defs.resolve_asset_graph(), demo.lake.partitions("raw_sessions")
    with dg.DagsterInstance.ephemeral() as instance, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEBRIEF_HOME", str(demo.home.path / ".debrief"))
        patch.setenv("DEBRIEF_LAKE", lake.url)
        for key in graph.toposorted_asset_keys:
            name = key.to_user_string()
            if name == ASKS_A_MODEL:
                continue
            with pytest.MonkeyPatch.context() as watching:
                pairs = sorted(pair_key(*pair) for pair in current_pairs(lake))
                add_pairs(instance, current_pairs(lake))
                of = graph.get(key).partitions_def
                keys = weeks if of == WEEKS else pairs if of == PAIRS else []
                watched = Watched(watching)
                made = dg.materialize(
                    [asset for asset in ASSETS if isinstance(asset, dg.AssetsDefinition)],
                    selection=[key],
                    instance=instance,
                    resources=resources(
                        lake,
                        scope=ScopeChoice(force=True),
                        folders=[str(_samples())],
                    ),
                    tags=range_tags(keys[0], keys[-1]) if keys else {},
                )
                assert made.success
            found[name] = watched.read, watched.written
    return found


def _samples() -> Path:
    from debrief.samples import folder

    return folder()


def test_each_table_that_an_asset_reads_is_made_by_an_asset_that_it_depends_on(
    observed: dict[str, tuple[set[str], set[str]]],
) -> None:
    makers: dict[str, set[str]] = {}
    for name, (_, written) in observed.items():
        for table in written:
            makers.setdefault(table, set()).add(name)
    graph = defs.resolve_asset_graph()
    missing = {}
    for name, (read, _) in observed.items():
        declared = {key.to_user_string() for key in graph.get(dg.AssetKey(name)).parent_keys}
        tables = [table for table in read if makers.get(table) and name not in makers[table]]
        undeclared = {
            table
            for table in tables
            if not makers[table] & declared and (name, table) not in REUSED
        }
        if undeclared:
            missing[name] = sorted(undeclared)
    assert missing == {}, missing


def test_the_watch_sees_what_is_known_to_be_read(
    observed: dict[str, tuple[set[str], set[str]]],
) -> None:
    assert {"raw_sessions", "session_scores"} <= observed["friction_events"][0]
    assert "friction_events" in observed["recurring_friction"][0]
    assert "friction_events" in observed["friction_events"][1]
    assert {"raw_sessions", "scan"} <= observed["raw_sessions"][1]
