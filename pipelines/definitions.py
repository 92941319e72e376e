"""The composition root: everything that Dagster loads."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

import assets
from assets.stages import table_assets
from debrief.settings import load_settings, split_locations, variable_of
from pipelines.automation import following, new_sessions, weekly
from pipelines.jobs import JOBS, failed_runs, quiet_logger
from pipelines.pruning import nightly_pruning, prune_runs
from resources import LangfuseResource, Stages, WebhookResource

_SET = {name: load_settings().variable(variable_of(name)) for name in ("lake", "sessions", "model")}
"""What the environment sets stands in the launchpad as it is in force."""

RESOURCES: dict[str, Any] = {
    "stages": Stages(
        lake={"url": _SET["lake"]},
        sessions={"folders": [*split_locations(_SET["sessions"])]},
        evaluator={"no_model": load_settings().no_model, "model": _SET["model"]},
    ),
    "langfuse": LangfuseResource(),
    "webhook": WebhookResource(),
}

_BY_HAND = dg.load_assets_from_package_module(assets)
ASSETS: Sequence[Any] = [*_BY_HAND, *table_assets(_BY_HAND)]
CHECKS = dg.load_asset_checks_from_package_module(assets)

defs = dg.Definitions(
    assets=ASSETS,
    asset_checks=CHECKS,
    jobs=[*JOBS, prune_runs],
    schedules=[weekly, nightly_pruning],
    sensors=[new_sessions, following, failed_runs],
    resources=RESOURCES,
    loggers={"console": dg.colored_console_logger, "quiet": quiet_logger},
    executor=dg.in_process_executor,
)
