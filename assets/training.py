"""Training sets: one JSONL file and one card for each observed pair of task and fingerprint."""

import logging
from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from assets import versions
from assets.agreement import judge_agreement
from assets.automation import PAIRS_FOLLOW
from assets.judging import judge_evaluations
from assets.many_pairs import Records, pair_key, pairs_of_run
from assets.partitions import ONE_RUN, PAIRS, all_of, pair_of
from assets.presentation import preview
from assets.progress import PROGRESS
from assets.rubrics import rubric_evaluations
from assets.scope import scope
from assets.scoring import session_scores
from assets.sessions import raw_sessions
from assets.snapshots import prompt_snapshots, session_metadata
from assets.weekly import working
from debrief.lake import Lake
from debrief.redaction import contains_secret
from debrief.rubrics.agreement_page import agreement_shortfall
from debrief.settings import load_settings
from debrief.training.kinship import read_index
from debrief.training.pairs import observed_pairs
from debrief.training.selection import TrainingOptions, options_chosen
from debrief.training.splitting import EVAL_SHARE
from debrief.training.store import store_training_set, training_path
from debrief.training.validation import validate_line
from resources.lake import LakeResource


class Selection(dg.Config):
    """What is taken into a training set; what is left open here is as the settings say, and by
    default every session that one can learn from."""

    min_overall_quality: float | None = Field(default=None, description="From 0 to 1. Else 0.")
    status: str | None = Field(
        default=None,
        description="`ready`: only sessions that changed something, in which a validation command "
        "ran, and none of whose redactions needs a look. Else `any`: no matter.",
    )
    ready_without_change: bool | None = Field(
        default=None, description="`ready` does not ask for a change."
    )
    ready_without_validation: bool | None = Field(
        default=None, description="`ready` does not ask for a validation command."
    )
    require_change: bool | None = Field(
        default=None, description="Only sessions that changed a file."
    )
    require_validation: bool | None = Field(
        default=None, description="Only sessions in which a test, lint, type run or build ran."
    )
    allow_unsure_redactions: bool | None = Field(
        default=None, description="Also sessions with redactions that nobody looked at."
    )
    allow_suspected_injections: bool | None = Field(
        default=None, description="Also sessions with words that look made for whoever judges them."
    )
    tools: list[str] | None = Field(default=None, description="Empty: every tool.")
    models: list[str] | None = Field(default=None, description="Empty: every model.")
    since: str | None = Field(default=None, description="The first day, as 2026-10-05 (UTC).")
    until: str | None = Field(default=None, description="The last day, included.")
    max_per_repository: int | None = Field(
        default=None, description="0: no limit. The best are kept."
    )
    near_duplicates: str | None = Field(
        default=None, description="`drop` all but the earliest of copies, or `keep` them."
    )
    eval_share: float | None = Field(
        default=None, description=f"Held out for evaluation, 0 to 1. Else {EVAL_SHARE:g}."
    )
    max_tokens: int | None = Field(
        default=None,
        description="Sessions with more, their tools and what chat templates write counted in, are "
        "split into windows. 0: never.",
    )
    pairs: list[str] = Field(
        default=[],
        description="Pairs that the run takes beside its partitions, such as "
        "`1a2b3c4d-5e6f7a8b|fix-parser`.",
    )

    def options(self) -> TrainingOptions:
        """Return the library's form of this, over the settings.

        Raises:
            ConfigurationError: a value makes no sense.
        """
        return options_chosen(load_settings(), self.model_dump(exclude={"pairs"}))


@dg.asset(
    partitions_def=PAIRS,
    backfill_policy=ONE_RUN,
    group_name="training",
    code_version=versions.TRAINING,
    automation_condition=PAIRS_FOLLOW,
    owners=["team:debrief"],
    kinds={"python", "json"},
    deps=[
        all_of(asset)
        for asset in (
            raw_sessions,
            prompt_snapshots,
            session_metadata,
            judge_evaluations,
            session_scores,
            rubric_evaluations,
            judge_agreement,
        )
    ],
    description=(
        "`training/<task>/<prompt fingerprint>-<eval fingerprint>.jsonl`: conversations with "
        "their tools, in OpenAI's chat form, judged, scored, split into train and eval, free of "
        "secrets. The card beside it says what is in it, what was left out, and why."
    ),
)
def training_sets(
    context: dg.AssetExecutionContext, config: Selection, lake: LakeResource
) -> dg.MaterializeResult[None]:
    """Write the files of the run's pairs."""
    tables = lake.open()
    shortfall = agreement_shortfall(tables, load_settings().min_agreement)
    if shortfall:
        raise dg.Failure(f"no training set is written: {shortfall}", allow_retries=False)
    observed = observed_pairs(tables)
    options, index = config.options(), read_index(tables)
    records = Records(context)
    for key in pairs_of_run(context, "training_sets"):
        task, fingerprint = pair_of(key)
        members = observed.get((task, fingerprint))
        if members is None:
            logging.getLogger(PROGRESS).info("training_sets %s: an empty cell", key)
            records.pass_over(key)
            continue
        with working(context, tables, "training_sets", key):
            stored = store_training_set(
                tables, task, fingerprint, members, options, index=index, again=scope().again
            )
        row = stored.row
        told = f"{row.samples} samples of {row.considered} sessions"
        told += "" if stored.changed else " (unchanged)"
        logging.getLogger(PROGRESS).info("training_sets %s %s: %s", task, fingerprint, told)
        records.add(
            key,
            {
                "in_short": told,
                "made_now": row.samples if stored.changed else 0,
                "dagster/partition_row_count": row.samples,
                "path": dg.MetadataValue.path(stored.path),
                "card": dg.MetadataValue.md(stored.card),
                "train": row.train,
                "eval": row.eval,
                "tokens": row.tokens,
                "left_out": preview(
                    ("reason", "sessions"), [(left.reason, left.count) for left in row.left_out]
                ),
            },
            digest=row.lines_digest,
        )
    return dg.MaterializeResult()


@dg.asset_check(
    asset=training_sets,
    description="Every line is a valid sample by the fine-tuning rules.",
)
def training_lines_valid(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Read the run's files back and validate every line."""
    wrong = []
    lines = 0
    for name, number, line in _lines(context, lake):
        lines += 1
        wrong += [(name, number, problem) for problem in validate_line(line)]
    return dg.AssetCheckResult(
        passed=not wrong,
        metadata={"lines": lines, "wrong": preview(("file", "line", "problem"), wrong)},
    )


@dg.asset_check(asset=training_sets, description="No training set holds a secret.")
def no_secret_in_training_sets(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Search the finished bytes of the run's files."""
    found = [
        (name, number, finding.kind)
        for name, number, line in _lines(context, lake)
        for finding in contains_secret(line)
    ]
    return dg.AssetCheckResult(
        passed=not found, metadata={"found": preview(("file", "line", "kind"), found)}
    )


def _lines(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> Iterator[tuple[str, int, bytes]]:
    tables = lake.open()
    for key in _checked_pairs(context, tables):
        name = training_path(*pair_of(key))
        with tables.open_bytes(name) as file:
            for number, line in enumerate(file or (), 1):
                yield name, number, line


def _checked_pairs(context: dg.AssetCheckExecutionContext, tables: Lake) -> list[str]:
    """Return the pairs that a check looks at: those of its run, or all when it runs alone."""
    return pairs_of_run(context, "training_sets") or [
        pair_key(task, fingerprint) for task, fingerprint in observed_pairs(tables)
    ]
