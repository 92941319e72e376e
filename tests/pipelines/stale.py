"""Prints what Dagster takes for stale, loaded anew as a code server is: ``HOME`` to JSON.

Run as a program, since a code version is what the files said when the definitions were loaded.
"""

from __future__ import annotations

import json
import sys

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from pipelines.definitions import defs


def statuses(home: str) -> dict[str, list[str]]:
    """Return the statuses of each asset's materialized partitions, each once."""
    graph = defs.resolve_asset_graph()
    with dg.DagsterInstance.from_config(home) as instance:
        resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        found: dict[str, list[str]] = {}
        for key in graph.materializable_asset_keys:
            partitioned = graph.get(key).is_partitioned
            made = sorted(instance.get_materialized_partitions(key)) if partitioned else [None]
            told = {resolver.get_status(key, partition).value for partition in made}
            found[key.to_user_string()] = sorted(told)
        return found


if __name__ == "__main__":
    print(json.dumps(statuses(sys.argv[1])))
