"""Prompt candidates: better prompts proposed from each training set, for people to try."""

import logging

import dagster as dg
from pydantic import Field

from assets import versions
from assets.partitions import ONE_RUN, PAIRS, pair_of
from assets.presentation import markdown
from assets.progress import PROGRESS
from assets.spending import POOL, Spending
from assets.training import training_sets
from assets.weekly import working
from debrief.redaction.redactor import key_of
from debrief.settings import load_settings
from debrief.training.candidates import store_candidate
from debrief.training.optimisation import OptimiserOptions
from debrief.training.store import TrainingSetRow, training_set_of
from debrief.training.trials import NEEDS_A_MODEL, PromptTrials
from resources.evaluator import EvaluatorResource
from resources.lake import LakeResource


class Optimisation(dg.Config):
    """How much is tried for each pair."""

    trials: int = Field(default=60, description="How often prompts may be tried.")
    most_samples: int = Field(default=24, description="Of each side of the split.")


@dg.asset(
    partitions_def=PAIRS,
    backfill_policy=ONE_RUN,
    group_name="training",
    code_version=versions.CANDIDATES,
    owners=["team:debrief"],
    kinds={"python", "dspy"},
    pool=POOL,
    deps=[training_sets],
    description=(
        "Better main and subagent prompts, proposed from the training samples by GEPA with the "
        "prompts that were in force, and how both fare on the held-out samples, with the cost. "
        "Written below `prompts/candidates/`, never over the prompts in force. Needs a language "
        "model; no run of the whole graph includes it."
    ),
)
def prompt_candidates(
    context: dg.AssetExecutionContext,
    config: Optimisation,
    lake: LakeResource,
    evaluator: EvaluatorResource,
) -> dg.MaterializeResult[None]:
    """Propose prompts for the run's pairs."""
    tables = lake.open()
    evaluators = evaluator.open(context.run)
    if evaluators.models is None:
        raise dg.Failure(f"prompt_candidates {NEEDS_A_MODEL}.", allow_retries=False)
    if evaluators.dry_run:
        raise dg.Failure("debrief train --dry-run tells what trials would take.")
    options = OptimiserOptions(trials=config.trials, most_samples=config.most_samples)
    spending = Spending(evaluators)
    proposed = 0
    for key in context.partition_keys:
        task, fingerprint = pair_of(key)
        known: TrainingSetRow | None = training_set_of(tables, task, fingerprint)
        if known is None:
            logging.getLogger(PROGRESS).info("prompt_candidates %s: an empty cell", key)
            continue
        trials = PromptTrials(
            evaluators.models.get(evaluators.name),
            secret=key_of(load_settings()),
            concurrency=evaluators.concurrency,
        )
        with working(context, tables, "prompt_candidates", key):
            row = store_candidate(tables, task, fingerprint, trials, options)
        proposed += row.outcome == "proposed"
        told = row.reason or f"{row.outcome} {row.candidate}"
        logging.getLogger(PROGRESS).info("prompt_candidates %s: %s", key, told)
        metadata = {
            "dagster/partition_row_count": int(row.outcome == "proposed"),
            "outcome": row.outcome,
            "report": markdown(row.report or row.reason),
            "trials": row.trials,
            **spending.metadata(),
        }
        if row.before.mean is not None and row.after.mean is not None:
            metadata |= {"before": row.before.mean, "after": row.after.mean}
        context.add_asset_metadata(metadata, partition_key=key)
    return dg.MaterializeResult(metadata={"proposed_in_this_run": proposed})
