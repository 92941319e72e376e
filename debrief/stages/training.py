"""Training sets: which are not as they would be made now, and which are current."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from debrief.lake import Lake
from debrief.markdown import counted
from debrief.outcomes.store import success_labels
from debrief.settings import load_settings
from debrief.stages.run import PROGRESS
from debrief.training.kinship import read_kinship
from debrief.training.manifest import FORMER, current_pairs, settle_sets
from debrief.training.options import options_chosen
from debrief.training.selection import Pair
from debrief.training.store import is_current


def stale_pairs(lake: Lake, weeks: Iterable[str]) -> set[Pair]:
    """Return the pairs observed in some weeks whose sets are not as they would be made now."""
    taken = set(weeks)
    observed = {pair: found for pair, found in current_pairs(lake).items() if taken & found.keys()}
    options = options_chosen(load_settings(), {})
    kinship, outcomes = read_kinship(lake), success_labels(lake)
    return {
        pair
        for pair, members in observed.items()
        if not is_current(lake, *pair, members, options, kinship, outcomes)
    }


def settle(lake: Lake) -> None:
    """Name the current training sets in the manifest, and put away all others."""
    today, keep_days = datetime.now(UTC).date(), load_settings().keep_former_sets_days
    settled = settle_sets(lake, current_pairs(lake), today, keep_days)
    if settled.moved:
        moved = f"{counted(settled.moved, 'set')} moved to {lake.path(FORMER)}"
        logging.getLogger(PROGRESS).info("training_sets no longer current: %s", moved)
