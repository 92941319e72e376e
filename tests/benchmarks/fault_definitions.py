"""The two stages that ask models, each step in a process of its own, so that each can be killed."""

import dagster as dg

from assets import judging, scoring, sessions, snapshots
from pipelines import definitions
from pipelines.recovery import dead_runs

ASKING = ("judge_evaluations", "session_scores")

defs = dg.Definitions(
    assets=dg.load_assets_from_modules([sessions, snapshots, judging, scoring]),
    jobs=[dg.define_asset_job("asking", selection=dg.AssetSelection.assets(*ASKING))],
    sensors=[dead_runs],
    resources=definitions.defs.resources,
    executor=dg.multiprocess_executor,
)
