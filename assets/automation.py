"""Assets that follow what they are made from by themselves, once their sensor is switched on."""

import dagster as dg
from dagster import AssetKey

from assets.partitions import FINGERPRINT, TASK
from debrief.lake import Lake
from debrief.settings import load_settings
from debrief.training.pairs import observed_pairs


class Observed(dg.AutomationCondition):  # type: ignore[type-arg]
    """True for the pairs that sessions of the lake belong to, and no empty cell between them."""

    @property
    def name(self) -> str:
        """The name that the UI shows."""
        return "observed in sessions"

    @property
    def requires_cursor(self) -> bool:
        """Whether an evaluation remembers the one before it."""
        return False

    def evaluate(self, context: dg.AutomationContext[AssetKey]) -> dg.AutomationResult[AssetKey]:
        """Keep the observed ones of the candidates."""
        observed = {
            dg.MultiPartitionKey({TASK: task, FINGERPRINT: fingerprint})
            for task, fingerprint in observed_pairs(Lake(load_settings().lake))
        }
        candidates = context.candidate_subset.expensively_compute_asset_partitions()
        kept = {each for each in candidates if each.partition_key in observed}
        view = context.asset_graph_view
        return dg.AutomationResult(
            context, view.get_asset_subset_from_asset_partitions(context.key, kept)
        )


FOLLOWS = dg.AutomationCondition.eager().without(~dg.AutomationCondition.any_deps_missing())
"""As soon as what it is made from was made anew. Weeks without sessions are never made, so none
that is missing may hold it back."""

PAIRS_FOLLOW = (FOLLOWS & Observed()).with_label("samples changed")
