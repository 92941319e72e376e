"""The candidates stage: prompts proposed from a pair's training set, kept in the lake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from debrief.digests import digest_of
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.training.candidates import candidate_files, report_of
from debrief.training.leaderboard import Estimate
from debrief.training.lessons import LessonFilter, lessons_of
from debrief.training.optimisation import OptimiserOptions, propose
from debrief.training.store import LINES
from debrief.training.trials import Trials

TABLE = "prompt_candidates"
FORM = "1"
"""Raised when the same samples give another candidate."""

Outcome = Literal["proposed", "nothing_better", "not_possible"]


class CandidateRow(Struct, frozen=True, kw_only=True):
    """One row: what came of proposing prompts for a pair."""

    task: str
    fingerprint: str
    """The pair's."""
    outcome: Outcome
    reason: str = ""
    """Why it is not possible; else empty."""
    candidate: str = ""
    """The proposed prompts' own fingerprint; empty without any."""
    digest: str = ""
    model: str = ""
    trained_on: int = 0
    held_out: int = 0
    trials: int = 0
    before: Estimate = Estimate(count=0)
    after: Estimate = Estimate(count=0)
    difference: Estimate = Estimate(count=0)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    report: str = ""
    """Markdown."""


def candidate_path(task: str, fingerprint: str, candidate: str, name: str) -> str:
    """Return where a file of a candidate is in the lake."""
    return f"prompts/candidates/{task}/{fingerprint}/{candidate}/{name}"


def store_candidate(
    lake: Lake,
    task: str,
    fingerprint: str,
    trials: Trials,
    options: OptimiserOptions,
    progress: Callable[[str], None] = lambda text: None,
) -> CandidateRow:
    """Propose prompts from a pair's training set, unless that was done from the same before.

    Args:
        lake: with the training set; prompts and row go there.
        task: the pair's task.
        fingerprint: the pair's fingerprints.
        trials: the way to try prompts out.
        options: how much may be tried.
        progress: told what is going on.

    Raises:
        ModelError: a question could not be answered, or the run may spend no more.
    """
    partition = f"{task}/{fingerprint}"
    lines = lake.stamp(LINES, partition)
    made_from = digest_of(
        FORM, options.model_dump(), trials.model.name, lines.inputs if lines else ""
    )
    stamp = lake.stamp(TABLE, partition)
    if stamp is not None and stamp.inputs == made_from:
        for row in lake.read(TABLE, partition, CandidateRow):
            return row
    row = _made(lake, task, fingerprint, trials, options, progress)
    lake.write(TABLE, partition, [row], CandidateRow, lambda: made_from)
    return row


def _made(
    lake: Lake,
    task: str,
    fingerprint: str,
    trials: Trials,
    options: OptimiserOptions,
    progress: Callable[[str], None],
) -> CandidateRow:
    samples = list(lessons_of(lake, LessonFilter(task=task, fingerprint=fingerprint)))
    try:
        proposal = propose(samples, trials, options, progress)
        files = candidate_files(proposal) if proposal.changed else {}
    except InputError as error:
        return CandidateRow(
            task=task, fingerprint=fingerprint, outcome="not_possible", reason=str(error)
        )
    for name, data in files.items():
        lake.write_bytes(candidate_path(task, fingerprint, proposal.fingerprint, name), data)
    return CandidateRow(
        task=task,
        fingerprint=fingerprint,
        outcome="proposed" if proposal.changed else "nothing_better",
        candidate=proposal.fingerprint if proposal.changed else "",
        digest=proposal.digest if proposal.changed else "",
        model=proposal.model,
        trained_on=proposal.trained_on,
        held_out=proposal.held_out,
        trials=proposal.trials,
        before=proposal.before,
        after=proposal.after,
        difference=proposal.difference,
        calls=proposal.calls,
        input_tokens=proposal.input_tokens,
        output_tokens=proposal.output_tokens,
        cost_usd=proposal.cost_usd,
        report=report_of(proposal),
    )
