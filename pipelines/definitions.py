"""The composition root: everything that Dagster loads."""

import dagster as dg

from assets import (
    agreement,
    candidates,
    judging,
    langfuse,
    reports,
    rubrics,
    scoring,
    sessions,
    snapshots,
    training,
    weekly_report,
)
from pipelines.jobs import STAGE_JOBS
from pipelines.progress import quiet_logger
from pipelines.pruning import nightly_pruning, prune_runs
from pipelines.recorder_sensor import new_records
from pipelines.recovery import dead_runs
from pipelines.schedules import weekly
from pipelines.sensors import following, new_sessions
from pipelines.whole_graph import killed_runs, whole_graph
from resources.evaluator import EvaluatorResource
from resources.lake import LakeResource
from resources.langfuse import LangfuseResource
from resources.sessions import SessionStore

STAGES = [
    sessions,
    snapshots,
    judging,
    scoring,
    langfuse,
    rubrics,
    agreement,
    training,
    candidates,
    reports,
    weekly_report,
]

defs = dg.Definitions(
    assets=dg.load_assets_from_modules(STAGES),
    asset_checks=dg.load_asset_checks_from_modules(STAGES),
    jobs=[whole_graph, *STAGE_JOBS, prune_runs],
    schedules=[weekly, nightly_pruning],
    sensors=[new_sessions, following, new_records, dead_runs, killed_runs],
    resources={
        "lake": LakeResource(),
        "sessions": SessionStore(),
        "evaluator": EvaluatorResource(),
        "langfuse": LangfuseResource(),
    },
    loggers={"console": dg.colored_console_logger, "quiet": quiet_logger},
    executor=dg.in_process_executor,
)
