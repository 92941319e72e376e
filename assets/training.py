"""Training sets and prompt candidates: one for each observed pair of task and fingerprint."""

from collections.abc import Iterable, Iterator
from typing import Any, get_origin

import dagster as dg
import msgspec
from msgspec import Struct
from pydantic import Field, create_model

from assets.checks import check
from assets.partitions import pair_key, pair_of
from assets.presentation import metadata_of, table
from assets.stages import PARTITION_ROWS, Spending, asset_of, shown_at
from debrief.lake import Lake
from debrief.markdown import counted, plain
from debrief.outcomes.store import success_labels
from debrief.redaction.gate import UNSEEN
from debrief.redaction.redactor import key_of
from debrief.settings import load_settings
from debrief.stages.run import log_progress
from debrief.stages.shown import ShownPage, ShownTable, listed
from debrief.stages.training import (
    PROMPT_CANDIDATES,
    TRAINING_SETS,
    certificate_sentences,
    settle,
)
from debrief.training.candidates import store_candidate
from debrief.training.formats import validate_line
from debrief.training.held import decisions, held_for, held_tokens
from debrief.training.kinship import read_kinship
from debrief.training.manifest import current_pairs
from debrief.training.model import training_path, unreviewed_shown
from debrief.training.optimisation import OptimiserOptions
from debrief.training.options import TrainingOptions, options_chosen
from debrief.training.samples import secrets_in
from debrief.training.store import store_training_set, training_set_of
from debrief.training.trials import NEEDS_A_MODEL, PromptTrials
from debrief.view import links
from resources import Stages

FOLLOWS = dg.AutomationCondition.eager().without(~dg.AutomationCondition.any_deps_missing())
"""As soon as what it is made from was made anew. Weeks without sessions are never made, so none
that is missing may hold it back."""


def _launch_type(kind: Any) -> Any:
    """Return what the launchpad can give for an option of the library's; None leaves it open."""
    if get_origin(kind) is tuple:
        return list[str] | None
    return next((one | None for one in (bool, int, float) if kind in (one, one | None)), str | None)


_OPTIONS: dict[str, Any] = {
    name: (_launch_type(field.annotation), Field(default=None, description=field.description))
    for name, field in TrainingOptions.model_fields.items()
}


class Selection(create_model("Options", __base__=dg.Config, **_OPTIONS)):  # type: ignore[misc]
    """What is taken into a training set; what is left open here is as the settings say, and by
    default every session that one can learn from and that a person, an outcome or an LLM review
    calls complete."""


@asset_of(TRAINING_SETS, automation_condition=FOLLOWS)
def training_sets(
    context: dg.AssetExecutionContext, config: Selection, stages: Stages
) -> dg.MaterializeResult[None]:
    """Write the training sets of a run's pairs."""
    run = stages.run(context)
    tables = run.lake
    observed = current_pairs(tables)
    options = options_chosen(load_settings(), config.model_dump())
    kinship, outcomes = read_kinship(tables), success_labels(tables)
    certificates = certificate_sentences(tables)
    unreviewed = 0
    for key in context.partition_keys:
        task, fingerprint = pair_of(key)
        members = observed.get((task, fingerprint))
        if members is None:
            gone = {"in_short": "former: no session has this pair under the current judges"}
            context.add_asset_metadata(gone, partition_key=key)
            continue
        stored = store_training_set(
            tables,
            task,
            fingerprint,
            members,
            options,
            kinship=kinship,
            outcomes=outcomes,
            certificates=certificates,
            again=run.scope.force,
        )
        row = stored.row
        unreviewed += row.unreviewed
        summary = f"{counted(row.samples, 'sample')} of {counted(row.considered, 'session')}"
        summary += f", {row.short} left out for their verdict" * bool(row.short)
        summary += f", {row.unreviewed} not reviewed" * bool(row.unreviewed)
        summary += "" if stored.changed else " (unchanged)"
        log_progress("training_sets", f"{task} {fingerprint}: {summary}")
        context.add_asset_metadata(
            {
                "in_short": summary,
                "made_now": row.samples if stored.changed else 0,
                PARTITION_ROWS: row.samples,
                **shown_at(links.page_path("training", task, fingerprint)),
                "path": dg.MetadataValue.path(stored.path),
                "train": row.train,
                "eval": row.eval,
                "not_reviewed": row.unreviewed,
                "tokens": row.tokens,
                "left_out": table(listed(row.left_out, "reason", "sessions=count")),
            },
            partition_key=key,
        )
    if said := unreviewed_shown(unreviewed):
        log_progress("training_sets", said)
    settle(tables)
    return dg.MaterializeResult()


def _all_pairs(lake: Lake) -> list[str]:
    return [pair_key(*pair) for pair in current_pairs(lake)]


@check(TRAINING_SETS, _all_pairs)
def training_lines_valid(lake: Lake, keys: list[str]) -> dg.AssetCheckResult:
    """Every line is a valid sample by the fine-tuning rules."""
    wrong = []
    lines = 0
    for name, number, line in _lines(lake, keys):
        lines += 1
        wrong += [(name, number, problem) for problem in validate_line(line)]
    return dg.AssetCheckResult(
        passed=not wrong,
        metadata={"lines": lines, "wrong": table(ShownTable(("file", "line", "problem"), wrong))},
    )


@check(TRAINING_SETS, _all_pairs, blocking=True)
def no_secret_in_training_sets(lake: Lake, keys: list[str]) -> dg.AssetCheckResult:
    """No training set holds a secret, nor what nobody released and may be one; while one does,
    nothing is made from it."""
    found = []
    decided = decisions(lake)
    for key in keys:
        lines = list(_lines(lake, [key]))
        held = held_tokens(((_session_of(line), line) for _, _, line in lines), decided)
        for name, number, line in lines:
            found += [(name, number, finding.kind) for finding in secrets_in(line)]
            if held_for(held.get(_session_of(line), ()), decided):
                found.append((name, number, UNSEEN))
                dg.get_dagster_logger().error(f"{name}, line {number}: {UNSEEN}")
    return dg.AssetCheckResult(
        passed=not found, metadata={"found": table(ShownTable(("file", "line", "kind"), found))}
    )


def _session_of(line: bytes) -> str:
    metadata = msgspec.json.decode(line, type=_Line).metadata
    return metadata.parent_session or metadata.session_id


class _Metadata(Struct, frozen=True):
    session_id: str
    parent_session: str = ""


class _Line(Struct, frozen=True):
    metadata: _Metadata


def _lines(lake: Lake, keys: Iterable[str]) -> Iterator[tuple[str, int, bytes]]:
    """Yield the finished lines of pairs' files."""
    for key in keys:
        name = training_path(*pair_of(key))
        with lake.open_bytes(name) as file:
            for number, line in enumerate(file or (), 1):
                yield name, number, line


class Optimisation(dg.Config):
    """How much is tried for each pair."""

    trials: int | None = Field(
        default=None,
        description="How often prompts may be tried; each trial asks a model. Nothing is tried "
        "without it.",
    )
    most_samples: int = Field(default=24, description="Of each side of the split.")


@asset_of(
    PROMPT_CANDIDATES,
    # No week and no other pair leads here, so that "Materialize all" of a week never pays for it.
    deps=[dg.AssetDep(training_sets, partition_mapping=dg.SpecificPartitionsPartitionMapping([]))],
)
def prompt_candidates(
    context: dg.AssetExecutionContext, config: Optimisation, stages: Stages
) -> dg.MaterializeResult[None]:
    """Try better prompts for a run's pairs."""
    if config.trials is None:
        raise dg.Failure(
            "prompt_candidates asks a model many times, so it runs only when the run's "
            "configuration gives `trials`: ops: {prompt_candidates: {config: {trials: 60}}}.",
            allow_retries=False,
        )
    run, spending = stages.run(context), Spending()
    tables, by = run.lake, run.evaluators
    if by.models is None:
        raise dg.Failure(f"prompt_candidates {NEEDS_A_MODEL}.", allow_retries=False)
    if by.dry_run:
        raise dg.Failure("debrief train --dry-run says what trials would take.")
    options = OptimiserOptions(trials=config.trials, most_samples=config.most_samples)
    proposed = 0
    for key in context.partition_keys:
        task, fingerprint = pair_of(key)
        if training_set_of(tables, task, fingerprint) is None:
            log_progress("prompt_candidates", f"{key}: no training set")
            continue
        trials = PromptTrials(
            by.models.get(by.name), secret=key_of(load_settings()), concurrency=by.concurrency
        )
        row = store_candidate(tables, task, fingerprint, trials, options)
        proposed += row.outcome == "proposed"
        log_progress(
            "prompt_candidates", f"{key}: {row.reason or f'{row.outcome} {row.candidate}'}"
        )
        metadata = {
            PARTITION_ROWS: int(row.outcome == "proposed"),
            "outcome": row.outcome,
            **metadata_of({"report": ShownPage(row.report or plain(row.reason))}),
            "trials": row.trials,
            **spending.since_shown(by),
        }
        if row.before.mean is not None and row.after.mean is not None:
            metadata |= {"before": row.before.mean, "after": row.after.mean}
        context.add_asset_metadata(metadata, partition_key=key)
    return dg.MaterializeResult(metadata={"proposed_in_this_run": proposed})
