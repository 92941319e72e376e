"""Assets that follow what they are made from by themselves, once their sensor is switched on."""

from collections import Counter
from collections.abc import Mapping

import dagster as dg
from dagster import AssetKey
from dagster._core.definitions.events import AssetKeyPartitionKey

from assets.partitions import FINGERPRINT, TASK, WEEKS
from debrief.lake import Lake
from debrief.settings import load_settings
from debrief.training.pairs import observed_pairs


class SamplesChanged(dg.AutomationCondition):  # type: ignore[type-arg]
    """True for the pairs that have sessions of a week that was made anew since their set was.

    A set is made from its sessions' weeks alone, but depends on all weeks as far as Dagster can
    tell: one new session would bring every pair there is.
    """

    @property
    def name(self) -> str:
        """The name that the UI shows."""
        return "its sessions were made anew"

    @property
    def requires_cursor(self) -> bool:
        """Whether an evaluation remembers the one before it."""
        return False

    def evaluate(self, context: dg.AutomationContext[AssetKey]) -> dg.AutomationResult[AssetKey]:
        """Keep those of the candidates."""
        view = context.asset_graph_view
        candidates = {
            each.partition_key
            for each in context.candidate_subset.expensively_compute_asset_partitions()
        }
        made = _last_made(view.instance, context.key)
        weeks: Counter[str] = Counter()
        for parent in context.asset_graph.get(context.key).parent_keys:
            if context.asset_graph.get(parent).partitions_def == WEEKS:
                for week, number in _last_made(view.instance, parent).items():
                    weeks[week] = max(weeks[week], number)
        kept = set()
        for (task, fingerprint), members in observed_pairs(Lake(load_settings().lake)).items():
            key = dg.MultiPartitionKey({TASK: task, FINGERPRINT: fingerprint})
            newest = max(weeks[week] for week in members)
            if key in candidates and (key not in made or newest > made[key]):
                kept.add(AssetKeyPartitionKey(context.key, key))
        return dg.AutomationResult(
            context, view.get_asset_subset_from_asset_partitions(context.key, kept)
        )


def _last_made(instance: dg.DagsterInstance, key: AssetKey) -> Mapping[str, int]:
    """Return, of each partition, the number of the event that it was last made with."""
    return instance.event_log_storage.get_latest_storage_id_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION
    )


FOLLOWS = dg.AutomationCondition.eager().without(~dg.AutomationCondition.any_deps_missing())
"""As soon as what it is made from was made anew. Weeks without sessions are never made, so none
that is missing may hold it back."""

PAIRS_FOLLOW = (FOLLOWS & SamplesChanged()).with_label("samples changed")
