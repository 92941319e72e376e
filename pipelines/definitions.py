"""The composition root: everything that Dagster loads."""

import warnings

import dagster as dg

warnings.filterwarnings("ignore", message=".*`partitions_def`.*", category=dg.PreviewWarning)

from assets import judging, langfuse, reports, rubrics, scoring, sessions, snapshots, training  # noqa: E402
from pipelines.jobs import STAGE_JOBS  # noqa: E402
from pipelines.progress import progress_logger  # noqa: E402
from pipelines.schedules import weekly  # noqa: E402
from pipelines.whole_graph import whole_graph  # noqa: E402
from resources.evaluator import EvaluatorResource  # noqa: E402
from resources.lake import LakeResource  # noqa: E402
from resources.langfuse import LangfuseResource  # noqa: E402
from resources.sessions import SessionStore  # noqa: E402

STAGES = [sessions, snapshots, judging, scoring, langfuse, rubrics, training, reports]

defs = dg.Definitions(
    assets=dg.load_assets_from_modules(STAGES),
    asset_checks=dg.load_asset_checks_from_modules(STAGES),
    jobs=[whole_graph, *STAGE_JOBS],
    schedules=[weekly],
    resources={
        "lake": LakeResource(),
        "sessions": SessionStore(),
        "evaluator": EvaluatorResource(),
        "langfuse": LangfuseResource(),
    },
    loggers={"console": dg.colored_console_logger, "progress": progress_logger},
    executor=dg.in_process_executor,
)
