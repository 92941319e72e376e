"""What a run can be asked for: the whole graph over a range of weeks, or what follows it."""

import dagster as dg

from pipelines.notifications import send_failure

ON_REQUEST = dg.AssetSelection.assets("prompt_candidates")
"""Costs many model calls: made when it is named, never because of what it follows."""
OF_PAIRS = dg.AssetSelection.assets("training_sets")

whole_graph = dg.define_asset_job(
    "whole_graph",
    selection=dg.AssetSelection.all() - OF_PAIRS - ON_REQUEST,
    description=(
        "From transcripts to rubrics and reports, over a range of weeks; what has not changed is "
        "not done again. Training sets follow in a run of their own: their partitions, the pairs "
        "of task and fingerprint, are known only once sessions were judged."
    ),
    hooks={send_failure},
)
training_sets_job = dg.define_asset_job(
    "training_sets_job",
    selection=OF_PAIRS,
    description="Write the training sets of observed pairs of task and fingerprint.",
    hooks={send_failure},
)
candidates_job = dg.define_asset_job(
    "candidates_job",
    selection=ON_REQUEST,
    description="Propose better prompts from the training sets of pairs; asks a language model.",
)
JOBS = (whole_graph, training_sets_job, candidates_job)


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags of a run over every partition from ``first`` to ``last``."""
    return {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last,
    }
