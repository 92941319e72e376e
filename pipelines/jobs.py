"""One job a kind of partition: what a run, a backfill or a schedule can ask for."""

import dagster as dg

SESSIONS = dg.define_asset_job(
    "sessions_job",
    selection=dg.AssetSelection.assets(
        "raw_sessions",
        "prompt_snapshots",
        "session_metadata",
        "judge_evaluations",
        "session_scores",
        "langfuse_scores",
        "extracted_rubrics",
    ),
    description="Read, snapshot, judge and score the sessions of weeks, and mine rubrics.",
)
RUBRICS = dg.define_asset_job(
    "rubrics_job",
    selection=dg.AssetSelection.assets("rubrics"),
    description="Consolidate what was mined into the final rubrics of each score name.",
)
RUBRIC_EVALUATIONS = dg.define_asset_job(
    "rubric_evaluations_job",
    selection=dg.AssetSelection.assets("rubric_evaluations"),
    description="Hold the sessions of weeks against the final rubrics.",
)
TRAINING_SETS = dg.define_asset_job(
    "training_sets_job",
    selection=dg.AssetSelection.assets("training_sets"),
    description="Write the training set of observed pairs of task and fingerprint.",
)
CANDIDATES = dg.define_asset_job(
    "candidates_job",
    selection=dg.AssetSelection.assets("prompt_candidates"),
    description="Propose better prompts from the training sets of pairs; asks a language model.",
)
AGREEMENT = dg.define_asset_job(
    "agreement_job",
    selection=dg.AssetSelection.assets("judge_agreement"),
    description="Compare people's labels with what was judged.",
)
REPORTS = dg.define_asset_job(
    "reports_job",
    selection=dg.AssetSelection.assets("fingerprint_leaderboard"),
    description="Draw the reports over everything.",
)

WEEKLY_REPORT = dg.define_asset_job(
    "weekly_report_job",
    selection=dg.AssetSelection.assets("weekly_report"),
    description="Write the page of each week.",
)

STAGE_JOBS = (
    SESSIONS,
    RUBRICS,
    RUBRIC_EVALUATIONS,
    AGREEMENT,
    TRAINING_SETS,
    CANDIDATES,
    REPORTS,
    WEEKLY_REPORT,
)
