"""Training sets and prompt candidates, one for each observed pair of task and fingerprint."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import resources

from debrief.certification import certificates_in
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.outcomes.store import success_labels
from debrief.settings import load_settings
from debrief.stages.evaluations import JUDGE_EVALUATIONS, MODEL_POOL, SESSION_SCORES
from debrief.stages.outcomes import LABELS
from debrief.stages.rubrics import RUBRIC_EVALUATIONS
from debrief.stages.run import PROGRESS
from debrief.stages.sessions import PROMPT_SNAPSHOTS, RAW_SESSIONS, SESSION_METADATA
from debrief.stages.signals import SESSION_SIGNALS
from debrief.stages.stage import Stage
from debrief.stages.versions import prompt_texts
from debrief.training import candidates
from debrief.training.candidates import CandidateRow
from debrief.training.kinship import read_kinship
from debrief.training.manifest import FORMER, current_pairs, settle_sets
from debrief.training.model import INDEX, TrainingSetRow
from debrief.training.options import options_chosen
from debrief.training.selection import Pair
from debrief.training.store import LINE_FORMAT, is_current


def _line_version() -> object:
    tools = resources.files("debrief.training") / "known_tools.toml"
    return LINE_FORMAT, tools.read_text(encoding="utf-8")


TRAINING_SETS = Stage(
    asset="training_sets",
    table=INDEX,
    doc="""`training/<task>/<prompt fingerprint>-<eval fingerprint>.jsonl`: conversations with their
tools, in OpenAI's chat form, judged, scored, split into train and eval, free of secrets.

The card beside it says what is in it, what was left out, and why.""",
    group="training",
    row_type=TrainingSetRow,
    partitions="pair",
    version=_line_version,
    reads=(
        *(RAW_SESSIONS, PROMPT_SNAPSHOTS, SESSION_METADATA, JUDGE_EVALUATIONS),
        *(LABELS, SESSION_SIGNALS, SESSION_SCORES, RUBRIC_EVALUATIONS),
    ),
    kinds=frozenset({"python", "json"}),
)

PROMPT_CANDIDATES = Stage(
    table=candidates.TABLE,
    doc="""Better main and subagent prompts, proposed from the training samples by GEPA with the
prompts that were in force, and how both fare on the held-out samples, with the cost.

Written below `prompts/candidates/`, never over the prompts in force. Needs a language model, and is
made only by a run whose configuration gives `trials`.""",
    group="training",
    row_type=CandidateRow,
    partitions="pair",
    version=lambda: prompt_texts("candidate_*.txt"),
    reads=(TRAINING_SETS,),
    kinds=frozenset({"python", "dspy"}),
    pool=MODEL_POOL,
    may_quote=True,
)


def stale_pairs(lake: Lake, weeks: Iterable[str]) -> set[Pair]:
    """Return the pairs observed in some weeks whose sets are not as they would be made now."""
    taken = set(weeks)
    observed = {pair: found for pair, found in current_pairs(lake).items() if taken & found.keys()}
    options = options_chosen(load_settings(), {})
    kinship, outcomes = read_kinship(lake), success_labels(lake)
    certificates = certificate_sentences(lake)
    return {
        pair
        for pair, members in observed.items()
        if not is_current(lake, *pair, members, options, kinship, outcomes, certificates)
    }


def certificate_sentences(lake: Lake) -> dict[str, str]:
    """Return how well each reviewer agrees with people, in a sentence, by its name."""
    return {name: found.sentence for name, found in certificates_in(lake).items()}


def settle(lake: Lake) -> None:
    """Name the current training sets in the manifest, and put away all others."""
    today, keep_days = datetime.now(UTC).date(), load_settings().keep_former_sets_days
    settled = settle_sets(lake, current_pairs(lake), today, keep_days)
    if settled.moved:
        moved = f"{counted(settled.moved, 'set')} moved to {lake.path(FORMER)}"
        logging.getLogger(PROGRESS).info("training_sets no longer current: %s", moved)
